"""How a memory fades when nobody asks for it, and what becomes of it then. Pure: the same times, the same answer.

strength = 0.5 ** (days since the last use / half-life)

The last use is the last recall, or else when it was said: a recall restores it to 1. The half-life is the rule's, times
what the memory is: one of weight 5 lives four times as long, one that is only temporary half as long, and each recall
makes it last a little longer, up to twice (spaced repetition: Ebbinghaus 1885; Cepeda et al. 2006). Nothing is written
for it: strength follows from timestamps that are there, and so a clock that jumps ahead and back leaves no trace in it.

What is moved must have been in the box for that long, too: five years of talk that are read in today are weak, and
stay at hand as long as what is said today. Moving rows leaves a trace, so a caller that moves them does it by a clock
that it has watched (`steady`): it archives after an hour in which wall and monotonic clock went alike, and makes COLD
after a day of that. And it goes both ways: what is archived and strong comes back, so that archiving by a clock that
was wrong all along is undone by the first sweep after it was set right.

The recency of a recall (`recall.fuse.fading`) is another thing: how new a memory is beside others, a signal of its
score by its event time, with one half-life for all. Strength says whether it is still kept at hand at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edge.admission.tiers import EXPLICIT_WEIGHT
from edge.config import Decaying
from edge.errors import InvalidArgument
from edge.types import DAY, Memory, MemoryState, Micros, check_kind

SHORTEST, LONGEST = 14.0, 60.0
# Of the half-life: weight 1 is 1, and each point of weight adds this much, up to the greatest.
_PER_WEIGHT = 0.75
_MOST_BY_WEIGHT = 4.0
_TEMPORARY = 0.5
# A fifth more for every doubling of its recalls: twice as long at 31 of them, and never more.
_PER_DOUBLING = 0.2
_MOST_BY_ACCESS = 2.0


@dataclass(frozen=True, slots=True)
class DecayRule:
    """Of one kind of memory. `half_life_days` of an ordinary confirmed or proposed memory of weight 1."""

    half_life_days: float = 30.0
    archive_below: float = 0.05
    cold_after_days: float = 180.0

    def __post_init__(self) -> None:
        # NaN compares false.
        if not SHORTEST <= self.half_life_days <= LONGEST:
            raise InvalidArgument(
                f"half_life_days: must be {SHORTEST:g} to {LONGEST:g} days; shorter forgets within a holiday, and "
                f"longer never",
                field="half_life_days",
            )
        if not 0 < self.archive_below < 1:
            raise InvalidArgument("archive_below: must lie between 0 and 1; 0.05 is usual", field="archive_below")
        if not 1 <= self.cold_after_days < math.inf:
            raise InvalidArgument("cold_after_days: must be 1 day or more; 180 is usual", field="cold_after_days")


DEFAULT = DecayRule()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule of each kind of memory; `other` is that of all that are not named."""

    other: DecayRule = DEFAULT
    kinds: Mapping[str, DecayRule] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Decaying) -> Rules:
        """Raises InvalidArgument that names the key, for what cannot be a kind's name or a rule."""
        other = DecayRule(config.half_life_days, config.archive_below, config.cold_after_days)
        return cls(
            other,
            {
                check_kind(kind, f"decay.kinds.{kind}"): replace(other, half_life_days=days)
                for kind, days in config.kinds.items()
            },
        )

    def rule(self, kind: str) -> DecayRule:
        return self.kinds.get(kind, self.other)

    def strength(self, memory: Memory, now: Micros) -> float:
        """See `strength`."""
        return strength(
            memory.occurred_at,
            memory.accessed_at,
            memory.access_count,
            memory.weight,
            now,
            self.rule(memory.kind),
            memory.state,
        )


# Seconds that the clocks have to go alike before rows are moved by them.
ARCHIVE_STEADY, COLD_STEADY = 3600.0, 86_400.0


def explicit(weight: float, state: MemoryState) -> bool:
    """Whether the owner asked for it to be remembered: it never leaves by itself."""
    return state is MemoryState.CONFIRMED and weight >= EXPLICIT_WEIGHT


def half_life(rule: DecayRule, weight: float, state: MemoryState, access_count: int) -> Micros:
    """How long until half its strength is gone. Grows with weight and with use; at most 8 times the rule's."""
    factor = min(_MOST_BY_WEIGHT, 1.0 + _PER_WEIGHT * max(0.0, weight - 1.0))
    factor *= min(_MOST_BY_ACCESS, 1.0 + _PER_DOUBLING * math.log2(1 + max(0, access_count)))
    if state is MemoryState.TEMPORARY:
        factor *= _TEMPORARY
    return int(rule.half_life_days * factor * DAY)


def last_use(occurred_at: Micros, accessed_at: Micros, now: Micros) -> Micros:
    """The later of when it was said and last recalled (0: never). What lies ahead comes of a wrong clock: now."""
    return min(now, max(occurred_at, accessed_at))


def strength(
    occurred_at: Micros,
    accessed_at: Micros,
    access_count: int,
    weight: float,
    now: Micros,
    rule: DecayRule = DEFAULT,
    state: MemoryState = MemoryState.CONFIRMED,
) -> float:
    """0 to 1: half as much every half-life since the last use. An explicit one never sinks below the border."""
    idle = now - last_use(occurred_at, accessed_at, now)
    left = math.pow(0.5, idle / half_life(rule, weight, state, access_count))
    return max(left, rule.archive_below) if explicit(weight, state) else left


def archive_before(
    now: Micros,
    rule: DecayRule = DEFAULT,
    weight: float = 1.0,
    state: MemoryState = MemoryState.CONFIRMED,
    access_count: int = 0,
) -> Micros:
    """The inverse of `strength`: what was last used then or before is below the border, what was used later is not.

    Nothing counts as unused for longer than it has been in the box, so the last use is the latest of said, stored and
    recalled; and SQL can select by an index on it instead of computing on every row. For an explicit memory, which is
    never due: a time before all others.
    """
    if explicit(weight, state):
        return -(1 << 62)
    half_lives = -math.log2(rule.archive_below)
    # Below the border, and not on it: one microsecond more than the time that just reaches it.
    return now - math.floor(half_lives * half_life(rule, weight, state, access_count)) - 1


class Borders:
    """`archive_before` of many memories at one time, computed once for all that are alike."""

    def __init__(self, rules: Rules, now: Micros) -> None:
        self._rules = rules
        self._now = now
        self._known: dict[tuple[str, int, float, int], Micros] = {}

    def __call__(self, nature: tuple[str, int, float, int]) -> Micros:
        """A memory of this (kind, state, weight, access_count) belongs into the archive if its last use was then or
        before. That is before now, so what lies ahead and counts as now need not be told apart."""
        border = self._known.get(nature)
        if border is None:
            kind, state, weight, count = nature
            border = archive_before(self._now, self._rules.rule(kind), weight, MemoryState(state), count)
            self._known[nature] = border
        return border


def cold_before(now: Micros, rule: DecayRule = DEFAULT) -> Micros:
    """What was said then or before and never recalled belongs into the cold file, once it is below the border."""
    return now - int(rule.cold_after_days * DAY)


def steady(earlier: tuple[Micros, float], later: tuple[Micros, float], seconds: float) -> bool:
    """Whether between two readings of (wall clock, monotonic seconds) both went alike, for at least so many seconds.

    A minute or a hundredth may be between them: clocks are set right a little all the time.
    """
    passed = later[1] - earlier[1]
    apart = abs((later[0] - earlier[0]) / 1e6 - passed)
    return passed >= seconds and apart <= max(60.0, passed / 100)
