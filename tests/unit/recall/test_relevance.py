"""Whether a memory bears on a question at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge.recall.relevance import relevance

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
    assert 0 <= relevance(None, related, few) <= relevance(None, related, many)
