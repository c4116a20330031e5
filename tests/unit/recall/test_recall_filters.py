"""A filter keeps what it names, and nothing else has a part in the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import DAY, NOW, Model, Room, ask, at_cosine, texts, unit

from edge.recall.near import matches, near
from edge.recall.recall import NEAREST
from edge.types import Answer, Depth, Filter, Lane, MemoryState, Vector

EAST = unit(1)


def test_a_filter_is_answered_exactly() -> None:
    room = Room()
    room.keep("我家的猫叫豆包", EAST)
    room.keep("今天的雨停了", unit(0, 1), tags=("weather", "today"))
    answer = ask(Model(EAST), {"public": room}, filter=Filter(tags=("weather",)))
    assert texts(answer) == ["今天的雨停了"]
    assert room.searched == []
    assert ask(Model(EAST), {"public": room}, filter=Filter(tags=("none",))).hits == ()


def test_a_filter_that_lets_much_through_uses_the_index() -> None:
    room = Room()
    for n in range(1000):
        room.keep("路人", unit(1, n / 500), source="a" if n % 2 else "b")
    answer = ask(Model(EAST), {"public": room}, filter=Filter(sources=("a",)))
    assert [hit.memory.rowid for hit in answer.hits] == [2, 4, 6, 8, 10]
    assert room.searched == [8 * NEAREST]


def test_a_filter_of_too_many_to_list_looks_further_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.recall.near.EXACT_LIMIT", 10)
    room = Room()
    for n in range(400):
        room.keep("路人", unit(1, n / 200), source="a" if n >= 380 else "b")
    found = near(room, "fake", EAST, 5, Filter(sources=("a",)))
    assert list(found) == [381, 382, 383, 384, 385]
    assert room.searched == [20, 80, 320, 400]


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_archived_and_superseded_rows_do_not_hide_what_lies_behind_them(depth: Depth) -> None:
    room = Room()
    for n in range(200):
        gone = {"archived": True} if n % 2 else {"state": MemoryState.SUPERSEDED}
        room.keep("路人", unit(1, n / 1000), **gone)
    room.keep("活着", unit(1, 1))
    found = ask(Model(EAST), {"public": room}, depth=depth).hits
    assert [hit.memory.text for hit in found if not hit.memory.archived] == ["活着"]
    # A deep recall that finds too little looks into the archive.
    assert (len(found) > 1) is (depth is Depth.DEEP)
    kept = ask(Model(EAST), {"public": room}, filter=Filter(include_archived=True), top_k=1, depth=depth)
    assert kept.hits[0].memory.archived


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_rows_forgotten_meanwhile_are_left_out(depth: Depth) -> None:
    room = Room()
    for text in ("猫", "鱼", "鸟"):
        room.keep(text, EAST)
    del room.rows[1]
    assert sorted(texts(ask(Model(EAST), {"public": room}, depth=depth))) == ["鱼", "鸟"]
    room.rows.clear()
    assert ask(Model(EAST), {"public": room}, depth=depth).hits == ()


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_what_is_forgotten_while_the_model_works_does_not_come_back(depth: Depth) -> None:
    room = Room()
    for text in ("猫叫豆包", "猫爱睡觉"):
        room.keep(text, EAST)

    class Slow(Future[Vector]):
        def result(self, timeout: float | None = None) -> Vector:
            room.rows.pop(1, None)
            return super().result(timeout)

    class Thinking(Model):
        def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
            future = Slow()
            future.set_result(EAST)
            return [future]

    assert texts(ask(Thinking(EAST), {"public": room}, "猫", depth=depth)) == ["猫爱睡觉"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(["猫", "狗", "我的猫在睡觉", "*"]),
            "cosine": st.none() | st.floats(-1, 1, width=16),
            "source": st.sampled_from("ab"),
            "session": st.sampled_from("st"),
            "kind": st.sampled_from(["turn", "note"]),
            "tags": st.sampled_from([(), ("x",), ("x", "y")]),
            "archived": st.booleans(),
            "state": st.sampled_from([MemoryState.TEMPORARY, MemoryState.CONFIRMED, MemoryState.SUPERSEDED]),
            "occurred_at": st.integers(0, 9).map(lambda days: NOW - days * DAY),
        }
    ),
    max_size=12,
)
DAYS = st.none() | st.integers(0, 9).map(lambda days: NOW - days * DAY)
FILTERS = st.builds(
    Filter,
    since=DAYS,
    until=DAYS,
    tags=st.sampled_from([(), ("x",), ("y", "x")]),
    kinds=st.sampled_from([(), ("note",)]),
    sources=st.sampled_from([(), ("a",), ("a", "b")]),
    sessions=st.sampled_from([(), ("s",)]),
    include_archived=st.booleans(),
)
QUERIES = st.sampled_from(["猫", "还记得吗，我的猫", "昨天的猫", "*", "我最近一次说的是什么", "cat"])


def filled(rows: list[dict[str, object]]) -> Room:
    room = Room()
    for row in rows:
        cosine = row["cosine"]
        changes = {name: value for name, value in row.items() if name not in ("text", "cosine")}
        room.keep(str(row["text"]), at_cosine(cosine) if isinstance(cosine, float) else None, **changes)
    return room


@given(ROWS, FILTERS, QUERIES, st.sampled_from(list(Depth)), st.integers(1, 12))
def test_a_filter_never_leaks(
    rows: list[dict[str, object]], filter: Filter, query: str, depth: Depth, count: int
) -> None:
    room = filled(rows)
    answer = ask(Model(EAST), {"public": room}, query, filter=filter, depth=depth, top_k=count, zone="UTC")
    # A deep recall that finds too little looks into the archive; of what was rejected nothing comes from there.
    wide = dataclasses.replace(filter, include_archived=filter.include_archived or answer.depth is Depth.DEEP)
    assert all(matches(hit.memory, wide) for hit in answer.hits)
    assert len(answer.hits) <= count
    assert len({hit.memory.id for hit in answer.hits}) == len(answer.hits)


@given(ROWS, FILTERS, QUERIES)
def test_what_a_filter_leaves_out_has_no_part_in_the_scores_of_the_rest(
    rows: list[dict[str, object]], filter: Filter, query: str
) -> None:
    def scores(answer: Answer) -> list[tuple[str, float]]:
        return [(hit.memory.id, hit.score) for hit in answer.hits]

    filter = dataclasses.replace(filter, since=filter.since or 0)
    room, narrowed = filled(rows), filled(rows)
    for rowid, row in list(narrowed.rows.items()):
        if not matches(row, filter):
            del narrowed.rows[rowid]
            narrowed.stored["fake"].pop(rowid, None)
    asked = {"filter": filter, "depth": Depth.SHALLOW, "top_k": 20, "zone": "UTC"}
    whole = ask(Model(EAST), {"public": room}, query, **asked)
    assert scores(whole) == scores(ask(Model(EAST), {"public": narrowed}, query, **asked))


def test_a_neighbour_that_the_filter_leaves_out_neither_appears_nor_lends_support() -> None:
    room = Room()
    room.keep("问题", at_cosine(0.9), source="a")
    room.keep("答案", at_cosine(0.3), source="a", tags=("kept",))
    answer = ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP, filter=Filter(tags=("kept",)))
    assert texts(answer) == ["答案"]
    assert answer.hits[0].signals.association == 0.0
    lifted = ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP)
    assert next(hit for hit in lifted.hits if hit.memory.tags).signals.association > 0.0
