"""The view says what the log says: applied once, in order, again and again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import KEY, START, Characters, Ledger, said, turn

from edge.errors import DataLoss
from edge.ledger.database import Database
from edge.ledger.events import Accesses, Erased, Event, Forgotten, Tallied, TurnSaid, mark
from edge.ledger.memories import Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.types import Filter, Matrix, MemoryState

ALL = Filter()
TABLES = {
    "turns": "SELECT * FROM turns ORDER BY n",
    "memories": "SELECT id, turn_n, piece, pieces, state, archived, occurred_at, created_at, seq, weight, "
    "access_count, accessed_at, kind, source, session, role, tags, text, attributes FROM memories ORDER BY id",
    "words": "SELECT m.id, w.terms FROM words w LEFT JOIN memories m ON m.rowid = w.rowid ORDER BY m.id",
    "tags": "SELECT t.tag, m.id FROM tags t LEFT JOIN memories m ON m.rowid = t.memory ORDER BY 1, 2",
    "erased": "SELECT * FROM erased ORDER BY mark",
    "forgets": "SELECT id, n, at FROM forgets ORDER BY id",
    "tallies": "SELECT * FROM tallies ORDER BY name",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space") as ledger:
        yield ledger


def dump(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.reader() as connection:
        return {name: connection.execute(sql).fetchall() for name, sql in TABLES.items()}


def vectors(count: int, dimension: int = 8) -> Matrix:
    matrix = np.random.default_rng(0).normal(size=(count, dimension)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def rowids(ledger: Ledger, filter: Filter = ALL) -> list[int]:
    found = ledger.queries.select(filter, 10_000)
    assert found is not None
    return found.tolist()


def search(ledger: Ledger, text: str, filter: Filter = ALL, limit: int = 10) -> list[str]:
    hits = ledger.queries.search(Characters().query_terms(text), limit, filter)
    assert all(hit.score > 0 for hit in hits)
    memories = ledger.queries.fetch([hit.rowid for hit in hits])
    return [memories[hit.rowid].text for hit in hits]


def test_a_turn_becomes_memories_with_all_that_it_came_with(ledger: Ledger) -> None:
    (event,) = ledger.say(turn("abcdef", 3, tags=("家", "x"), attributes=b"\x80", weight=2.5, kind="note"), size=4)
    memories = [ledger.queries.by_id(piece.id) for piece in event.pieces]
    first = memories[0]
    assert first is not None
    assert [memory.text for memory in memories if memory] == ["abcd", "ef"]
    assert (first.tags, first.attributes, first.weight, first.kind) == (("家", "x"), b"\x80", 2.5, "note")
    assert (first.seq, first.piece, first.pieces, first.created_at) == (3, 0, 2, event.at)
    assert (first.state, first.archived, first.access_count) == (MemoryState.TEMPORARY, False, 0)
    assert ledger.queries.seen([event.fingerprint, b"none"]) == {event.fingerprint: tuple(p.id for p in event.pieces)}


def test_a_newer_version_takes_the_place_of_the_older_one(ledger: Ledger) -> None:
    (old,) = ledger.say(turn("the grey cat", tags=("t",)))
    (first,) = rowids(ledger)
    ledger.memories.put_vectors("m", np.array([first]), vectors(1)).result()
    (new,) = ledger.say(turn("the grey cat sleeps"))
    assert search(ledger, "grey") == ["the grey cat sleeps"]
    assert ledger.removed == [first] and len(rowids(ledger)) == 1
    assert ledger.queries.fetch([first]) == {} and ledger.queries.vector_rowids("m").tolist() == []
    memory = ledger.queries.by_id(old.pieces[0].id)
    assert memory is not None and memory.state is MemoryState.SUPERSEDED
    living = ledger.queries.by_id(new.pieces[0].id)
    assert living is not None and living.state is MemoryState.TEMPORARY
    assert ledger.queries.counts().superseded == 1 and ledger.queries.counts().memories == 1
    assert rowids(ledger, Filter(tags=("t",))) == []


def test_versions_in_one_batch_supersede_each_other_too(ledger: Ledger) -> None:
    ledger.say(turn("a"), turn("a b"), turn("a b c"))
    assert search(ledger, "a") == ["a b c"] and len(ledger.removed) == 2


def test_vectors_come_back_as_float16_made_them_and_only_for_the_living(ledger: Ledger) -> None:
    events = ledger.say(*[turn(f"text {i}", i) for i in range(5)])
    ids = rowids(ledger)
    matrix = vectors(6)
    stored = ledger.memories.put_vectors("m", np.array([*ids, 999]), matrix).result()
    assert stored.tolist() == ids
    found, back = ledger.queries.vectors("m", np.array([ids[3], 999, ids[0]]))
    assert found.tolist() == [ids[3], ids[0]] and back.dtype == np.float32
    assert np.array_equal(back, matrix[[3, 0]].astype(np.float16).astype(np.float32))
    assert ledger.queries.vectors("other", np.array(ids))[0].tolist() == []
    chunks = list(ledger.queries.iter_vectors("m", ledger.queries.vector_rowids("m"), 2))
    assert [len(part) for part, _ in chunks] == [2, 2, 1]
    assert ledger.queries.counts().vectors == {"m": 5} and len(events) == 5


def test_what_has_no_vector_of_a_model_is_pending_until_it_has_or_is_refused(ledger: Ledger) -> None:
    ledger.say(*[turn(f"text {i}", i) for i in range(4)])
    ids = rowids(ledger)
    ledger.memories.put_vectors("m", np.array(ids[:1]), vectors(1)).result()
    ledger.memories.refuse_vectors("m", [ids[1]], "NaN").result()
    assert ledger.queries.pending("m", 0, 10) == [(ids[2], "text 2"), (ids[3], "text 3")]
    assert ledger.queries.pending("m", ids[2], 10) == [(ids[3], "text 3")]
    assert ledger.queries.pending("m", 0, 1) == [(ids[2], "text 2")]
    counts = ledger.queries.counts()
    assert (counts.without("m"), counts.without("n")) == (2, 4)


def test_filters_narrow_searches_selections_and_pages_alike(ledger: Ledger) -> None:
    ledger.say(
        turn("cat one", 1, source="a", session="x", tags=("t", "u")),
        turn("cat two", 2, source="b", session="x", kind="note"),
        turn("cat three", 3, source="b", session="y", tags=("t",)),
    )
    for filter, expected in (
        (ALL, {"one", "two", "three"}),
        (Filter(sources=("a",)), {"one"}),
        (Filter(sessions=("x", "z")), {"one", "two"}),
        (Filter(kinds=("note",)), {"two"}),
        (Filter(tags=("t",)), {"one", "three"}),
        (Filter(tags=("t", "u")), {"one"}),
        (Filter(since=START + 2), {"two", "three"}),
        (Filter(until=START + 2), {"one"}),
        (Filter(since=START + 2, until=START + 3, sources=("b",)), {"two"}),
        (Filter(sources=("' OR 1=1 --",)), set()),
    ):
        assert {text.split()[1] for text in search(ledger, "cat", filter)} == expected
        assert {memory.text.split()[1] for memory in ledger.queries.list_page(filter, 10)[0]} == expected
        assert {memory.text.split()[1] for memory in ledger.queries.fetch(rowids(ledger, filter)).values()} == expected
    assert ledger.queries.select(ALL, 2) is None
    selected = ledger.queries.select(ALL, 3)
    assert selected is not None and len(selected) == 3 and selected.dtype == np.int64


def test_pages_go_from_new_to_old_and_end(ledger: Ledger) -> None:
    ledger.say(*[turn(f"{i}", i, occurred_at=START + i // 2) for i in range(7)])
    seen: list[str] = []
    after = None
    while True:
        page, after = ledger.queries.list_page(ALL, 3, after)
        seen += [memory.text for memory in page]
        if after is None:
            break
    assert seen == ["6", "5", "4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "*",
        "(",
        "AND",
        "NEAR(a",
        "don't",
        "pre-edit",
        "-猫",
        "100%",
        "c++",
        "a\0b",
        "👩‍👧",
        "é",
        "e\u0301",
        "𠀀",
        "\u202egpj",
    ],
)
def test_a_search_is_literal(ledger: Ledger, text: str) -> None:
    ledger.say(turn(f"x {text} y", 1), turn("nothing here", 2))
    assert ledger.queries.search([text], 5, ALL) and search(ledger, text)[0] == f"x {text} y"


def test_a_term_of_nothing_but_breaks_finds_nothing(ledger: Ledger) -> None:
    ledger.say(turn("a b"))
    assert ledger.queries.search(["", " ", "\0", "\u3000", "\ud800"], 5, ALL) == []
    assert ledger.queries.search([], 5, ALL) == [] == ledger.queries.search(["a"], 0, ALL)


def test_every_character_stays_in_its_term() -> None:
    from edge.ledger.rows import clean

    connection = sqlite3.connect(":memory:")
    create = next(s for s in MIGRATIONS[0].sql.split(";") if "CREATE VIRTUAL TABLE words" in s)
    connection.execute(create)
    connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'instance')")
    # All of the basic plane, and some of every block beyond.
    characters = [chr(c) for c in (*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 13))]
    for start in range(0, len(characters), 1000):
        terms = clean(f"a{c}b" for c in characters[start : start + 1000])
        connection.execute("INSERT INTO words (terms) VALUES (?)", (" ".join(terms),))
    assert connection.execute("SELECT count(*) FROM vocabulary").fetchone() == (len(characters),)
    connection.close()


def test_frequent_terms_give_way_to_rare_ones_and_alone_give_the_newest(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.ledger import search as words

    monkeypatch.setattr(words, "POSTINGS", 10)
    ledger.say(*[turn(f"的 {i}" if i != 5 else "的 稀", i) for i in range(30)])
    assert search(ledger, "的 稀", limit=3) == ["的 稀", "的 29", "的 28"]
    assert search(ledger, "的", limit=3) == ["的 29", "的 28", "的 27"]
    assert search(ledger, "的", Filter(until=START + 2), limit=3) == ["的 1", "的 0"]
    monkeypatch.setattr(words, "_FEW", 1)
    monkeypatch.setattr(words, "FILTERED", 10)
    assert search(ledger, "的", Filter(until=START + 2), limit=3) == ["的 1", "的 0"]


def test_archived_memories_are_found_only_when_asked_for(ledger: Ledger) -> None:
    ledger.say(turn("cat old", 1), turn("cat new", 2))
    sql = "UPDATE memories SET archived = 1 WHERE seq = 1"
    ledger.database.submit(lambda connection: connection.execute(sql)).result()
    for filter, expected in (
        (ALL, ["cat new"]),
        (Filter(sources=("chat",)), ["cat new"]),
        (Filter(include_archived=True), ["cat new", "cat old"]),
        (Filter(sources=("chat",), include_archived=True), ["cat new", "cat old"]),
    ):
        assert sorted(search(ledger, "cat", filter)) == expected
        assert len(rowids(ledger, filter)) == len(expected)
    assert ledger.queries.counts().archived == 1


def test_accesses_add_up_and_a_checkpoint_takes_none_away(ledger: Ledger) -> None:
    (event,) = ledger.say(turn("a"))
    (rowid,) = rowids(ledger)
    id = event.pieces[0].id
    ledger.memories.add_accesses({rowid: (2, START + 5), 999: (1, START)}).result()
    ledger.memories.add_accesses({rowid: (1, START + 3)}).result()
    assert ledger.queries.accessed_since(START) == {id: (3, START + 5)}
    assert ledger.queries.accessed_since(START + 6) == {}
    for counts in ({id: (2, START)}, {id: (7, START + 9), "unknown": (1, 1)}):
        events, _ = ledger.log.submit(lambda ns, c=counts: ([Accesses(ns.next(), ns.at, c)], None)).result()
        ledger.memories.apply(events).result()
    memory = ledger.queries.by_id(id)
    assert memory is not None and (memory.access_count, memory.accessed_at) == (7, START + 9)


def test_a_turn_of_thousands_of_pieces_is_applied_in_slices_and_whole(ledger: Ledger) -> None:
    (event,) = ledger.say(turn("猫狗鸟鱼" * 500), size=5)
    assert len(rowids(ledger)) == 400 == len(event.pieces)
    ledger.say(turn("short"))
    assert search(ledger, "猫") == [] and len(ledger.removed) == 400


def test_a_turn_half_applied_before_a_crash_is_applied_once(tmp_path: Path) -> None:
    from edge.ledger import writes

    database = Database(tmp_path / "m.sqlite", MIGRATIONS)
    event = said(1, turn("abcdef"), size=2)
    database.submit(lambda c: (writes.say(c, event), writes.insert(c, event, 0, ["a b", "c d"]))).result()
    memories = Memories(database, Characters(), KEY)
    applied = memories.apply([event]).result()
    assert len(applied.added[1]) == 3 and len(applied.removed) == 2
    assert Queries(database).counts().memories == 3
    memories.close()
    database.close()


def test_a_full_disk_delays_events_and_opens_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edge.ledger import writes

    database = Database(tmp_path / "m.sqlite", MIGRATIONS)
    memories = Memories(database, Characters(), KEY)
    real, full = writes.set_applied, iter([True, True])

    def set_applied(connection: sqlite3.Connection, n: int) -> None:
        if next(full, False):
            raise sqlite3.OperationalError("database or disk is full")
        real(connection, n)

    monkeypatch.setattr(writes, "set_applied", set_applied)
    first, second = memories.apply([said(1, turn("a", 1))]), memories.apply([said(2, turn("b", 2))])
    assert second.result().last_n == 2
    assert [len(first.result().added[1]), len(second.result().added[2])] == [1, 1]
    assert Queries(database).counts().memories == 2
    memories.close()
    database.close()


def test_a_failing_lexicon_costs_one_text_its_words_and_nobody_else(tmp_path: Path) -> None:
    class Brittle(Characters):
        def index_terms(self, text: str) -> list[str]:
            if text == "bad":
                raise RuntimeError
            return super().index_terms(text)

    database = Database(tmp_path / "m.sqlite", MIGRATIONS)
    memories = Memories(database, Brittle(), KEY)
    memories.apply([said(1, turn("bad", 1)), said(2, turn("good", 2))]).result()
    assert Queries(database).counts().memories == 2
    memories.close()
    database.close()


def test_a_damaged_database_fails_every_later_event_instead_of_skipping_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.ledger import writes

    database = Database(tmp_path / "m.sqlite", MIGRATIONS)
    memories = Memories(database, Characters(), KEY)
    with monkeypatch.context() as patch:

        def broken(*arguments: object, **names: object) -> None:
            raise sqlite3.DatabaseError("database disk image is malformed")

        patch.setattr(writes, "say", broken)
        with pytest.raises(DataLoss):
            memories.apply([said(1, turn("a", 1))]).result()
    with pytest.raises(DataLoss):
        memories.apply([said(2, turn("b", 2))]).result()
    assert memories.failure is not None and memories.applied == 0
    memories.close()
    database.close()


def test_tallies_add_up_and_an_event_counts_once_however_often_it_is_applied(ledger: Ledger) -> None:
    first = Tallied(1, START, {"noise/greeting": 3, "secret/bank_card": 1})
    second = Tallied(2, START, {"noise/greeting": 1})
    for events in ([first], [first, second], [second]):
        ledger.memories.apply(events).result()
    assert ledger.queries.tallies() == {"noise/greeting": 4, "secret/bank_card": 1}


def test_what_was_said_before_is_the_newest_version_of_the_turn_or_of_the_one_before_it(ledger: Ledger) -> None:
    ledger.say(turn("第一句", 1), turn("甲" * 300 + "乙", 4), turn("别处", 5, session="s2"))
    before = ledger.queries.said_before
    first, last = (1, "第一句"), (4, "乙")
    assert [before("chat", "s1", seq) for seq in (0, 1, 2, 4, 9)] == [(-1, ""), first, first, last, last]
    ledger.say(turn("改过的", 4))
    assert before("chat", "s1", 5) == (4, "改过的")


def test_a_database_made_anew_has_another_generation(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as one, Ledger(tmp_path / "b") as two:
        assert one.queries.generation() != two.queries.generation()


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Logs as the box may write them: versions, forgets of all versions of a turn, erased lines, counts."""
    events: list[Event] = []
    living: dict[int, TurnSaid] = {}
    for n in range(1, draw(st.integers(1, 12)) + 1):
        kind = draw(st.sampled_from(["turn", "turn", "turn", "forget", "erased", "accesses", "tallied"]))
        if kind == "forget" and living:
            seqs = draw(st.sets(st.sampled_from([event.turn.seq for event in living.values()]), min_size=1))
            turns = tuple(n for n, event in living.items() if event.turn.seq in seqs)
            events.append(Forgotten(n, START, f"forget-{n}", turns, tuple(f"mark-{t}" for t in turns)))
            for t in turns:
                del living[t]
        elif kind == "erased":
            events.append(Erased(n, START, f"mark-{n}", "before"))
        elif kind == "accesses":
            ids = [piece.id for event in living.values() for piece in event.pieces]
            events.append(Accesses(n, START, dict.fromkeys(ids, (n, START))))
        elif kind == "tallied":
            events.append(Tallied(n, START, {"noise/greeting": n, f"secret/{n % 2}": 1}))
        else:
            text = draw(st.text("猫狗ab \0", min_size=1, max_size=12))
            living[n] = said(n, turn(text, draw(st.integers(0, 2)), tags=draw(st.sampled_from([(), ("t",)]))), size=5)
            events.append(living[n])
    return events


def _apply(path: Path, batches: list[list[Event]]) -> dict[str, list[tuple[object, ...]]]:
    """The rows after these batches, with the box restarted between them."""
    rows: dict[str, list[tuple[object, ...]]] = {}
    for batch in batches:
        database = Database(path, MIGRATIONS)
        memories = Memories(database, Characters(), KEY)
        memories.apply(batch).result()
        memories.close()
        rows = dump(database)
        assert database.integrity() == []
        database.close()
    return rows


@settings(max_examples=20)
@given(histories(), st.data())
def test_applying_again_in_any_batches_and_after_erasing_gives_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("apply")
    cut = data.draw(st.integers(0, len(events)))
    back = data.draw(st.integers(0, cut))
    once = _apply(directory / "once", [events])
    assert _apply(directory / "twice", [events[:cut], events[back:]]) == once
    marks = {
        n: (mark, e.id) for e in events if isinstance(e, Forgotten) for n, mark in zip(e.turns, e.marks, strict=True)
    }
    rewritten = [Erased(e.n, e.at, *marks[e.n]) if e.n in marks else e for e in events]
    assert _apply(directory / "rewritten", [rewritten]) == once


def test_marks_tell_what_was_forgotten(ledger: Ledger) -> None:
    assert ledger.memories.mark(b"x") == mark(KEY, b"x")
    assert ledger.queries.is_erased([mark(KEY, b"x")]) == set()
    forgotten = Forgotten(1, START, "f", (7,), (mark(KEY, b"x"),))
    ledger.memories.apply([forgotten]).result()
    assert ledger.queries.is_erased([mark(KEY, b"y"), mark(KEY, b"x")]) == {mark(KEY, b"x")}
