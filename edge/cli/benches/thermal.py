"""A simulated device: heat, a throttling processor, a neighbour, scarce memory. Made from a seed; one step a second.

Two thermal nodes, as a small board has: the die, which follows the power within seconds, and the case with its heat
sink, which takes minutes to an hour. At its trip the processor lowers its clock by itself, as they all do; power
falls with the clock to 2.5 (voltage goes with it).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

# The hardware's own throttle: clock lost a second above the trip, and won back a second below it.
_THROTTLE, _RELEASE, _SLOWEST, _RELEASE_BELOW = 0.1, 0.02, 0.4, 3.0
_CLOCK_POWER = 2.5
# Degrees that idling and the neighbour alone leave below the trip on the hottest moment: else nothing is to be decided.
_FEASIBLE = 12.0
# Bytes that the hog leaves: fewer, and no policy could work at all.
_LEAST_MEMORY = 90_000_000
# Kelvin per watt and seconds of die and case; watts idle and for all ingest threads; the trip; degrees of a step of
# the sensor: least and most.
_KINDS: dict[str, Mapping[str, tuple[float, float]]] = {
    "fanless box": {
        "die_r": (0.5, 1.0), "die_s": (4, 8), "case_r": (3.5, 4.5), "case_s": (900, 2400), "idle": (2.5, 4),
        "full": (9, 14), "neighbour": (2, 4), "trip": (85, 90), "step": (1, 1),
    },
    "Orin-like": {
        "die_r": (0.35, 0.7), "die_s": (4, 10), "case_r": (1.8, 2.4), "case_s": (300, 900), "idle": (5, 7),
        "full": (18, 26), "neighbour": (5, 9), "trip": (97, 99), "step": (0.001, 0.5),
    },
    "mini-PC": {
        "die_r": (0.3, 0.6), "die_s": (3, 6), "case_r": (1.4, 2.0), "case_s": (150, 500), "idle": (5, 8),
        "full": (26, 36), "neighbour": (5, 12), "trip": (95, 100), "step": (1, 1),
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """A device and its surroundings. Degrees Celsius, kelvin per watt, seconds, watts, bytes."""

    kind: str
    seed: int
    die_r: float
    die_s: float
    case_r: float
    case_s: float
    idle: float
    full: float
    neighbour: float
    trip: float
    step: float
    # Whether the device says its own trip; the governor's default otherwise, and the trip is there.
    says_trip: bool
    ambient: float
    # The ambient swings by this much over so many seconds.
    swing: float
    period: float
    # Mean seconds of the neighbour's bursts and of the time between them; 0: it never works.
    burst: float
    pause: float
    # Bytes left beside the hog, and what it takes at times.
    memory: int
    hog: int
    threads: int
    # Seconds a padded token and thread at the full clock, and seconds of a recall by itself.
    token_seconds: float
    recall_seconds: float
    # Bytes a padded token that a run needs, and what calibration found.
    need: float
    calibrated: float

    def ambient_at(self, second: float) -> float:
        return self.ambient + self.swing * math.sin(2 * math.pi * second / self.period)


def profiles(count: int = 20, seed: int = 20260701, vary: float = 0.0) -> list[Profile]:
    """`vary`: every thermal number is off by up to that share, at random."""
    return [profile(number, seed, vary) for number in range(count)]


def profile(number: int, seed: int, vary: float = 0.0) -> Profile:
    """The kinds in turn, the ambient spread evenly over 15 to 45."""
    chance = random.Random(seed * 1000 + number)  # noqa: S311  # a seed, not a secret
    kind = list(_KINDS)[number % len(_KINDS)]
    drawn = {name: chance.uniform(*bounds) for name, bounds in _KINDS[kind].items()}
    if vary:
        other = random.Random(seed * 1000 + number + 500_000)  # noqa: S311  # a seed, not a secret
        thermal = ("die_r", "die_s", "case_r", "case_s", "idle", "full", "neighbour")
        drawn |= {name: drawn[name] * other.uniform(1 - vary, 1 + vary) for name in thermal}
    says_trip = chance.random() < 0.8
    swing = chance.choice((0.0, 3.0, 6.0))
    burst = chance.choice((0.0, 20.0, 45.0, 120.0))
    need = chance.uniform(40e3, 60e3)
    found = Profile(
        kind=kind,
        seed=seed * 1000 + number,
        **drawn,
        says_trip=says_trip,
        # 7 and 20 have no common divisor, so that each kind meets cool and hot places.
        ambient=15 + swing + (30 - 2 * swing) * (number * 7 % 20) / 19,
        swing=swing,
        period=chance.uniform(2, 6) * 3600,
        burst=burst,
        pause=burst * chance.uniform(1.5, 5),
        memory=chance.choice((200, 400, 1500)) * 1_000_000,
        hog=chance.choice((0, 100, 250)) * 1_000_000,
        threads=chance.choice((2, 4, 6)),
        token_seconds=chance.uniform(4e-5, 2e-4),
        recall_seconds=chance.uniform(0.004, 0.02),
        need=need,
        calibrated=need * chance.uniform(1.0, 1.1),
    )
    if not says_trip:
        found = replace(found, trip=85.0)
    return _feasible(found)


def _feasible(profile: Profile) -> Profile:
    """With a weaker neighbour where it and idling would reach the trip alone."""
    most = (profile.trip - _FEASIBLE - profile.ambient - profile.swing) / (profile.die_r + profile.case_r)
    return replace(profile, neighbour=max(0.0, min(profile.neighbour, most - profile.idle)))


@dataclass(slots=True)
class World:
    """What happens around the box, second by second: the same for every policy that is tried in it."""

    ambient: list[float]
    neighbour: list[float]
    memory: list[int]
    noise: list[float]


def world(profile: Profile, seconds: int) -> World:
    chance = random.Random(profile.seed)  # noqa: S311  # a seed, not a secret
    made = World([], [], [], [])
    busy, busy_until, hogged, hogged_until = False, 0.0, False, 0.0
    for second in range(seconds):
        if second >= busy_until and profile.burst:
            busy = not busy
            busy_until = second + chance.expovariate(1 / (profile.burst if busy else profile.pause))
        if second >= hogged_until:
            hogged = not hogged
            hogged_until = second + chance.uniform(1200, 5400)
        made.ambient.append(profile.ambient_at(second))
        made.neighbour.append(profile.neighbour if busy else 0.0)
        made.memory.append(max(_LEAST_MEMORY, profile.memory - (profile.hog if hogged else 0)))
        made.noise.append(chance.uniform(-1, 1))
    return made


@dataclass(slots=True)
class Silicon:
    """The device's heat. It starts idle, at rest in its surroundings."""

    profile: Profile
    die: float = 0.0
    case: float = 0.0
    clock: float = 1.0

    def __post_init__(self) -> None:
        self.case = self.profile.ambient_at(0) + self.profile.idle * self.profile.case_r
        self.die = self.case + self.profile.idle * self.profile.die_r

    def step(self, work: float, neighbour: float, ambient: float) -> float:
        """A second at that share of full work (0 to 1); what got done, in seconds of full work."""
        profile = self.profile
        done = work * self.clock
        watts = profile.idle + neighbour + work * profile.full * self.clock**_CLOCK_POWER
        self.case += (ambient + watts * profile.case_r - self.case) / profile.case_s
        self.die += (self.case + watts * profile.die_r - self.die) / profile.die_s
        if self.over:
            self.clock = max(_SLOWEST, self.clock - _THROTTLE)
        elif self.die < profile.trip - _RELEASE_BELOW:
            self.clock = min(1.0, self.clock + _RELEASE)
        return done

    @property
    def over(self) -> bool:
        """Above the trip, by more than rounding."""
        return self.die > self.profile.trip + 1e-6

    def bearable(self, limit: float, neighbour: float, ambient: float) -> float:
        """The work of the next second after which the die is at the limit: only one who knows the model can say."""
        profile = self.profile
        fixed = profile.idle + neighbour
        # The step above, solved for the work: both nodes are linear in the watts.
        gain = (profile.die_r + profile.case_r / profile.case_s) / profile.die_s * profile.full
        case = self.case + (ambient + fixed * profile.case_r - self.case) / profile.case_s
        rest = self.die + (case + fixed * profile.die_r - self.die) / profile.die_s
        return min(1.0, max(0.0, (limit - rest) / gain))

    def reading(self, noise: float) -> float:
        """What the sensor says: noisy, in its steps."""
        step = self.profile.step
        return math.floor((self.die + noise) / step) * step
