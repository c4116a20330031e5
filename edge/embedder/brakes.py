"""Signs of strain other than a temperature, and how far each slows the work down. Pure.

They come as words or jumps, not as a course to steer by, so they are answered as TCP answers loss: down quickly while a
sign is there, up slowly once it is gone. The most careful of them decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from edge.embedder.readings import Readings
from edge.types import Pressure

# Of the duty, a second, once all signs are gone: a full recovery takes a good half hour, so that a device which cannot
# bear full speed is tried about twice an hour.
_RECOVERY = 0.0005
# The system's own word for its heat: share of the duty lost a second, and the least that is left.
_PRESSURE = {Pressure.WARM: (0.01, 0.3), Pressure.HOT: (0.04, 0.1), Pressure.CRITICAL: (0.2, 0.05)}
# Percent of time in which somebody waits for memory.
PSI_SOME, PSI_MUCH = 10.0, 40.0
# Share of the highest clock below which a busy processor is being held back, and degrees from the limit within which
# heat is the likely reason. A power-saving mode looks the same, but not only when it is hot.
_SLOW_CLOCK, _NEAR = 0.7, 10.0
# Times the best seconds of work per token that this device has shown: heat that no sensor tells of. Beside a neighbour
# on the same core they come to 1.7 at the most, measured.
_SLOW_TOKENS = 2.2


@dataclass(frozen=True, slots=True)
class Sign:
    """Loses `rate` of the duty a second, down to `least`; worth `level` while it lasts."""

    rate: float
    least: float
    level: Pressure
    words: str


@dataclass(frozen=True, slots=True)
class Brakes:
    """`share` of the duty that the signs leave; `strongest` is the one that takes most now, None when there is none."""

    share: float = 1.0
    strongest: Sign | None = None
    level: Pressure = Pressure.NOMINAL


@dataclass(frozen=True, slots=True)
class Pace:
    """What the batches tell. `tokens` is the AIMD's; `best` and `recent` are seconds of work per token, 0: unknown."""

    tokens: float
    best: float = 0.0
    recent: float = 0.0
    # Batches since the last readings.
    batches: int = 0

    @property
    def slowdown(self) -> float:
        return self.recent / self.best if self.best > 0 else 1.0


# Padded tokens that one batch in time adds, and the least that a batch may have; a run of fewer is mostly overhead.
_STEP, LEAST_BATCH = 8.0, 32
_RECENT = 0.05
# The best is forgotten over hours, so that one lucky measurement, or another model, does not brake for ever.
_FORGET = 1.00001


def learn(
    pace: Pace, padded_tokens: int, seconds: float, worked: float, least: int, ceiling: int, slice_seconds: float
) -> Pace:
    """One batch more: additive increase, multiplicative decrease on its latency (Clipper, NSDI'17).

    A batch larger than allowed is a single long text: it says nothing of what a smaller one would have taken.
    """
    if padded_tokens <= 0 or not (0 < seconds < math.inf and 0 < worked < math.inf):
        return pace
    tokens = pace.tokens
    if padded_tokens <= tokens:
        if seconds > slice_seconds:
            tokens /= 2
        elif padded_tokens > tokens / 2:
            # Else the limit was not what bounded it, and raising it would be a guess.
            tokens += _STEP
    tokens = max(float(least), min(float(ceiling), tokens))
    best, recent = pace.best, pace.recent
    if padded_tokens >= LEAST_BATCH:
        cost = worked / padded_tokens
        recent = recent + _RECENT * (cost - recent) if recent else cost
        best = min(best * _FORGET, recent) if best else recent
    return Pace(tokens, best, recent, pace.batches + 1)


def follow(brakes: Brakes, readings: Readings, pace: Pace, room_to_limit: float | None, elapsed: float) -> Brakes:
    """`room_to_limit`: degrees from where the temperature is held, None without a sensor. `elapsed` in seconds.

    A stronger sign never leaves more of the duty.
    """
    found = list(signs(readings, pace, room_to_limit))
    if not found:
        return Brakes(min(1.0, brakes.share + _RECOVERY * elapsed))
    share = min(max(min(brakes.share, sign.least), brakes.share - sign.rate * elapsed) for sign in found)
    strongest = max(found, key=lambda sign: (sign.level, sign.rate))
    return replace(brakes, share=share, strongest=strongest, level=max(sign.level for sign in found))


def signs(readings: Readings, pace: Pace, room_to_limit: float | None) -> Iterator[Sign]:
    if readings.pressure is not None and readings.pressure in _PRESSURE:
        rate, least = _PRESSURE[readings.pressure]
        words = f"the system says its heat is {readings.pressure.name.lower()}"
        yield Sign(rate, least, readings.pressure, words)
    if readings.overcurrent is not None and readings.overcurrent > 0:
        level = Pressure.HOT if readings.overcurrent >= 1 else Pressure.WARM
        yield Sign(0.05, 0.2, level, f"the power supply is at its limit, {readings.overcurrent:.2g} events/s")
    if readings.memory_pressure is not None and readings.memory_pressure >= PSI_SOME:
        much = readings.memory_pressure >= PSI_MUCH
        words = f"programs wait for memory {readings.memory_pressure:.0f}% of the time"
        yield Sign(0.1 if much else 0.02, 0.1 if much else 0.5, Pressure.HOT if much else Pressure.WARM, words)
    if (
        readings.frequency is not None
        and 0 < readings.frequency < _SLOW_CLOCK
        and pace.batches
        and room_to_limit is not None
        and room_to_limit < _NEAR
    ):
        yield Sign(0.002, 0.5, Pressure.WARM, f"hot, and the processor runs at {readings.frequency:.0%} of its clock")
    if room_to_limit is None and pace.batches and pace.slowdown > _SLOW_TOKENS:
        words = f"{pace.recent * 1000:.2g} ms a token, {pace.slowdown:.1f} times the best"
        yield Sign(0.005, 0.5, Pressure.WARM, words)
