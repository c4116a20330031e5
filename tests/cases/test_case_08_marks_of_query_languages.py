"""Case 8: what means something to FTS5 (higebu/3gpp-mcp#99, simonw/datasette#651) is searched for literally."""

from __future__ import annotations

import pytest
from grpc_calls import Wire

from edge.recall.recall import NOTHING_RELEVANT

TEXTS = [
    "I don't know the pre-edit hook",
    "-猫 不在家",
    "进度到了100%",
    "今天 AND 明天",
    '他说"可以"',
    "a*b(c)",
    "rowid: 7",
]
QUERIES = [
    '"', "*", "(", ")", "AND", "OR", "NOT", "NEAR(a b", "NEAR/2", "don't", "pre-edit", "-猫", "100%", "text:猫",
    "^猫", "+", "a* OR b*", '"unbalanced', "{a b} : c", "'; DROP TABLE words; --", "rowid", "\\", "猫*", "a\nb",
    "%", "_", "？", "（",
]  # fmt: skip


@pytest.fixture(scope="module")
def literal(wire: Wire) -> str:
    wire.say(*TEXTS, space="private/case-08")
    return "private/case-08"


@pytest.mark.parametrize("query", QUERIES)
def test_marks_of_a_query_language_are_plain_characters(wire: Wire, literal: str, query: str) -> None:
    answer = wire.recall(query, literal, top_k=50)
    assert len(answer.hits) == len(TEXTS)
    # A mark has little to do with anything; that it went by words only, it must not say.
    assert set(answer.notes) <= {NOTHING_RELEVANT}


@pytest.mark.parametrize(
    ("query", "text"),
    [("don't", TEXTS[0]), ("pre-edit", TEXTS[0]), ("-猫", TEXTS[1]), ("100%", TEXTS[2]), ("rowid", TEXTS[6])],
)  # fmt: skip
def test_words_with_marks_find_their_text(wire: Wire, literal: str, query: str, text: str) -> None:
    best = wire.recall(query, literal).hits[0]
    assert best.memory.text == text
    assert best.signals.lexical > 0


def test_a_text_without_the_word_has_no_share_of_words(wire: Wire, literal: str) -> None:
    for query in ("AND", "NOT", "NEAR(a b"):
        for hit in wire.recall(query, literal, top_k=50).hits:
            if hit.signals.lexical > 0:
                words = hit.memory.text.lower()
                assert any(word in words for word in ("and", "not", "near", "a", "b")), (query, hit.memory.text)
