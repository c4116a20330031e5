"""What the device feels: every sensor that can be found, read once or watched."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from edge.embedder.readings import Readings
from edge.embedder.sensing import apple, power
from edge.embedder.sensing.calls import Calls, of_this_system
from edge.embedder.sensing.headroom import Memory
from edge.embedder.sensing.probes import Probe, ReadFile, Sample, Tree, read_file
from edge.embedder.sensing.zones import Temperature, hottest
from edge.ports import Clock
from edge.types import SensorFact

logger = logging.getLogger(__name__)

# Drivers load late (the GPU's, above all), and devices are unplugged.
_DISCOVERY_INTERVAL = 60.0
_IDLE_INTERVAL = 1.0
_NO_HEAT = "no sensor says how hot the device is; only memory and the measured times govern its speed"


class Sensors:
    """Finds the sensors under one root, and reads them. For one thread at a time; SensorWatch is that thread."""

    def __init__(
        self,
        clock: Clock,
        *,
        root: Path = Path("/"),
        read_file: ReadFile = read_file,
        calls: Calls | None = None,
    ) -> None:
        """`root` holds sys/, proc/, var/ and etc/; `calls` are those of this system when none are given."""
        self._clock = clock
        tree = Tree(root, read_file)
        asked = of_this_system() if calls is None else calls
        temperature, memory = Temperature(tree, asked.temperatures), Memory(tree, asked.memory_available)
        overcurrent = power.OverCurrent(tree, clock)
        # In the order of reading: what protects the box first. psutil's temperatures must follow the zones'.
        self._sources: tuple[tuple[str, Callable[[], list[Probe]]], ...] = (
            ("memory", memory.probes),
            ("temperature", temperature.probes),
            ("thermal pressure", partial(_thermal_pressure, asked)),
            ("over-current", overcurrent.probes),
            ("GPU load", partial(power.gpu, tree)),
            ("CPU frequency", partial(power.frequency, tree)),
            ("power supply", partial(power.supplies, tree, asked.battery)),
            ("power mode", partial(power.mode, tree)),
        )
        self._probes: tuple[Probe, ...] = ()
        self._unfound: tuple[SensorFact, ...] = ()
        self._found_at: float | None = None
        # Sensors whose problem the log has.
        self._named: set[str] = set()

    def probes(self) -> Iterator[Probe]:
        """What is to be read now, in order. About once a minute the first looks for sensors, and finds the rest."""
        if self._found_at is None or self._clock.monotonic() - self._found_at >= _DISCOVERY_INTERVAL:
            yield Probe("the search for sensors", "", self._discover)
        yield from self._probes

    def combine(self, samples: Sequence[Sample]) -> Readings:
        """One reading out of all samples; each problem is logged once in the life of the process."""
        zones = [zone for sample in samples for zone in sample.zones]
        temperature, trip = hottest(zones)
        pressure = max((s.pressure for s in samples if s.pressure is not None), default=None)
        facts = (*self._unfound, *(fact for sample in samples for fact in sample.facts))
        if temperature is None and pressure is None:
            facts = (*facts, SensorFact("temperature", None, "C", _NO_HEAT))
        for fact in facts:
            if fact.problem and fact.name not in self._named:
                self._named.add(fact.name)
                # That a device has no such sensor is no fault of it.
                level = logging.INFO if fact.problem == _NO_HEAT else logging.WARNING
                logger.log(level, "sensor %s: %s", fact.name, fact.problem)
        supplied = {s.on_battery for s in samples if s.on_battery is not None}
        charges = [s.battery for s in samples if s.battery is not None]
        return Readings(
            at=self._clock.monotonic(),
            temperature=temperature,
            trip=trip,
            pressure=pressure,
            overcurrent=max((s.overcurrent for s in samples if s.overcurrent is not None), default=None),
            gpu_load=max((s.gpu_load for s in samples if s.gpu_load is not None), default=None),
            frequency=min((s.frequency for s in samples if s.frequency is not None), default=None),
            memory_available=min((s.memory_available for s in samples if s.memory_available is not None), default=None),
            memory_pressure=max((s.memory_pressure for s in samples if s.memory_pressure is not None), default=None),
            # Mains wins over a battery that is drawn on beside it.
            on_battery=False not in supplied if supplied else None,
            battery=sum(charges) / len(charges) if charges else None,
            power_mode=next((s.power_mode for s in samples if s.power_mode), ""),
            sensors=facts,
        )

    def read(self) -> Readings:
        """All sensors, on this thread. Never raises; one that hangs keeps it for ever, so the box uses SensorWatch."""
        return self.combine([probe.sample() for probe in self.probes()])

    def _discover(self) -> Sample:
        found = [_find(name, source) for name, source in self._sources]
        self._probes = tuple(probe for probes, _ in found for probe in probes)
        self._unfound = tuple(fact for _, fact in found if fact is not None)
        self._found_at = self._clock.monotonic()
        return Sample()


def _find(name: str, source: Callable[[], list[Probe]]) -> tuple[list[Probe], SensorFact | None]:
    try:
        return source(), None
    except Exception as error:  # noqa: BLE001  # one class of sensors must not take the others with it
        return [], SensorFact(name, None, "", f"cannot be looked for ({type(error).__name__})")


def _thermal_pressure(asked: Calls) -> list[Probe]:
    if asked.thermal_pressure is None:
        return []
    return [Probe("thermal pressure", "", partial(_ask_pressure, asked.thermal_pressure))]


def _ask_pressure(ask: Callable[[], int]) -> Sample:
    level = ask()
    return Sample(pressure=apple.pressure(level), facts=(SensorFact("thermal pressure", float(level), ""),))


class _Errand:
    """Probes read one after the other on a thread of its own, which is given up when one of them hangs."""

    def __init__(self, probes: Iterator[Probe], hung: dict[str, Sample], lock: threading.Lock) -> None:
        self.done = threading.Event()
        self.samples: list[Sample] = []
        self._probes = probes
        self._hung = hung
        self._lock = lock
        self._current: Probe | None = None
        self._steps = 0
        self._seen = -1
        self._given_up = False
        threading.Thread(target=self._run, name="edge-sensors-read", daemon=True).start()

    def _run(self) -> None:
        probe = self._next(None)
        while probe is not None:
            probe = self._next(probe.sample())

    def _next(self, sample: Sample | None) -> Probe | None:
        with self._lock:
            if self._given_up:
                # It came back after all: its sensor is read again from the next round on.
                assert self._current is not None
                self._hung.pop(self._current.name, None)
                return None
            if sample is not None:
                self.samples.append(sample)
            self._steps += 1
            self._current = next((probe for probe in self._probes if probe.name not in self._hung), None)
            if self._current is None:
                self.done.set()
            return self._current

    def look(self) -> list[Probe]:
        """What is left to be read when it stands at the probe where the last look found it; it is given up then."""
        with self._lock:
            if self._current is None or self._steps != self._seen:
                self._seen = self._steps
                return []
            self._hung[self._current.name] = self._current.failed("does not answer; it is left out until it does")
            self._given_up = True
            self.done.set()
            return [probe for probe in self._probes if probe.name not in self._hung]


class SensorWatch:
    """One thread that reads the sensors again and again. A read that hangs costs its own sensor and no other.

    A read inside the kernel cannot be interrupted, so every round is read on a thread that may be left behind.
    """

    def __init__(
        self,
        sensors: Sensors,
        interval: float,
        on_reading: Callable[[Readings], None],
        *,
        busy: Callable[[], bool] = lambda: True,
        patience: float = 2.0,
    ) -> None:
        """`interval` and `patience` are in seconds; while not `busy()`, the interval is one second at least.

        `on_reading` gets each reading on the watch's thread. A reading takes twice `patience` at most, however many
        sensors hang.
        """
        self._sensors = sensors
        self._interval = interval
        self._on_reading = on_reading
        self._busy = busy
        self._patience = patience
        self._lock = threading.Lock()
        self._hung: dict[str, Sample] = {}
        self._latest: Readings | None = None
        self._failures: set[str] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edge-sensors", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """No reading is given out after it. A thread that hangs in a sensor is left behind."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(2 * self._patience)

    def latest(self) -> Readings | None:
        """The last reading, None before the first; its `at` says how old it is."""
        return self._latest

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                reading = self._read()
                if reading is None:
                    break
                self._latest = reading
                self._on_reading(reading)
                pause = self._interval if self._busy() else max(self._interval, _IDLE_INTERVAL)
            except Exception as error:  # noqa: BLE001  # without the watch the box would go by one old reading for ever
                pause = max(self._interval, _IDLE_INTERVAL)
                if (name := type(error).__name__) not in self._failures:
                    self._failures.add(name)
                    logger.warning("a reading of the sensors came to nothing (%s: %s)", name, error)
            self._closing.wait(pause)

    def _read(self) -> Readings | None:
        """None when the watch was closed meanwhile."""
        first = _Errand(self._sensors.probes(), self._hung, self._lock)
        left = self._settle([first])
        # Where one hangs others may, too: side by side they cost the time of one.
        others = [_Errand(iter([probe]), self._hung, self._lock) for probe in left]
        self._settle(others)
        if self._closing.is_set():
            return None
        with self._lock:
            samples = [sample for errand in (first, *others) for sample in errand.samples]
            samples += self._hung.values()
        return self._sensors.combine(samples)

    def _settle(self, errands: list[_Errand]) -> list[Probe]:
        """Waits until each is done or given up; gives the probes that were not reached.

        It looks twice within the patience, and gives up what did not move in between: after a pause of the whole
        process (SIGSTOP, suspend) the first look finds everything late, and nothing hanging.
        """
        left: list[Probe] = []
        while not self._closing.is_set() and not all(errand.done.is_set() for errand in errands):
            end = time.monotonic() + self._patience / 2
            for errand in errands:
                errand.done.wait(max(0.0, end - time.monotonic()))
            for errand in errands:
                if not errand.done.is_set():
                    left += errand.look()
        return left
