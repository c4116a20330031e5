from __future__ import annotations

import enum
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import Decaying
from edge.errors import InvalidArgument
from edge.types import DAY, MemoryState, Micros
from edge.upkeep.decay import (
    DEFAULT,
    Borders,
    DecayRule,
    Rules,
    archive_before,
    cold_before,
    explicit,
    half_life,
    steady,
    strength,
)

NOW = 1_767_225_600_000_000
STATES = st.sampled_from([MemoryState.TEMPORARY, MemoryState.CANDIDATE, MemoryState.CONFIRMED, MemoryState.SUPERSEDED])
TIMES = st.integers(0, 4_102_444_800_000_000)
COUNTS = st.integers(0, 10_000)
WEIGHTS = st.floats(0, 10)
RULES = st.builds(
    DecayRule,
    half_life_days=st.floats(14, 60),
    archive_below=st.floats(0.001, 0.9),
    cold_after_days=st.floats(1, 3650),
)


class Fate(enum.Enum):
    """Where a memory belongs: at hand, in the archive (found when asked for), or in the cold file."""

    KEEP = "keep"
    ARCHIVE = "archive"
    COLD = "cold"


def settled_use(occurred_at: Micros, created_at: Micros, accessed_at: Micros, now: Micros) -> Micros:
    """The last use as far as moving goes: nothing counts as unused for longer than it has been in the box."""
    return min(now, max(occurred_at, created_at, accessed_at))


def fate(
    occurred_at: Micros,
    created_at: Micros,
    accessed_at: Micros,
    access_count: int,
    weight: float,
    now: Micros,
    rule: DecayRule = DEFAULT,
    state: MemoryState = MemoryState.CONFIRMED,
) -> Fate:
    """Explicit: KEEP. Below the border for as long as it was here: ARCHIVE, and COLD what was never recalled and is
    neither younger nor here for less than 180 days."""
    if explicit(weight, state):
        return Fate.KEEP
    used = settled_use(occurred_at, created_at, accessed_at, now)
    if used > archive_before(now, rule, weight, state, access_count):
        return Fate.KEEP
    if access_count <= 0 and used <= cold_before(now, rule):
        return Fate.COLD
    return Fate.ARCHIVE


def after(days: float, **more: object) -> float:
    kwargs: dict[str, object] = {"accessed_at": 0, "access_count": 0, "weight": 1.0, **more}
    return strength(NOW - int(days * DAY), now=NOW, **kwargs)  # type: ignore[arg-type]  # state, rule


def test_strength_halves_every_thirty_days() -> None:
    assert after(0) == 1
    assert after(30) == pytest.approx(0.5)
    assert after(60) == pytest.approx(0.25)


def test_the_half_life_is_the_rules() -> None:
    assert after(14, rule=DecayRule(half_life_days=14)) == pytest.approx(0.5)
    assert after(60, rule=DecayRule(half_life_days=60)) == pytest.approx(0.5)


def test_a_temporary_memory_fades_twice_as_fast() -> None:
    assert after(15, state=MemoryState.TEMPORARY) == pytest.approx(0.5)


def test_a_recall_restores_it_and_makes_it_last() -> None:
    recalled = NOW - 30 * DAY
    once = strength(NOW - 300 * DAY, recalled, 1, 1.0, NOW)
    often = strength(NOW - 300 * DAY, recalled, 7, 1.0, NOW)
    assert after(300) < 0.001
    assert strength(NOW - 300 * DAY, NOW, 1, 1.0, NOW) == 1
    assert 0.5 < once < often < math.sqrt(0.5) + 0.001


def test_weight_slows_it_four_times_at_most() -> None:
    candidate = MemoryState.CANDIDATE
    assert after(120, weight=5.0, state=candidate) == pytest.approx(0.5)
    assert after(120, weight=10.0, state=candidate) == pytest.approx(0.5)
    assert after(30, weight=0.0) == pytest.approx(0.5)


def test_what_the_owner_asked_for_never_falls_below_the_border() -> None:
    assert after(10_000, weight=5.0) == DEFAULT.archive_below
    assert fate(0, 0, 0, 0, 5.0, NOW) is Fate.KEEP
    assert fate(0, 0, 0, 0, 5.0, NOW, state=MemoryState.CANDIDATE) is not Fate.KEEP


def test_it_is_kept_then_archived_then_cold() -> None:
    def at(days: float) -> Fate:
        return fate(NOW - int(days * DAY), NOW - int(days * DAY), 0, 0, 1.0, NOW)

    assert [at(days) for days in (0, 129, 130, 179, 180, 4000)] == [
        Fate.KEEP, Fate.KEEP, Fate.ARCHIVE, Fate.ARCHIVE, Fate.COLD, Fate.COLD,
    ]  # fmt: skip


def test_what_was_read_in_today_stays_however_long_ago_it_was_said() -> None:
    old = NOW - 1800 * DAY
    assert strength(old, 0, 0, 1.0, NOW) < 0.001
    assert fate(old, NOW - 129 * DAY, 0, 0, 1.0, NOW) is Fate.KEEP
    assert fate(old, NOW - 130 * DAY, 0, 0, 1.0, NOW) is Fate.ARCHIVE
    assert fate(old, NOW - 179 * DAY, 0, 0, 1.0, NOW) is Fate.ARCHIVE
    assert fate(old, NOW - 180 * DAY, 0, 0, 1.0, NOW) is Fate.COLD


@given(TIMES, TIMES, TIMES, COUNTS, WEIGHTS, TIMES, RULES, STATES)
def test_nothing_that_is_strong_is_moved(
    occurred: int, created: int, accessed: int, count: int, weight: float, now: int, rule: DecayRule, state: MemoryState
) -> None:
    if fate(occurred, created, accessed, count, weight, now, rule, state) is not Fate.KEEP:
        assert strength(occurred, accessed, count, weight, now, rule, state) <= rule.archive_below * (1 + 1e-6)


def test_a_kind_may_have_a_half_life_of_its_own() -> None:
    rules = Rules.of(Decaying(half_life_days=20, kinds={"preference": 60.0}, archive_below=0.1, cold_after_days=90))
    assert rules.rule("preference") == DecayRule(60, 0.1, 90)
    assert rules.rule("turn") == DecayRule(20, 0.1, 90)
    with pytest.raises(InvalidArgument) as refused:
        Rules.of(Decaying(kinds={"no kind": 30.0}))
    assert refused.value.field == "decay.kinds.no kind"


@given(TIMES, TIMES, TIMES, COUNTS, WEIGHTS, TIMES, RULES, STATES)
def test_borders_of_many_say_what_fate_says_of_one(
    occurred: int, created: int, accessed: int, count: int, weight: float, now: int, rule: DecayRule, state: MemoryState
) -> None:
    borders = Borders(Rules(rule), now)
    weak = settled_use(occurred, created, accessed, now) <= borders(("turn", int(state), weight, count))
    assert weak is (fate(occurred, created, accessed, count, weight, now, rule, state) is not Fate.KEEP)
    # Without a look at the clock, as SQL has it.
    assert weak is (max(occurred, created, accessed) <= borders(("turn", int(state), weight, count)))


def test_what_was_ever_recalled_is_archived_and_never_cold() -> None:
    assert fate(NOW - 4000 * DAY, NOW - 4000 * DAY, NOW - 3000 * DAY, 1, 1.0, NOW) is Fate.ARCHIVE


def test_what_is_strong_still_is_not_cold_however_long_it_was_not_recalled() -> None:
    assert fate(NOW - 200 * DAY, 0, 0, 0, 4.0, NOW) is Fate.KEEP


@given(TIMES, TIMES, COUNTS, WEIGHTS, TIMES, TIMES, RULES, STATES)
def test_it_never_rises_with_time_alone(
    occurred: int, accessed: int, count: int, weight: float, now: int, later: int, rule: DecayRule, state: MemoryState
) -> None:
    now, later = sorted((now, later))
    # What lies ahead counts as now for as long as it does.
    assert strength(occurred, accessed, count, weight, now, rule, state) >= strength(
        occurred, accessed, count, weight, later, rule, state
    )


@given(TIMES, TIMES, COUNTS, WEIGHTS, WEIGHTS, TIMES, RULES, STATES)
def test_more_weight_never_lowers_it(
    occurred: int, accessed: int, count: int, low: float, high: float, now: int, rule: DecayRule, state: MemoryState
) -> None:
    low, high = sorted((low, high))
    assert strength(occurred, accessed, count, low, now, rule, state) <= strength(
        occurred, accessed, count, high, now, rule, state
    )


@given(TIMES, TIMES, COUNTS, WEIGHTS, TIMES, RULES, STATES, st.integers(1, 50))
def test_a_recall_never_lowers_it(
    occurred: int, accessed: int, count: int, weight: float, now: int, rule: DecayRule, state: MemoryState, more: int
) -> None:
    before = strength(occurred, accessed, count, weight, now, rule, state)
    recalled = strength(occurred, max(accessed, now), count + more, weight, now, rule, state)
    assert 0 <= before <= recalled == 1


@given(WEIGHTS, COUNTS, TIMES, RULES, STATES)
def test_the_inverse_agrees_with_strength_on_both_sides_of_the_border(
    weight: float, count: int, now: int, rule: DecayRule, state: MemoryState
) -> None:
    border = archive_before(now, rule, weight, state, count)
    if explicit(weight, state):
        assert strength(-(1 << 60), 0, count, weight, now, rule, state) >= rule.archive_below
        return
    # Within a second: powers are rounded.
    second = 1_000_000
    assert strength(border - second, border - second, count, weight, now, rule, state) < rule.archive_below
    assert strength(border + second, border - second, count, weight, now, rule, state) > rule.archive_below


@given(TIMES, TIMES, TIMES, COUNTS, WEIGHTS, TIMES, RULES, STATES)
def test_a_query_by_the_last_use_misses_nothing_that_is_due(
    occurred: int, created: int, accessed: int, count: int, weight: float, now: int, rule: DecayRule, state: MemoryState
) -> None:
    if fate(occurred, created, accessed, count, weight, now, rule, state) is not Fate.KEEP:
        assert max(occurred, created, accessed) <= archive_before(now, rule, weight, state)


@given(TIMES, TIMES, COUNTS, WEIGHTS, TIMES, TIMES, STATES)
def test_a_clock_that_jumps_and_comes_back_leaves_no_trace(
    occurred: int, accessed: int, count: int, weight: float, now: int, wrong: int, state: MemoryState
) -> None:
    before = fate(occurred, 0, accessed, count, weight, now, state=state)
    fate(occurred, 0, accessed, count, weight, wrong, state=state)
    assert fate(occurred, 0, accessed, count, weight, now, state=state) is before


@given(TIMES, TIMES, COUNTS, WEIGHTS, TIMES, RULES)
def test_nothing_that_is_explicit_leaves_by_itself(
    occurred: int, accessed: int, count: int, weight: float, now: int, rule: DecayRule
) -> None:
    assert fate(occurred, 0, accessed, count, max(5.0, weight), now, rule, MemoryState.CONFIRMED) is Fate.KEEP


def test_what_lies_ahead_counts_as_now() -> None:
    assert strength(NOW + 400 * DAY, 0, 0, 1.0, NOW) == 1
    assert strength(NOW - 30 * DAY, NOW + 400 * DAY, 0, 1.0, NOW) == 1


def test_clocks_are_steady_when_both_went_alike_for_long_enough() -> None:
    def after(wall: float, monotonic: float) -> bool:
        return steady((NOW, 100.0), (NOW + int(wall * 1e6), 100.0 + monotonic), 3600.0)

    assert after(3600, 3600)
    assert after(3630, 3600)
    assert not after(3599, 3599)
    assert not after(400 * 86_400, 3600)
    assert not after(-86_400, 3600)
    # After a restart the monotonic clock begins anew.
    assert not after(3600, -50)


def test_the_cold_file_is_for_what_was_not_said_for_half_a_year() -> None:
    assert cold_before(NOW) == NOW - 180 * DAY


def test_the_longest_half_life_is_eight_times_the_rules() -> None:
    assert half_life(DEFAULT, 10.0, MemoryState.CONFIRMED, 1 << 40) == 8 * 30 * DAY


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("half_life_days", 13.9), ("half_life_days", 61.0), ("half_life_days", math.nan), ("archive_below", 0.0),
        ("archive_below", 1.0), ("archive_below", math.nan), ("cold_after_days", 0.5), ("cold_after_days", math.inf),
    ],
)  # fmt: skip
def test_a_rule_out_of_range_is_refused_by_the_name_of_its_field(field: str, value: float) -> None:
    with pytest.raises(InvalidArgument) as refused:
        DecayRule(**{field: value})
    assert refused.value.field == field
