"""How hard to work: from what the device says and how long its batches took, to a budget. Pure but for FixedGovernor.

Each part alone knows its matter: `thermal` steers the duty by the temperature, `brakes` answers signs that are no
temperature and bounds the time of a batch, `memory_guard` says what fits into memory. Here they become one budget, a
level and the sentence that explains it. No clock, no log, no thread: the same facts give the same budget.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from edge.config import Embedding, Governing
from edge.embedder import brakes, memory_guard, thermal
from edge.embedder.brakes import Brakes, Pace
from edge.embedder.memory_guard import Fit
from edge.embedder.readings import Readings
from edge.embedder.thermal import Heat
from edge.ports import Budget, GovernorState
from edge.types import Pressure

# Measured for the default model: 51 KB a token at 512 tokens, where it is most (attention grows with the square), on
# one thread without an arena. A quarter more, for a model that was never calibrated.
BYTES_PER_TOKEN = 64 * 1024.0
# Degrees below the limit from which the box is warm; how far a level's threshold must be left behind again.
_WARM, _HYSTERESIS = 5.0, 3.0
# Seconds for which a lower level must have done before it is taken: a neighbour's bursts do not flap it.
_CALM = 300.0
# From critical, where ingests stand still, it is left sooner.
_CALM_CRITICAL = 20.0
# Outside critical, ingests always trickle: a neighbour that heats the box all day must not starve them.
_TRICKLE = 0.02
# Silence of the sensors, in intervals and in seconds, after which their last words count no more; and what may be
# done then.
_SILENT_INTERVALS, _SILENT = 5, 10.0
_BLIND = 0.5
# Of the work, on battery, and when it is low (a share of full).
_BATTERY, _LOW_BATTERY, _LOW = 0.5, 0.25, 0.2


@dataclass(frozen=True, slots=True)
class Device:
    """What does not change while the box runs; from configuration and calibration."""

    # Ingest threads at most.
    threads: int
    # Ceiling of Budget.padded_tokens.
    batch_tokens: int
    # Tokens of the longest window.
    window: int = 512
    # Memory of a run: base_bytes, and this for each padded token.
    bytes_per_token: float = BYTES_PER_TOKEN
    base_bytes: float = 0.0
    # Padded tokens below which batches are not made shorter, whatever they take.
    least_batch: int = brakes.LEAST_BATCH


@dataclass(frozen=True, slots=True)
class State:
    """Everything the governor remembers. `at` and `since` are seconds of the monotonic clock."""

    at: float
    level: Pressure
    # The last change of level, and how many there were.
    since: float
    changes: int
    # Seconds for which a lower level would have done.
    calm: float
    heat: Heat
    brakes: Brakes
    # Bytes that runs may take, None when nobody says.
    room: float | None
    pace: Pace
    readings: Readings
    # Seconds for which the sensors have been silent; 0 while they are heard.
    silent: float = 0.0
    # Seconds for which nobody has told the memory any more.
    untold: float = 0.0


def begin(device: Device, config: Governing, at: float) -> State:
    """Nothing is known yet: full speed, until the first readings say otherwise."""
    pace = Pace(float(max(1, device.batch_tokens)))
    heat = Heat(trip=config.trip)
    return State(at, Pressure.NOMINAL, at, 0, 0.0, heat, Brakes(), None, pace, Readings(at))


def learn(
    state: State,
    padded_tokens: int,
    seconds: float,
    device: Device,
    config: Governing,
    cpu_seconds: float | None = None,
) -> State:
    """One ingest batch was run in so many seconds, of which the processor worked `cpu_seconds` (None: all) on it.

    The first is what a recall may have to wait for; the second is the device's own pace, whatever its neighbours do.
    """
    ceiling = max(1, device.batch_tokens)
    worked = seconds if cpu_seconds is None else cpu_seconds
    least = min(ceiling, device.least_batch)
    pace = brakes.learn(state.pace, padded_tokens, seconds, worked, least, ceiling, config.slice_seconds)
    return replace(state, pace=pace)


def step(state: State, readings: Readings, device: Device, config: Governing, at: float) -> State:
    """The device spoke at `readings.at`, and now it is `at`. The same readings again, ever older, mean silence.

    Clocks may jump either way: what was smoothed over a gap is begun anew.
    """
    patience = _patience(config)
    passed = at - state.at
    elapsed = passed if 0 <= passed <= patience else None
    age = abs(at - readings.at)
    if not age <= patience:
        return _levelled(replace(state, at=at, silent=age), device, config, elapsed or 0.0)
    heat = _felt(state, readings, config, elapsed)
    room, untold = _room(state, readings, config, elapsed)
    missing = max(heat.missing, untold)
    to_limit = None if heat.temperature is None else heat.trip - config.margin - heat.temperature
    state = replace(
        state,
        at=at,
        heat=heat,
        brakes=brakes.follow(state.brakes, readings, state.pace, to_limit, elapsed or 0.0),
        room=room,
        pace=replace(state.pace, batches=0),
        readings=readings,
        silent=missing if missing > patience else 0.0,
        untold=untold,
    )
    return _levelled(state, device, config, elapsed or 0.0)


def _felt(state: State, readings: Readings, config: Governing, elapsed: float | None) -> Heat:
    """A sensor that skips a reading, as some do, changes nothing; how long it is gone is counted."""
    heat = state.heat
    temperature = thermal.believed(readings.temperature)
    trip = thermal.believed_trip(readings.trip, config.trip)
    if temperature is None:
        gone = _SILENT if elapsed is None else elapsed
        return heat if heat.temperature is None else replace(heat, missing=heat.missing + gone)
    # After a silence the last temperature is as old as the silence.
    since = None if elapsed is None or state.silent else elapsed + heat.missing
    return thermal.follow(heat, temperature, trip, config.margin, since)


def _room(state: State, readings: Readings, config: Governing, elapsed: float | None) -> tuple[float | None, float]:
    """(bytes that runs may take, seconds untold). Who says nothing this time leaves the last word; for a while."""
    if readings.memory_available is not None:
        return memory_guard.follow(state.room, readings.memory_available, config.memory_reserve, elapsed), 0.0
    if state.room is None and not state.untold:
        return None, 0.0
    untold = state.untold + (_SILENT if elapsed is None else elapsed)
    return state.room if untold <= _patience(config) else None, untold


def _patience(config: Governing) -> float:
    """Seconds of silence in which the last words still count."""
    return max(_SILENT, _SILENT_INTERVALS * config.interval)


def budget(state: State, device: Device, config: Governing) -> Budget:
    """What may be done now. Never negative, never over the device's ceilings."""
    threads = max(1, device.threads)
    if not config.enabled:
        return Budget(max(1, device.batch_tokens), threads, 1.0, True, "the governor is off", max(1, device.window))
    fit = _fit(state, device)
    share, battery = _power(state.readings)
    duty = min(state.heat.duty, state.brakes.share, share, _BLIND if state.silent else 1.0)
    duty = 0.0 if state.level is Pressure.CRITICAL or not fit.threads else max(_TRICKLE, duty)
    tokens = min(int(state.pace.tokens), fit.batch_tokens, max(1, device.batch_tokens))
    calm = state.level < Pressure.HOT and not state.silent and fit.row_tokens >= device.window
    waits = state.readings.memory_pressure
    return Budget(
        padded_tokens=tokens,
        threads=fit.threads,
        duty=duty,
        background=calm and share > _LOW_BATTERY and (waits is None or not waits >= brakes.PSI_SOME),
        reason=_reason(state, device, fit, battery),
        row_tokens=fit.row_tokens,
        level=state.level,
    )


def _fit(state: State, device: Device) -> Fit:
    threads, window, batch = max(1, device.threads), max(1, device.window), max(1, device.batch_tokens)
    return memory_guard.fit(state.room, threads, window, batch, device.bytes_per_token, device.base_bytes)


def _power(readings: Readings) -> tuple[float, str]:
    """Share of the duty, and why it is not all."""
    if not readings.on_battery:
        return 1.0, ""
    if readings.battery is None:
        return _BATTERY, "on battery"
    low = readings.battery < _LOW
    return _LOW_BATTERY if low else _BATTERY, f"on battery, {readings.battery:.0%} left"


def _levelled(state: State, device: Device, config: Governing, elapsed: float) -> State:
    """Up at once, down after a time in which less would have done."""
    wanted = max(_heat_level(state, config), _memory_level(state, device), state.brakes.level)
    if state.silent:
        wanted = max(wanted, Pressure.WARM)
    if wanted > state.level:
        return replace(state, level=wanted, since=state.at, changes=state.changes + 1, calm=0.0)
    if wanted == state.level:
        return replace(state, calm=0.0)
    calm = state.calm + elapsed
    if calm < (_CALM_CRITICAL if state.level is Pressure.CRITICAL else _CALM):
        return replace(state, calm=calm)
    return replace(state, level=wanted, since=state.at, changes=state.changes + 1, calm=0.0)


def _heat_level(state: State, config: Governing) -> Pressure:
    """Where the temperature is held, the box is warm; hot and critical are for what the duty could not hold."""
    heat = state.heat
    if heat.temperature is None:
        return Pressure.NOMINAL
    starts = (
        (Pressure.CRITICAL, heat.trip),
        (Pressure.HOT, heat.trip - config.margin / 4),
        (Pressure.WARM, heat.trip - config.margin - _WARM),
    )
    for level, start in starts:
        if heat.temperature >= start - (_HYSTERESIS if state.level >= level else 0.0):
            return level
    return Pressure.NOMINAL


def _memory_level(state: State, device: Device) -> Pressure:
    fit = _fit(state, device)
    if not fit.threads:
        return Pressure.CRITICAL
    if fit.row_tokens < device.window:
        return Pressure.HOT
    return Pressure.WARM if fit.threads < device.threads else Pressure.NOMINAL


def _reason(state: State, device: Device, fit: Fit, battery: str) -> str:
    """The number that decides most, in a short sentence."""
    heat, strain = state.heat, state.brakes
    if state.level is Pressure.CRITICAL and state.calm:
        return f"better for {state.calm:.0f} s; ingests go on after {_CALM_CRITICAL:.0f} s"
    if state.silent:
        return f"the sensors have been silent for {state.silent:.0f} s, so half speed at most"
    room = state.room
    if room is not None and (fit.threads < device.threads or fit.row_tokens < device.window):
        need = (device.base_bytes + device.bytes_per_token * device.window) / 1e6
        free = max(0.0, room) / 1e6
        return f"{free:.0f} MB free beyond the reserve, a run of {device.window} tokens needs {need:.0f} MB"
    if strain.strongest is not None and (strain.share <= heat.duty or strain.level >= state.level > Pressure.NOMINAL):
        return strain.strongest.words
    share = _power(state.readings)[0]
    if share < min(heat.duty, strain.share):
        return battery
    if strain.share < heat.duty:
        return f"recovering from an earlier strain, at {strain.share:.0%}"
    if heat.temperature is None:
        return "nothing holds it back"
    return f"{heat.temperature:.1f} C of {heat.trip:.0f} C, {_course(heat.slope)}"


def _course(slope: float) -> str:
    """Degrees a second in words, a minute."""
    a_minute = slope * 60
    if abs(a_minute) < 0.5:
        return "steady"
    return f"{'rising' if a_minute > 0 else 'falling'} {abs(a_minute):.1f} C/min"


def usable_cores() -> int:
    """The cores this process may run on, at least 1; a cpuset narrows them."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def worker_count(config: Embedding) -> int:
    """Ingest inference threads: what is configured, else one a core."""
    return config.workers or usable_cores()


class FixedGovernor:
    """The configured budget, always: for tests, benchmarks and devices that need no care."""

    def __init__(self, config: Embedding) -> None:
        self._budget = Budget(
            padded_tokens=max(1, config.batch_tokens),
            threads=worker_count(config),
            duty=1.0,
            background=True,
            reason="fixed by the configuration",
        )

    def budget(self) -> Budget:
        return self._budget

    def observe(self, padded_tokens: int, seconds: float, cpu_seconds: float) -> None:
        """Nothing is learnt from it: this budget is fixed."""

    def state(self) -> GovernorState:
        return GovernorState(self._budget, since=0, changes=0)
