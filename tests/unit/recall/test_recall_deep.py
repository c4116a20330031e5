"""What a deep recall does beyond a shallow one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from memory_fakes import FAKE, NOW, Model, Room, ask, at_cosine, recalling, texts, unit

from edge.config import Recalling
from edge.recall import fuse
from edge.recall.candidates import Asked
from edge.recall.cues import cue
from edge.recall.deep import REACH, Deep
from edge.recall.evidence import Evidence
from edge.recall.neighbours import NEXT, SECOND
from edge.recall.search import Ranked, Search
from edge.recall.stopwatch import Stopwatch
from edge.recall.temporal import Times
from edge.types import Depth, Filter, Question, Vector

EAST = unit(1)
QUIET = Evidence(Times((), "q", latest=False, asks_when=False), cue("q"), NOW)


def searched(room: Room, weights: fuse.Weights = fuse.PRESETS["tuned"], wanted: int = 32) -> Search:
    search = Search({"public": room}, Filter(), weights, QUIET, wanted)
    search.asked = [Asked(FAKE, EAST)]
    search.by_nearness({"fake": {}})
    return search


def deep(
    search: Search, count: int = 5, clock: Callable[[], float] = lambda: 0.0
) -> tuple[dict[int, Ranked], tuple[str, ...]]:
    stages = Deep(search, 0.05, clock)
    found = stages.run(search.best(0), count, Stopwatch())
    return {one.memory.rowid: one for one in found}, stages.notes


def apart(cosine: float, way: int) -> Vector:
    """A vector with this cosine to the question, each of six ways unlike the others."""
    vector = np.zeros(4, np.float32)
    vector[0], vector[1 + way % 3] = at_cosine(cosine)[:2]
    vector[1:] *= (-1) ** (way // 3)
    return vector


def room_of(*cosines: float, **changes: object) -> Room:
    room = Room()
    for n, cosine in enumerate(cosines):
        room.keep(f"第{n}句", apart(cosine, n), **changes)
    return room


def test_what_was_said_beside_a_good_hit_is_lifted_by_it() -> None:
    room = room_of(0.2, 0.2, 0.8, 0.2, 0.2)
    search = searched(room)
    before = {one.memory.rowid: one.score for one in search.best(0)}
    after, notes = deep(search)
    lifted = {rowid: one.score - before[rowid] for rowid, one in after.items()}
    assert [lifted[2], lifted[4]] == pytest.approx([NEXT * before[3]] * 2)
    assert [lifted[1], lifted[5]] == pytest.approx([SECOND * before[3]] * 2)
    assert after[2].signals.association == pytest.approx(NEXT * before[3] / fuse.PRESETS["tuned"].association)
    assert next(iter(after)) == 3
    assert notes == ()


def test_an_answer_two_turns_after_the_question_is_found_though_nothing_else_speaks_for_it() -> None:
    room = Room()
    room.keep("你们周末去哪儿了", at_cosine(0.9))
    room.keep("猜猜看", at_cosine(0.0))
    answer = room.keep("植物园", at_cosine(0.0))
    for n in range(600):
        room.keep(f"路人{n}", at_cosine(0.28), session=f"s{n}")
    for depth, found in ((Depth.SHALLOW, False), (Depth.DEEP, True)):
        hits = ask(Model(EAST), {"public": room}, "?", depth=depth).hits
        assert (answer in [hit.memory for hit in hits]) is found


def test_what_was_said_elsewhere_is_beside_nothing_here() -> None:
    rooms = {"public": room_of(0.9), "private/me": room_of(0.2)}
    rooms["public"].keep("别处", at_cosine(0.2), session="t")
    found = ask(Model(EAST), rooms, "?", depth=Depth.DEEP)
    assert [hit.signals.association for hit in found.hits] == [0.0, 0.0, 0.0]


def test_a_memory_without_neighbours_is_as_it_was() -> None:
    room = Room()
    for n, cosine in enumerate((0.9, 0.5, 0.3)):
        room.keep(f"第{n}句", apart(cosine, n), session=f"s{n}")
    search = searched(room)
    before = {one.memory.rowid: one.score for one in search.best(0)}
    assert {rowid: one.score for rowid, one in deep(search)[0].items()} == before


def test_neighbours_of_the_best_only_are_looked_at() -> None:
    room = room_of(*[0.9 - n / 1000 for n in range(REACH + 40)])
    deep(searched(room, wanted=REACH + 40))
    assert sorted(room.looked_around) == list(range(1, REACH + 1))


def test_a_stage_whose_time_is_up_is_cut_short_and_says_how_far_it_came() -> None:
    room = room_of(*[0.9 - n / 1000 for n in range(REACH)])
    ticks = itertools.count(0.0, 0.03)
    found, notes = deep(searched(room, wanted=REACH), clock=lambda: next(ticks))
    assert len(notes) == 1
    assert f"12 of {REACH}" in notes[0]
    assert "50 ms" in notes[0]
    assert len(room.looked_around) == 12
    assert len(found) == 5


def test_a_stage_without_any_time_still_gives_what_was_found() -> None:
    room = room_of(0.9, 0.5)
    ticks = itertools.count(0.0, 1.0)
    found, notes = deep(searched(room), clock=lambda: next(ticks))
    assert list(found) == [1, 2]
    assert "0 of 2" in notes[0]


def test_a_stage_that_ends_in_time_says_nothing() -> None:
    recall = recalling(Model(EAST), config=Recalling(stage_seconds=1000.0))
    answer = recall.recall(Question("?", ("public",), depth=Depth.DEEP), {"public": room_of(0.9, 0.5)})
    assert answer.notes == ()


def test_of_twins_one_comes_first_and_the_other_behind_what_says_something_else() -> None:
    room = Room()
    for text, vector in (("甲", EAST), ("甲", EAST), ("乙", at_cosine(0.87))):
        room.keep(text, vector, session=f"s{len(room.rows)}")
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.SHALLOW)) == ["甲", "甲", "乙"]
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP)) == ["甲", "乙", "甲"]
    assert texts(ask(Model(EAST), {"public": room}, "?", depth=Depth.DEEP, top_k=2)) == ["甲", "乙"]


def test_without_vectors_nothing_is_put_off() -> None:
    room = Room()
    for text in ("猫", "猫", "猫 狗"):
        room.keep(text)
    assert sorted(texts(ask(Model(EAST), {"public": room}, "猫", depth=Depth.DEEP))) == ["猫", "猫", "猫 狗"]


@pytest.mark.parametrize("weights", [*fuse.PRESETS.values(), *fuse.ALONE.values()])
def test_signals_are_shares_whatever_is_lifted(weights: fuse.Weights) -> None:
    found, _ = deep(searched(room_of(0.9, 0.8, 0.7), weights))
    for one in found.values():
        assert all(0 <= getattr(one.signals, name) <= 1 for name in fuse.SIGNALS)
    assert [one.score for one in found.values()] == sorted((one.score for one in found.values()), reverse=True)


def test_a_neighbour_that_is_gone_says_nothing() -> None:
    room = room_of(0.9, 0.3)
    search = searched(room)
    found = search.best(0)
    del room.rows[2]
    left = [one for one in found if one.memory.rowid == 1]
    again = Deep(search, 0.05, lambda: 0.0).run(left, 5, Stopwatch())
    assert [(one.memory.rowid, one.score) for one in again] == [(1, left[0].score)]
