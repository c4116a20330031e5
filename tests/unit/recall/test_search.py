"""The order of what was found, and how few rows it takes to know its beginning."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import DAY, FAKE, NOW, Room

from edge.recall import fuse
from edge.recall.candidates import Asked
from edge.recall.cues import Cue, cue
from edge.recall.evidence import HINT, Evidence
from edge.recall.search import Ranked, Search
from edge.recall.temporal import Times, Window
from edge.types import Filter, MemoryState, ModelInfo

MODELS = (FAKE, ModelInfo("other", 4, "cpu", 1, 0, unrelated=0.45, related=0.7))
EVERYTHING = Filter()
NO_TIME = Times((), "q", latest=False, asks_when=False)
LAST_WEEK = Times((Window(NOW - 7 * DAY, NOW, True, 0, 1),), "q", latest=False, asks_when=False)

TIMES = st.sampled_from(
    [
        NO_TIME,
        LAST_WEEK,
        dataclasses.replace(LAST_WEEK, latest=True, asks_when=True),
        dataclasses.replace(NO_TIME, latest=True),
        dataclasses.replace(NO_TIME, asks_when=True),
    ]
)
CUES = st.sampled_from(["q", "what did I say", "what did you say", "what did kim say", "what did I tell kim"]).map(cue)
COUNTED = st.sampled_from([0.0, 0.05, 0.3, 1.0])
WEIGHTS = st.sampled_from([*fuse.PRESETS.values(), *fuse.ALONE.values()]) | st.builds(
    fuse.Weights, *[COUNTED] * len(fuse.SIGNALS), product=st.booleans()
)
HINTED = st.sampled_from([HINT, 1.0])
COSINES = st.dictionaries(st.sampled_from([info.id for info in MODELS]), st.floats(-1, 1, width=32), max_size=2)
ROWS = st.tuples(
    COSINES,
    st.sampled_from([0.0, 0.0, 1.0, 7.5]),
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "Kim", "lee"]),
            "occurred_at": st.integers(-90, 9000).map(lambda days: NOW - days * DAY),
            "weight": st.sampled_from([0.0, 1.0, 5.0, 10.0]),
            "access_count": st.sampled_from([0, 3, 1000]),
            "text": st.sampled_from(["a cat", "on 3 May 2024"]),
            "state": st.sampled_from([MemoryState.TEMPORARY] * 4 + [MemoryState.SUPERSEDED]),
            "archived": st.sampled_from([False] * 4 + [True]),
            "tags": st.sampled_from([(), ("t",)]),
        }
    ),
    st.booleans(),
)
FILTERS = st.sampled_from([Filter(), Filter(include_archived=True), Filter(tags=("t",)), Filter(since=NOW - 30 * DAY)])


def searching(
    rows: list[tuple[dict[str, float], float, dict[str, object], bool]],
    evidence: Evidence,
    weights: fuse.Weights,
    filter: Filter = EVERYTHING,
) -> Search:
    """A search that has found these candidates, each in one of two spaces."""
    rooms = {"public": Room(), "private/me": Room()}
    search = Search(rooms, filter, weights, evidence, wanted=4)
    search.asked = [Asked(info, None) for info in MODELS]  # type: ignore[arg-type]  # the cosines are given here
    for n, (cosines, words, changes, mine) in enumerate(rows):
        space = "private/me" if mine else "public"
        row = rooms[space].keep(**{"text": "a cat", "id": f"id-{n}", "space": space, **changes})  # type: ignore[arg-type]  # fields of a memory
        candidate = search.candidates.of(space, row.rowid)
        candidate.words = words
        candidate.cosines.update(cosines)
    search.know()
    return search


def all_read(search: Search) -> list[Ranked]:
    return search.in_order(search.rank(search.fetch(search.candidates.all())))


@given(st.lists(ROWS, max_size=20), TIMES, CUES, WEIGHTS, FILTERS, st.integers(1, 5), st.integers(1, 8), HINTED)
def test_the_first_few_are_those_that_reading_every_row_would_give(
    rows: list[tuple[dict[str, float], float, dict[str, object], bool]],
    times: Times,
    asked: Cue,
    weights: fuse.Weights,
    filter: Filter,
    count: int,
    first: int,
    window: float,
) -> None:
    evidence = Evidence(times=times, cue=asked, now=NOW, window=window)
    search = searching(rows, evidence, weights, filter)
    with patch("edge.recall.search._FIRST", first):
        best = search.best(count)
    # Whether a speaker is named was seen by then.
    expected = all_read(search)[:count]
    assert [one.key for one in best] == [one.key for one in expected]
    assert [one.score for one in best] == [one.score for one in expected]


@given(st.lists(ROWS, max_size=20), TIMES, CUES, WEIGHTS)
def test_all_are_ranked_where_all_are_wanted(
    rows: list[tuple[dict[str, float], float, dict[str, object], bool]],
    times: Times,
    asked: Cue,
    weights: fuse.Weights,
) -> None:
    search = searching(rows, Evidence(times=times, cue=asked, now=NOW), weights)
    found = search.best(0)
    assert [one.key for one in found] == [one.key for one in all_read(search)]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@given(st.lists(ROWS, max_size=20), TIMES, CUES, WEIGHTS)
def test_nothing_adds_more_to_nearness_and_words_than_it_is_bounded_by(
    rows: list[tuple[dict[str, float], float, dict[str, object], bool]],
    times: Times,
    asked: Cue,
    weights: fuse.Weights,
) -> None:
    weights = dataclasses.replace(weights, product=False)
    search = searching(rows, Evidence(times=times, cue=asked, now=NOW), weights)
    for one in search.best(0):
        base = weights.semantic * one.signals.semantic + weights.lexical * one.signals.lexical
        assert one.score <= base + search.evidence.most(weights) + 1e-9


def test_rows_that_cannot_come_among_the_first_are_not_read() -> None:
    rows = [({"fake": 0.9 - n / 100}, 0.0, {}, False) for n in range(60)]
    search = searching(list(rows), Evidence(NO_TIME, cue("q"), NOW), fuse.PRESETS["tuned"])
    assert [one.candidate.rowid for one in search.best(3)] == [1, 2, 3]
    room = search.rooms["public"]
    assert isinstance(room, Room)
    assert sum(map(len, room.fetched)) < 40


def test_rows_are_read_once_and_a_space_at_a_time() -> None:
    rows = [({"fake": 0.5}, 0.0, {}, bool(n % 2)) for n in range(20)]
    search = searching(rows, Evidence(NO_TIME, cue("q"), NOW), fuse.PRESETS["product"])
    search.best(5)
    assert [len(room.fetched) for room in search.rooms.values() if isinstance(room, Room)] == [1, 1]


def test_candidates_that_are_all_gone_are_no_answer() -> None:
    rows = [({"fake": 0.9}, 1.0, {"archived": True}, bool(n % 2)) for n in range(9)]
    search = searching(rows, Evidence(NO_TIME, cue("q"), NOW), fuse.PRESETS["tuned"])
    assert search.best(0) == search.best(5) == []


@pytest.mark.parametrize("weights", [*fuse.PRESETS.values(), *fuse.ALONE.values()])
def test_no_candidates_are_no_answer(weights: fuse.Weights) -> None:
    assert searching([], Evidence(LAST_WEEK, cue("q"), NOW), weights).best(5) == []
