"""The keyword search over real terms: whatever was said is found by its parts, and no query is an error."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.ledger import search as words
from edge.ledger.migrations import MIGRATIONS, migrate
from edge.ledger.rows import clean
from edge.ledger.search import search
from edge.lexicon.words import WordLexicon
from edge.types import Filter

LEXICON = WordLexicon(["门禁口令"])
TEXTS = [
    "我家的猫叫豆包",
    "重跑gen-itgc后50条",
    "the pre-edit hook",
    "I don't know, 100%",
    "臺灣的雨",
    "painting fences",
]


def table(texts: Sequence[str]) -> sqlite3.Connection:
    """A database of the ledger's shape; a text's rowid is its place from 1 on."""
    connection = sqlite3.connect(":memory:")
    connection.isolation_level = None
    migrate(connection, MIGRATIONS)
    for rowid, text in enumerate(texts, 1):
        connection.execute(
            "INSERT INTO memories VALUES "
            "(?, ?, ?, 0, 1, 1, 0, ?, 0, 0, 1.0, 0, 0, 'turn', 's', ?, 'user', '[]', ?, '', NULL, NULL, NULL, 0)",
            (rowid, str(rowid), rowid, rowid, f"s{rowid % 2}", text),
        )
        connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (rowid, terms(LEXICON.index_terms(text))))
    return connection


def terms(terms: Sequence[str]) -> str:
    return " ".join(clean(terms))


def found(connection: sqlite3.Connection, query: str, limit: int = 10, filter: Filter | None = None) -> list[int]:
    hits = search(connection, {}, clean(LEXICON.query_terms(query)), limit, filter or Filter())
    assert all(hit.score > 0 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return [hit.rowid for hit in hits]


@pytest.fixture(scope="module")
def texts() -> Iterator[sqlite3.Connection]:
    connection = table(TEXTS)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("query", "place"),
    [
        *(("猫", 1), ("豆包", 1), ("-猫", 1), ("itgc", 2), ("gen-itgc", 2), ("pre-edit", 3), ("don't", 4), ("100%", 4)),
        *(("台湾", 5), ("paint", 6), ("painted", 6)),
    ],
)
def test_each_is_found_by_what_was_said(texts: sqlite3.Connection, query: str, place: int) -> None:
    assert found(texts, query)[:1] == [place]


@pytest.mark.parametrize(
    "query", ['"', "*", "(", "AND", "NEAR(a b", "a OR b NOT c", "terms:猫", "^猫", "{a b}", "猫\0豆包", "''"]
)
def test_a_query_is_literal_and_never_an_error(texts: sqlite3.Connection, query: str) -> None:
    found(texts, query)


@given(st.text(max_size=30))
@settings(deadline=None)
def test_no_query_is_an_error(query: str) -> None:
    connection = table(TEXTS[:1])
    found(connection, query)
    connection.close()


@given(
    st.lists(st.sampled_from(["我家的猫", "豆包在裏面", " painted ", "，", "v1.5", " dogs "]), min_size=1, max_size=6)
)
@settings(deadline=None)
def test_a_text_is_found_by_any_character_pair_or_word_of_it(parts: list[str]) -> None:
    text = "".join(parts)
    connection = table([text, "无关"])
    han = [char for char in text if "\u4e00" <= char <= "\u9fff"]
    pairs = [
        text[at : at + 2] for at in range(len(text) - 1) if all("\u4e00" <= c <= "\u9fff" for c in text[at : at + 2])
    ]
    for query in (*han, *pairs, *(word for word in ("painted", "v1.5", "dogs") if f" {word} " in f" {text} ")):
        assert 1 in found(connection, query), query
    connection.close()


def test_the_exact_word_comes_before_its_relatives() -> None:
    connection = table(["she paints walls", "she painted walls", "she painting walls", "other things said"])
    assert found(connection, "painted")[0] == 2
    assert set(found(connection, "painted")) == {1, 2, 3}
    connection.close()


def test_the_same_match_says_about_as_much_in_a_small_space_as_in_a_large_one() -> None:
    answer, query = "铜茶壶在阁楼的木箱里", "铜茶壶在哪里"
    small = table([answer, *(f"第{n}天下了雨" for n in range(10))])
    large = table([answer, *(f"第{n}天下了雨" for n in range(1000))])
    scores = [
        search(connection, {}, clean(LEXICON.query_terms(query)), 5, Filter())[0].score for connection in (small, large)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=0.35)


def test_a_common_term_still_tells_apart_what_rarer_terms_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        *(f"雨天 {i}" for i in range(20)),
        *(f"晴天 {i}" for i in range(20)),
        "蘑菇 汤 好喝",
        "蘑菇 汤 雨天",
        "蘑菇 饭 好吃",
    ]
    connection = table(texts)
    monkeypatch.setattr(words, "POSTINGS", 6)
    assert found(connection, "蘑菇雨天", limit=3)[0] == 42
    connection.close()


def test_a_filter_never_leaks_and_finds_what_is_behind_all_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = table(["雨天"] * 30)
    for few in (256, 1):
        monkeypatch.setattr(words, "_FEW", few)
        monkeypatch.setattr(words, "FILTERED", 5)
        assert found(connection, "雨天", limit=30, filter=Filter(until=3)) == [2, 1]
        assert all(rowid % 2 == 1 for rowid in found(connection, "雨天", limit=3, filter=Filter(sessions=("s1",))))
        assert found(connection, "雨天", filter=Filter(sessions=("none",))) == []
    connection.close()


def test_no_more_postings_are_read_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = table(["雨天"] * 30)
    monkeypatch.setattr(words, "POSTINGS", 7)
    assert found(connection, "雨天", limit=30) == list(range(30, 23, -1))
    connection.close()


def test_the_count_of_a_term_in_most_memories_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = table(["雨天", "晴天"] * 20)
    monkeypatch.setattr(words, "_COUNTED", 5)
    known: dict[str, tuple[int, float]] = {}
    search(connection, known, ["雨天"], 5, Filter())
    assert 18 <= known["雨天"][0] <= 24
    connection.close()


def test_the_sums_that_fts5_keeps_are_those_of_its_rows() -> None:
    connection = table(TEXTS * 50)
    connection.execute("DELETE FROM words WHERE rowid % 3 = 0")
    rows = [row[0].split(" ") for row in connection.execute("SELECT terms FROM words")]
    total, average = words._totals(connection)
    assert total == len(rows)
    assert average == pytest.approx(sum(map(len, rows)) / len(rows))
    connection.close()


def test_an_empty_index_finds_nothing() -> None:
    connection = table([])
    assert found(connection, "猫") == []
    connection.close()
