"""What a deep recall brings from the archive, and when."""

from __future__ import annotations

import pytest
from memory_fakes import Model, Room, ask, at_cosine, texts, unit
from test_recall_deep import apart

from edge.types import Depth, Filter, MemoryState

EAST = unit(1)


def room_of(*rows: tuple[str, float, bool]) -> Room:
    room = Room()
    for text, cosine, archived in rows:
        room.keep(text, apart(cosine, len(room.rows)), session=f"s{len(room.rows)}", archived=archived)
    return room


def test_a_deep_recall_that_finds_too_little_looks_into_the_archive() -> None:
    room = room_of(("在手边", 0.9, False), ("收起来了", 0.8, True), ("远的", 0.1, False))
    found = ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP, top_k=2)
    assert texts(found) == ["在手边", "收起来了"]
    assert [hit.memory.archived for hit in found.hits] == [False, True]


def test_a_shallow_recall_does_not_and_include_archived_does() -> None:
    room = room_of(("在手边", 0.9, False), ("收起来了", 0.8, True))
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.SHALLOW)) == ["在手边"]
    asked = ask(Model(EAST), {"public": room}, "?", depth=Depth.SHALLOW, filter=Filter(include_archived=True))
    assert texts(asked) == ["在手边", "收起来了"]


def test_enough_at_hand_leaves_the_archive_alone() -> None:
    room = room_of(("甲", 0.9, False), ("乙", 0.8, False), ("收起来了", 0.99, True))
    found = ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP, top_k=2)
    assert {hit.memory.archived for hit in found.hits} == {False}


def test_what_bears_on_nothing_stays_in_the_archive() -> None:
    room = room_of(("在手边", 0.9, False), ("远的", 0.3, False), ("收起来的也远", 0.3, True))
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP)) == ["在手边", "远的"]


def test_what_was_rejected_is_not_brought() -> None:
    room = room_of(("在手边", 0.9, False))
    room.keep("说错了", at_cosine(0.95), session="x", archived=True, state=MemoryState.REJECTED)
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP)) == ["在手边"]


def test_of_equals_the_one_at_hand_comes_first() -> None:
    room = Room()
    room.keep("收起来了", EAST, session="a", archived=True)
    room.keep("在手边", EAST, session="b")
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP)) == ["在手边", "收起来了"]


@pytest.mark.parametrize("top_k", [1, 2, 3, 4])
def test_what_bears_on_the_question_at_hand_is_never_pushed_out(top_k: int) -> None:
    near = [(f"近{n}", 0.6 + n / 100, False) for n in range(2)]
    room = room_of(*near, ("远的", 0.2, False), *((f"收{n}", 0.95, True) for n in range(5)))
    found = ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP, top_k=top_k)
    assert len(found.hits) == top_k
    assert sum(hit.memory.text.startswith("近") for hit in found.hits) == min(2, top_k)
    assert sum(hit.memory.archived for hit in found.hits) == max(0, top_k - 2)
