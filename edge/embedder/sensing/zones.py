"""How hot it is: thermal zones by their type, what psutil finds where they are silent, and what of it counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from edge.embedder.sensing.calls import Temperatures
from edge.embedder.sensing.probes import NotCredible, Probe, Rank, Sample, Tree, Zone, shown
from edge.types import SensorFact

# Nothing that runs in a home is colder or hotter; broken drivers say 0, -256000 and 10^9.
_COLDEST, _HOTTEST = 1.0, 150.0
# Trip points of 0 and of -274 stand for "not set" on x86.
_LEAST_TRIP = 40.0
# At a critical point the device switches itself off; it throttles some way below, and where is not said. A high one
# would only hide the configured fallback.
_LOW_CRITICAL = 95.0
_BELOW_CRITICAL = 10.0
# Types of zones and names of hwmon chips: "cpu-thermal", "CPU-therm", "cv0-thermal", "x86_pkg_temp", "coretemp".
_CHIP = re.compile(r"cpu|gpu|soc|(^|[^a-z])cv[0-9_-]|pkg|core|k10temp|zenpower")


def rank(kind: str) -> Rank:
    """What a zone of this type measures; Linux names them as the device tree does, in any case."""
    kind = kind.lower()
    if re.match(r"tj([^a-z]|$)", kind):
        return Rank.JUNCTION
    return Rank.CHIP if _CHIP.search(kind) else Rank.OTHER


def hottest(zones: Sequence[Zone]) -> tuple[float | None, float | None]:
    """The temperature that counts, and where the device throttles by its own account; None: no zone says.

    The junction's zone before those of the chips, those before all others. On Orin the junction's zone has no passive
    trip point while the chips' zones have, so theirs count for it too.
    """
    if not zones:
        return None, None
    best = min(zone.rank for zone in zones)
    temperature = max(zone.temperature for zone in zones if zone.rank == best)
    telling = [zone for zone in zones if zone.rank <= max(best, Rank.CHIP)]
    passive = [zone.passive for zone in telling if zone.passive is not None]
    hot = [zone.hot for zone in telling if zone.hot is not None]
    critical = [zone.critical - _BELOW_CRITICAL for zone in telling
                if zone.critical is not None and zone.critical <= _LOW_CRITICAL]  # fmt: skip
    for trips in (passive, hot, critical):
        if trips:
            return temperature, min(trips)
    return temperature, None


class Temperature:
    """The thermal zones of sysfs, and psutil for as long as none of them speaks (psutil#2477)."""

    def __init__(self, tree: Tree, temperatures: Temperatures | None) -> None:
        self._tree = tree
        self._temperatures = temperatures
        # Names of the zones whose last read was good. A zone that hangs is not in it.
        self._speaking: set[str] = set()

    def probes(self) -> list[Probe]:
        found = [(path.parent, self._tree.word(path)) for path in
                 self._tree.find("sys/class/thermal/thermal_zone*/type")]  # fmt: skip
        times = Counter(kind for _, kind in found)
        self._speaking.clear()
        probes = []
        for path, kind in found:
            name = kind if kind and times[kind] == 1 else f"{kind} ({path.name})".strip()
            reader = _ZoneReader(self._tree, path, name, rank(kind), self._speaking)
            probes.append(Probe(name, "C", reader.read))
        if self._temperatures is not None:
            probes.append(Probe("psutil", "C", self._ask_psutil))
        return probes

    def _ask_psutil(self) -> Sample:
        if self._speaking or self._temperatures is None:
            return Sample()
        zones: list[Zone] = []
        facts: list[SensorFact] = []
        for chip, entries in self._temperatures().items():
            here = [zone for entry in entries if (zone := _from_psutil(chip, entry)) is not None]
            zones += here
            if here:
                facts.append(SensorFact(chip, max(zone.temperature for zone in here), "C"))
            else:
                facts.append(SensorFact(chip, None, "C", "says nothing that can be a temperature"))
        return Sample(zones=tuple(zones), facts=tuple(facts))


class _ZoneReader:
    def __init__(self, tree: Tree, path: Path, name: str, rank: Rank, speaking: set[str]) -> None:
        self._tree = tree
        self._path = path
        self._name = name
        self._rank = rank
        self._speaking = speaking
        # Read with the first good temperature, and again only after the next discovery.
        self._trips: dict[str, float] | None = None

    def read(self) -> Sample:
        self._speaking.discard(self._name)
        raw = self._tree.number(self._path / "temp")
        value = raw / 1000
        if not _COLDEST <= value <= _HOTTEST:
            raise NotCredible(f"says {shown(str(raw))} thousandths of a degree, which is no temperature")
        if self._trips is None:
            self._trips = self._read_trips()
        trips = self._trips
        zone = Zone(self._rank, value, trips.get("passive"), trips.get("hot"), trips.get("critical"))
        self._speaking.add(self._name)
        return Sample(zones=(zone,), facts=(SensorFact(self._name, value, "C"),))

    def _read_trips(self) -> dict[str, float]:
        """The lowest credible trip point of each type; one that cannot be read is not there."""
        trips: dict[str, float] = {}
        for path in sorted(self._path.glob("trip_point_*_type")):
            kind = self._tree.word(path)
            try:
                value = self._tree.number(path.with_name(path.name.removesuffix("type") + "temp")) / 1000
            except (OSError, NotCredible):
                continue
            if _LEAST_TRIP <= value <= _HOTTEST:
                trips[kind] = min(value, trips.get(kind, value))
        return trips


def _from_psutil(chip: str, entry: object) -> Zone | None:
    """psutil's `high` is hwmon's max, and its `critical` hwmon's crit: where a processor throttles, by coretemp."""
    current = _degrees(getattr(entry, "current", None), _COLDEST)
    if current is None:
        return None
    high = _degrees(getattr(entry, "high", None), _LEAST_TRIP)
    critical = _degrees(getattr(entry, "critical", None), _LEAST_TRIP)
    return Zone(rank(chip), current, hot=high, critical=critical)


def _degrees(value: object, least: float) -> float | None:
    if isinstance(value, (int, float)) and least <= value <= _HOTTEST:
        return float(value)
    return None
