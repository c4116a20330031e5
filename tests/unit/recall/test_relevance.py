"""Whether a memory bears on a question at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.recall.relevance import raised, relevance

COSINE = st.floats(-1, 1)
SHARE = st.floats(0, 1)


def test_from_1_on_it_bears_on_the_question() -> None:
    assert relevance(0.55, 0.55, 0.0) == 1.0
    assert relevance(0.5, 0.55, 0.0) < 1 < relevance(0.5, 0.55, 1.0)
    assert relevance(-1.0, 0.55, 0.0) == 0.0


def test_without_a_vector_the_words_alone_speak() -> None:
    assert relevance(None, 0.55, 0.0) == 0.0
    assert relevance(None, 0.55, 0.25) < 1 < relevance(None, 0.55, 0.5)


@given(COSINE, COSINE, SHARE, SHARE, st.floats(0.1, 1))
def test_more_of_either_never_makes_less_of_it(
    cosine: float, other: float, words: float, more_words: float, related: float
) -> None:
    (low, high), (few, many) = sorted((cosine, other)), sorted((words, more_words))
    assert 0 <= relevance(low, related, few) <= relevance(high, related, many)
    assert relevance(low, related, few, 0.1) <= relevance(low, related, few) <= relevance(low, related, few, -0.1)
    assert 0 <= relevance(None, related, few) <= relevance(None, related, many)


def test_a_question_that_is_near_to_everything_needs_to_be_nearer() -> None:
    alone = [0.6, *[0.35] * 99]
    crowd = [0.6, *[0.45] * 99]
    assert raised(alone, 0.35) == pytest.approx(0)
    assert raised(crowd, 0.35) == pytest.approx(0.1)
    assert relevance(0.6, 0.58, 0.0, raised(crowd, 0.35)) < 1 < relevance(0.6, 0.58, 0.0, raised(alone, 0.35))


def test_a_few_memories_of_one_thing_do_not_speak_against_each_other() -> None:
    assert raised([], 0.35) == 0
    assert raised([0.7, 0.69, 0.68], 0.35) < 0.03
    # Nor do many, beyond a bound.
    assert raised([0.7] * 100, 0.35) == raised([0.9] * 100, 0.35) == 0.15


@given(st.lists(COSINE, max_size=120), COSINE)
def test_what_was_found_further_off_than_the_nearest_64_plays_no_part(cosines: list[float], usual: float) -> None:
    falling = sorted(cosines, reverse=True)
    assert -0.15 <= raised(falling, usual) == raised(falling[:64], usual) <= 0.15
