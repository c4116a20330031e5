"""Of several that say the same, the first comes first and the others later."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import at_cosine, unit

from edge.recall.diverse import diverse
from edge.types import Vector

EAST, NORTH, NOTHING = unit(1), unit(0, 1), np.zeros(4, np.float32)


def chosen(*rows: tuple[float, Vector], count: int = 100) -> list[tuple[int, float]]:
    return diverse([score for score, _ in rows], np.stack([vector for _, vector in rows]), count)


def order(*rows: tuple[float, Vector], count: int = 100) -> list[int]:
    return [place for place, _ in chosen(*rows, count=count)]


def test_a_twin_is_put_off_and_not_lost() -> None:
    assert order((1.0, EAST), (0.95, EAST), (0.85, NORTH)) == [0, 2, 1]
    assert order((1.0, EAST), (0.95, EAST), (0.85, NORTH), count=2) == [0, 2]


def test_a_twin_that_is_much_better_keeps_its_place() -> None:
    assert order((1.0, EAST), (0.95, EAST), (0.5, NORTH)) == [0, 1, 2]


def test_what_is_merely_alike_is_not_put_off() -> None:
    assert order((1.0, EAST), (0.95, at_cosine(0.89)), (0.94, NORTH)) == [0, 1, 2]


def test_what_has_no_vector_is_like_nothing() -> None:
    assert order((1.0, NOTHING), (0.9, NOTHING), (0.8, NOTHING)) == [0, 1, 2]


def test_of_equals_the_earlier_comes_first() -> None:
    assert order((0.5, EAST), (0.5, NORTH), (0.5, NOTHING)) == [0, 1, 2]


def test_of_nothing_comes_nothing() -> None:
    assert diverse([], np.zeros((0, 4), np.float32), 5) == []
    assert order((1.0, EAST), count=0) == []


ROWS = st.lists(
    st.tuples(st.floats(0, 2), st.sampled_from([EAST, NORTH, NOTHING, at_cosine(0.95), at_cosine(0.99)])),
    min_size=1,
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: -row[0]))


@given(ROWS)
def test_all_are_kept_where_all_are_wanted(rows: list[tuple[float, Vector]]) -> None:
    assert sorted(order(*rows)) == list(range(len(rows)))


@given(ROWS, st.integers(1, 12))
def test_fewer_are_the_beginning_of_more_and_the_best_is_first(rows: list[tuple[float, Vector]], count: int) -> None:
    first = chosen(*rows, count=count)
    assert first == chosen(*rows)[:count] == chosen(*rows, count=count)
    assert first[0] == (0, rows[0][0])


@given(ROWS)
def test_what_is_left_of_a_score_never_grows_and_is_never_more_than_it_was(rows: list[tuple[float, Vector]]) -> None:
    left = [score for _, score in chosen(*rows)]
    assert left == sorted(left, reverse=True)
    assert all(0 <= score <= rows[place][0] for place, score in chosen(*rows))


def test_a_twin_shows_what_it_lost() -> None:
    assert chosen((1.0, EAST), (0.5, EAST)) == [(0, 1.0), (1, 0.4)]
