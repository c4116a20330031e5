"""What a question makes of each memory."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import DAY, NOW, memory, unit

from edge.recall import fuse
from edge.recall.candidates import Asked, Candidate, within
from edge.recall.cues import cue
from edge.recall.evidence import HINT, Evidence, hints, scales
from edge.recall.temporal import Times, Window
from edge.types import Filter, Memory, ModelInfo, Signals

NO_TIME = Times((), "q", latest=False, asks_when=False)
ZH = ModelInfo("zh", 4, "cpu", 1, 0, unrelated=0.25, related=0.55)
TOLD = memory(1, "on 3 May 2024 we met")


def evidence(query: str = "q", times: Times = NO_TIME, **changes: object) -> Evidence:
    return dataclasses.replace(Evidence(times, cue(query), NOW), **changes)  # type: ignore[arg-type]  # the tests name real fields


def candidate(words: float = 0.0, **cosines: float) -> Candidate:
    return Candidate("public", 1, words, cosines)


def values(seen: Evidence, found: Candidate, row: Memory) -> Signals:
    return Signals(seen.semantic(found), seen.lexical(found), *seen.told(row))


def test_words_are_measured_by_the_best_words() -> None:
    assert evidence(best_words=8.0).lexical(candidate(2.0)) == 0.25
    assert evidence(best_words=0.0).lexical(candidate(0.0)) == 0.0


def test_what_has_no_vector_is_as_near_as_its_words_are_good() -> None:
    assert evidence(best_words=8.0).semantic(candidate(2.0)) == 0.25


def test_the_best_cosine_is_that_of_the_candidates_of_this_model() -> None:
    found = [candidate(zh=0.5), candidate(zh=0.85, en=0.9), candidate(en=0.95), candidate()]
    assert scales(found, [Asked(ZH, unit(1))])["zh"].best == 0.85
    assert scales([], [Asked(ZH, unit(1))])["zh"].nearness(0.25) == 0.0


def test_who_is_spoken_of_is_in_the_signal_of_association() -> None:
    mine = evidence("what did I tell kim")
    for role in ("user", "assistant", "kim"):
        for named in (True, False):
            signals = values(dataclasses.replace(mine, named=named), candidate(), memory(1, "", role=role))
            assert signals.association == mine.cue.fit(role, named=named)


@pytest.mark.parametrize(("days", "signal"), [(0, 0.0), (1, 1.0), (3, 1.0), (7, 1.0), (8, 0.0)])
def test_what_lies_in_a_window_has_all_of_the_time_signal(days: int, signal: float) -> None:
    week = dataclasses.replace(NO_TIME, windows=(Window(NOW - 7 * DAY, NOW, True, 0, 1),))
    assert evidence(times=week).time(memory(1, "", occurred_at=NOW - days * DAY)) == signal


def test_a_window_that_is_a_hint_says_less_and_lowers_nothing() -> None:
    week = Times((Window(NOW - 7 * DAY, NOW, True, 0, 1),), "q", latest=False, asks_when=True)
    hinted, whole = evidence(times=week, window=HINT), evidence(times=week)
    for days in (1, 9):
        for text in ("on 3 May 2024 we met", "we met"):
            row = memory(1, text, occurred_at=NOW - days * DAY)
            without = evidence(times=dataclasses.replace(week, windows=())).time(row)
            assert without <= hinted.time(row) <= whole.time(row)


def test_hints_are_times_that_are_over_and_named_with_their_bounds() -> None:
    over, loose, going_on = (
        Window(NOW - 7 * DAY, NOW, True, 0, 1),
        Window(NOW - 7 * DAY, NOW, False, 0, 1),
        Window(NOW - DAY, NOW + 1, True, 0, 1),
    )
    hinted = hints(Times((over, loose, going_on), "q", latest=True, asks_when=True), NOW)
    assert hinted == Times((over,), "q", latest=False, asks_when=True)


def test_the_last_one_is_the_more_recent_one() -> None:
    latest = evidence(times=dataclasses.replace(NO_TIME, latest=True))
    new, old = (latest.time(memory(1, "", occurred_at=NOW - days * DAY)) for days in (1, 60))
    assert 0 < old < new < 1


def test_when_it_was_is_told_by_what_tells_a_time() -> None:
    when = evidence(times=dataclasses.replace(NO_TIME, asks_when=True))
    assert when.time(TOLD) > 0 == when.time(memory(1, "we met"))
    assert evidence().time(TOLD) == 0.0


@given(st.floats(0, 1e6), st.integers(0, 10**9), st.integers(0, 2**62), st.sampled_from(["user", "kim", "assistant"]))
def test_every_signal_is_a_share(weight: float, accesses: int, occurred_at: int, role: str) -> None:
    row = memory(1, "on 3 May", weight=weight, access_count=accesses, occurred_at=occurred_at, role=role)
    times = Times((Window(NOW - DAY, NOW, False, 0, 1),), "q", latest=True, asks_when=True)
    asked = evidence(
        "what did I tell kim", times, best_words=1.0, scales=scales([candidate(zh=0.5)], [Asked(ZH, unit(1))])
    )
    signals = values(asked, candidate(0.4, zh=0.45), row)
    assert all(0 <= getattr(signals, name) <= 1 for name in fuse.SIGNALS)


def test_a_half_life_is_in_days() -> None:
    assert values(evidence(half_life=7.0), candidate(), memory(1, "", occurred_at=NOW - 7 * DAY)).recency == 0.5


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, (10, 20)),
        (5, 15, (10, 15)),
        (15, 25, (15, 20)),
        (12, 13, (12, 13)),
        (20, None, None),
        (None, 10, None),
    ],
)
def test_a_window_and_a_filter_leave_what_both_let_through(
    since: int | None, until: int | None, expected: tuple[int, int] | None
) -> None:
    narrowed = within(Filter(since=since, until=until, tags=("t",)), 10, 20)
    assert (narrowed and (narrowed.since, narrowed.until, narrowed.tags)) == (expected and (*expected, ("t",)))
