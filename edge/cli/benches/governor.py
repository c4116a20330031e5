"""`edge bench governor`: the box's own governor in simulated devices, beside other ways to keep them cool.

The governor is the real one, called as the box calls it. What it is compared with:

- nothing: full work, whatever happens; the processor throttles itself at its trip.
- on/off, as thermal scripts do it: work stops at the limit and goes on once it is 10 °C cooler, at full speed. Its
  limit is the governor's (the trip less the margin), and it looks at the same readings every second.
- the optimum, which knows the model, the ambient and the neighbour's next second: each second the most work after
  which the die is not above the trip. No margin, no noise, no delay: what no controller can reach.
All but nothing keep within the memory by the same rule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge.cli.benches import machine
from edge.cli.benches.result import Ratio, Result, median, percentile, quotient
from edge.cli.benches.thermal import Profile, Silicon, World, profiles, world
from edge.config import Governing
from edge.embedder import governor, memory_guard
from edge.embedder.governor import Device
from edge.embedder.readings import Readings
from edge.types import Pressure

Say = Callable[[str], None]

_PROFILES = 20
# Heat, then hours in which throughput and changes of level count.
_WARM_UP = 3600
_MINUTE = 60
_HYSTERESIS = 10.0
_BATCH_TOKENS = _WINDOW = 512
# Batches that the governor is told of in a second; more would teach it the same.
_BATCHES = 4
# Of what memory allows: where even the optimum gets less done, heat decides.
_HEAT_DECIDES = 0.9
_GENTLE = 5.0


@dataclass(frozen=True, slots=True)
class Order:
    """What a policy wants of the next second: the share of full work, and tokens a batch. `runs` take memory."""

    work: float
    tokens: int = _BATCH_TOKENS
    runs: int = 0
    level: Pressure = Pressure.NOMINAL


class Policy(Protocol):
    def order(self, second: int, silicon: Silicon, around: World) -> Order: ...

    def ran(self, padded_tokens: int, seconds: float) -> None:
        """A batch took so long."""
        ...


@dataclass(slots=True)
class Run:
    """`work` in seconds of full work and `changes` after the warm-up, `over` in seconds after the first minute."""

    work: float = 0.0
    over: int = 0
    hottest: float = 0.0
    changes: int = 0
    too_much_memory: int = 0
    recalls: list[float] = field(default_factory=list)


class Governed:
    """The governor of the box, with the configuration it comes with."""

    def __init__(self, profile: Profile, config: Governing) -> None:
        self._profile, self._config = profile, config
        self._device = Device(profile.threads, _BATCH_TOKENS, _WINDOW, profile.calibrated)
        self._state = governor.begin(self._device, config, 0.0)

    def order(self, second: int, silicon: Silicon, around: World) -> Order:
        readings = Readings(
            at=float(second),
            temperature=silicon.reading(around.noise[second]),
            trip=self._profile.trip if self._profile.says_trip else None,
            frequency=silicon.clock,
            memory_available=around.memory[second],
        )
        self._state = governor.step(self._state, readings, self._device, self._config, readings.at)
        budget = governor.budget(self._state, self._device, self._config)
        work = budget.duty * budget.threads / self._profile.threads
        return Order(work, budget.padded_tokens, budget.threads if work else 0, budget.level)

    def ran(self, padded_tokens: int, seconds: float) -> None:
        self._state = governor.learn(self._state, padded_tokens, seconds, self._device, self._config)


class Blind:
    """Those that learn nothing from a batch."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def most(self, second: int, around: World) -> int:
        """Threads that memory allows."""
        room = float(around.memory[second] - Governing().memory_reserve)
        return memory_guard.fit(
            room, self.profile.threads, _WINDOW, _BATCH_TOKENS, self.profile.calibrated, 0.0
        ).threads

    def ran(self, padded_tokens: int, seconds: float) -> None:
        """Nothing is learnt."""


class Nothing(Blind):
    def order(self, second: int, silicon: Silicon, around: World) -> Order:  # noqa: ARG002  # it looks at nothing
        return Order(1.0, runs=self.profile.threads)


class OnOff(Blind):
    def __init__(self, profile: Profile, config: Governing, hysteresis: float = _HYSTERESIS) -> None:
        super().__init__(profile)
        self._off_at = profile.trip - config.margin
        self._on_at = self._off_at - hysteresis
        self._on = True

    def order(self, second: int, silicon: Silicon, around: World) -> Order:
        reading = silicon.reading(around.noise[second])
        self._on = reading < self._off_at if self._on else reading <= self._on_at
        threads = self.most(second, around) if self._on else 0
        return Order(threads / self.profile.threads, runs=threads)


class Optimum(Blind):
    def __init__(self, profile: Profile, below: float = 0.0) -> None:
        super().__init__(profile)
        self._limit = profile.trip - below

    def order(self, second: int, silicon: Silicon, around: World) -> Order:
        threads = self.most(second, around)
        bearable = silicon.bearable(self._limit, around.neighbour[second], around.ambient[second])
        return Order(min(bearable, threads / self.profile.threads), runs=threads)


def drive(profile: Profile, around: World, policy: Policy, heat: bool = True) -> Run:
    """The whole of `around`, second by second. `heat`: False for a device that never gets warm."""
    chance = random.Random(profile.seed)  # noqa: S311  # a seed, not a secret
    silicon = Silicon(profile)
    run = Run()
    level = Pressure.NOMINAL
    for second, neighbour in enumerate(around.neighbour):
        order = policy.order(second, silicon, around)
        share, at, waiting, size = chance.random(), chance.random(), chance.random(), chance.uniform(0.5, 1)
        padded = int(order.tokens * size)
        took = padded * profile.token_seconds / silicon.clock
        if order.work > 0 and padded:
            for _ in range(_BATCHES):
                policy.ran(padded, took)
        # A recall comes at any moment of a batch, if one runs.
        wait = took * at if waiting < order.work else 0.0
        run.recalls.append(wait + profile.recall_seconds * (0.9 + 0.2 * share) / silicon.clock)
        need = (order.runs + 1) * min(order.tokens, _BATCH_TOKENS) * profile.need
        run.too_much_memory += order.runs > 0 and need > around.memory[second]
        done = silicon.step(order.work, neighbour, around.ambient[second]) if heat else order.work
        if second >= _MINUTE and heat:
            run.over += silicon.over
            run.hottest = max(run.hottest, silicon.die)
        if second >= _WARM_UP:
            run.work += done
            run.changes += order.level is not level
        level = order.level
    return run


@dataclass(frozen=True, slots=True)
class Comparison:
    """All policies in one profile's world."""

    profile: Profile
    governed: Run
    cool: Run
    nothing: Run
    onoff: Run
    onoff_gentle: Run
    optimum: Run
    # Seconds of full work that memory allows, whatever the heat.
    allowed: float
    hours: float

    @property
    def heat_decides(self) -> bool:
        return self.optimum.work < _HEAT_DECIDES * self.allowed

    @property
    def vs_optimum(self) -> float:
        return quotient(self.governed.work, self.optimum.work)

    @property
    def vs_onoff(self) -> float:
        return quotient(self.governed.work, self.onoff.work)

    @property
    def recall_p95_vs_cool(self) -> float:
        return quotient(percentile(self.governed.recalls, 0.95), percentile(self.cool.recalls, 0.95))

    @property
    def changes_per_hour(self) -> float:
        return self.governed.changes / self.hours

    def as_dict(self) -> dict[str, Any]:
        profile, governed = self.profile, self.governed
        cool = percentile(self.cool.recalls, 0.95)
        return {
            "kind": profile.kind,
            "ambient": profile.ambient,
            "swing": profile.swing,
            "trip": profile.trip,
            "duty_of_optimum": quotient(self.optimum.work, self.hours * 3600),
            "heat_decides": self.heat_decides,
            "vs_optimum": self.vs_optimum,
            "vs_onoff": self.vs_onoff,
            "vs_onoff_5_degrees": quotient(governed.work, self.onoff_gentle.work),
            "vs_nothing": quotient(governed.work, self.nothing.work),
            "hottest_below_trip": profile.trip - governed.hottest,
            "minutes_over_trip": governed.over / 60,
            "minutes_over_trip_onoff": self.onoff.over / 60,
            "minutes_over_trip_nothing": self.nothing.over / 60,
            "recall_p95_vs_cool": self.recall_p95_vs_cool,
            "recall_p95_vs_cool_nothing": quotient(percentile(self.nothing.recalls, 0.95), cool),
            "level_changes_per_hour": self.changes_per_hour,
            "minutes_over_memory": governed.too_much_memory / 60,
            "minutes_over_memory_nothing": self.nothing.too_much_memory / 60,
        }


def compare(profile: Profile, hours: float, config: Governing) -> Comparison:
    """`hours` after the warm-up of one."""
    around = world(profile, _WARM_UP + int(hours * 3600))
    optimum = Optimum(profile)
    seconds = range(_WARM_UP, len(around.memory))
    return Comparison(
        profile=profile,
        governed=drive(profile, around, Governed(profile, config)),
        cool=drive(profile, around, Governed(profile, config), heat=False),
        nothing=drive(profile, around, Nothing(profile)),
        onoff=drive(profile, around, OnOff(profile, config)),
        onoff_gentle=drive(profile, around, OnOff(profile, config, _GENTLE)),
        optimum=drive(profile, around, optimum),
        allowed=sum(optimum.most(second, around) for second in seconds) / profile.threads,
        hours=hours,
    )


def run(hours: float, vary: float, seed: int, say: Say) -> Result:
    """Some two seconds a profile and hour. `vary`: see thermal.profiles."""
    about = machine.describe()
    found = []
    for profile in profiles(_PROFILES, seed, vary):
        found.append(compare(profile, hours, Governing()))
        last = found[-1]
        say(
            f"{profile.kind}, {profile.ambient:.0f} C around it, trip at {profile.trip:.0f} C: "
            f"{last.vs_optimum:.2f} of the optimum, {last.vs_onoff:.2f} of on/off, {last.governed.over} s over the trip"
        )
    figures = {
        "hours": hours,
        "vary": vary,
        "seed": seed,
        "spread": {name: _spread(found, name) for name in ("vs_optimum", "vs_onoff", "recall_p95_vs_cool")},
        "profiles": [one.as_dict() for one in found],
    }
    return Result("governor", ratios(found), figures, about)


def ratios(found: Sequence[Comparison]) -> list[Ratio]:
    """Those of the contract, and the worst beside each median."""
    hot = [one for one in found if one.heat_decides]
    several = f"{len(found)} profiles"
    return [
        Ratio("vs_optimum", median([one.vs_optimum for one in found]), 0.92, True, f"the optimum; median of {several}"),
        Ratio("vs_optimum_worst", min(one.vs_optimum for one in found), 0.92, True, "the optimum; worst profile"),
        Ratio(
            "vs_onoff",
            median([one.vs_onoff for one in hot]),
            1.15,
            True,
            f"on/off, {_HYSTERESIS:g} C apart; median of the {len(hot)} profiles in which heat decides",
        ),
        Ratio("vs_onoff_all", median([one.vs_onoff for one in found]), None, True, f"on/off; median of all {several}"),
        Ratio("vs_onoff_worst", min(one.vs_onoff for one in found), None, True, f"on/off; worst of all {several}"),
        Ratio(
            "minutes_over_trip",
            sum(one.governed.over for one in found) / 60,
            0,
            False,
            f"all {several} together; {sum(one.nothing.over for one in found) / 60:.0f} without a governor",
        ),
        Ratio(
            "recall_p95_vs_cool",
            max(one.recall_p95_vs_cool for one in found),
            1.2,
            False,
            "the same box where nothing gets warm; worst profile",
        ),
        Ratio("level_changes_per_hour", max(one.changes_per_hour for one in found), 4, False, "worst profile"),
    ]


def _spread(found: Sequence[Comparison], name: str) -> dict[str, float]:
    values: list[float] = [getattr(one, name) for one in found]
    return {"least": min(values), "median": median(values), "most": max(values)}
