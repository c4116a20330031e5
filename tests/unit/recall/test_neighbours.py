"""What was said beside a memory speaks for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.recall.neighbours import NEXT, SECOND, support

# Five memories in a row.
ROW = {n: [other for other in (n - 1, n + 1) if 0 <= other < 5] for n in range(5)}


def test_the_next_one_and_the_second_next_are_supported() -> None:
    assert support({2: 1.0}, ROW) == {1: NEXT, 3: NEXT, 0: SECOND, 4: SECOND}


def test_the_best_neighbour_counts_and_not_the_sum() -> None:
    scores = {0: 0.4, 2: 1.0, 3: 0.8}
    assert support(scores, ROW)[1] == NEXT
    assert support(scores, ROW)[2] == pytest.approx(NEXT * 0.8)


def test_a_good_second_may_say_more_than_a_bad_next() -> None:
    assert support({1: 0.1, 2: 1.0}, ROW)[0] == pytest.approx(SECOND)


def test_nobody_supports_itself() -> None:
    assert support({1: 1.0}, {1: [2], 2: [1]}) == {2: NEXT}
    assert support({1: 1.0}, {1: []}) == {}
    circle = {1: [2, 3], 2: [1, 3], 3: [1, 2]}
    assert support({1: 1.0}, circle) == {2: NEXT, 3: NEXT}


def test_who_is_beside_nobody_is_supported_by_nobody() -> None:
    assert support({1: 1.0, 2: 1.0}, {}) == {}
    assert support({}, ROW) == {}


LINKS = st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=3))
SCORES = st.dictionaries(st.integers(0, 6), st.floats(0, 2))


@given(SCORES, LINKS, st.integers(0, 6), st.floats(0, 1))
def test_a_better_neighbour_never_supports_less(
    scores: dict[int, float], beside: dict[int, list[int]], raised: int, more: float
) -> None:
    before = support(scores, beside)
    after = support({**scores, raised: scores.get(raised, 0.0) + more}, beside)
    assert all(after[key] >= added for key, added in before.items())


@given(SCORES, LINKS)
def test_support_is_a_quarter_of_the_best_at_the_most(scores: dict[int, float], beside: dict[int, list[int]]) -> None:
    added = support(scores, beside)
    assert all(0 < value <= NEXT * max(scores.values()) for value in added.values())
    assert added.keys() <= beside.keys()
