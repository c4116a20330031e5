"""What the device draws and how fast it may run: over-current, GPU load, frequency, battery and power mode."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from edge.embedder.sensing.probes import NotCredible, Probe, Sample, Tree, printable
from edge.ports import Clock
from edge.types import SensorFact

# "17000000.gpu" and, before JetPack 6, the GPU's own name.
_GPU = re.compile(r"gpu|ga10b|gv11b|gp10b|gm20b")
_MODE = re.compile(r"pmode:0*([0-9]{1,4})\b")
_ON_BATTERY = {"Discharging": True, "Charging": False, "Full": False, "Not charging": False}


class OverCurrent:
    """The rate of the Jetson's over-current events, from the counters of hwmon's `soctherm_oc`."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock
        self._counters: list[Path] = []
        # Kept over discoveries: a rate needs the time before.
        self._last: dict[Path, int] = {}
        self._at = 0.0

    def probes(self) -> list[Probe]:
        self._counters = [
            counter
            for name in self._tree.find("sys/class/hwmon/hwmon*/name")
            if self._tree.word(name) == "soctherm_oc"
            for counter in sorted(name.parent.glob("oc*_event_cnt"))
        ]
        return [Probe("over-current", "events/s", self._read)] if self._counters else []

    def _read(self) -> Sample:
        now = self._clock.monotonic()
        counts = {path: self._tree.number(path) for path in self._counters}
        if any(count < 0 for count in counts.values()):
            raise NotCredible("counts below zero")
        last, elapsed = self._last, now - self._at
        self._last, self._at = counts, now
        if not last or elapsed <= 0:
            return Sample()
        # A counter that went back, or is new, started again: how many it had is not known.
        events = sum(max(0, count - last.get(path, count)) for path, count in counts.items())
        rate = events / elapsed
        return Sample(overcurrent=rate, facts=(SensorFact("over-current", rate, "events/s"),))


def gpu(tree: Tree) -> list[Probe]:
    """The load of an integrated GPU, which Tegra's driver gives in permille."""
    places = {path.resolve(): path for path in tree.find("sys/devices/platform/gpu.0/load")}
    for path in tree.find("sys/class/devfreq/*/device/load"):
        if _GPU.search(path.parents[1].name):
            places.setdefault(path.resolve(), path)
    names = ["GPU load", *(f"GPU load {number}" for number in range(2, len(places) + 1))]
    return [
        Probe(name, "share", partial(_read_gpu, tree, path, name))
        for name, path in zip(names, places.values(), strict=False)
    ]


def _read_gpu(tree: Tree, path: Path, name: str) -> Sample:
    load = tree.number(path)
    if not 0 <= load <= 1000:
        raise NotCredible(f"says {load} permille, which is no load")
    return Sample(gpu_load=load / 1000, facts=(SensorFact(name, load / 1000, "share"),))


def frequency(tree: Tree) -> list[Probe]:
    """The processors' frequency against their highest, mean over the policies. An idle processor is slow, too."""
    policies = [path.parent for path in tree.find("sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq")]
    return [Probe("CPU frequency", "share", partial(_read_frequency, tree, policies))] if policies else []


def _read_frequency(tree: Tree, policies: list[Path]) -> Sample:
    shares = []
    for policy in policies:
        try:
            now = tree.number(policy / "scaling_cur_freq")
        except OSError as error:
            # The power mode took its cores away.
            if error.errno == errno.EBUSY:
                continue
            raise
        most = tree.number(policy / "cpuinfo_max_freq")
        if not 0 < now <= 2 * most:
            raise NotCredible(f"says {now} of {most} kHz, which is no frequency")
        # A boost goes over what is called the highest.
        shares.append(min(1.0, now / most))
    if not shares:
        return Sample()
    share = sum(shares) / len(shares)
    return Sample(frequency=share, facts=(SensorFact("CPU frequency", share, "share"),))


def supplies(tree: Tree, battery: Callable[[], Any] | None) -> list[Probe]:
    """Mains and batteries of the device itself, by Linux's power_supply class, else by psutil."""
    if not (tree.root / "sys/class/power_supply").is_dir():
        return [Probe("battery", "share", partial(_ask_battery, battery))] if battery is not None else []
    probes = []
    for path in (kind.parent for kind in tree.find("sys/class/power_supply/*/type")):
        # The battery of a mouse has this scope.
        if tree.word(path / "scope") == "Device":
            continue
        name = f"power supply {printable(path.name)}"
        if tree.word(path / "type") in ("Battery", "UPS"):
            probes.append(Probe(name, "share", partial(_read_battery, tree, path, name)))
        elif (path / "online").exists():
            probes.append(Probe(name, "", partial(_read_mains, tree, path)))
    return probes


def _read_mains(tree: Tree, path: Path) -> Sample:
    # A socket without a plug says nothing: the device may have several.
    return Sample(on_battery=False if tree.number(path / "online") > 0 else None)


def _read_battery(tree: Tree, path: Path, name: str) -> Sample:
    status = tree.word(path / "status")
    share = None
    if (path / "capacity").exists():
        percent = tree.number(path / "capacity")
        if not 0 <= percent <= 100:
            raise NotCredible(f"says {percent} percent, which is no charge")
        share = percent / 100
    facts = () if share is None else (SensorFact(name, share, "share"),)
    return Sample(on_battery=_ON_BATTERY.get(status), battery=share, facts=facts)


def _ask_battery(battery: Callable[[], Any]) -> Sample:
    found = battery()
    if found is None:
        return Sample()
    share = found.percent / 100
    if not 0 <= share <= 1:
        raise NotCredible(f"says {found.percent} percent, which is no charge")
    # psutil says None when it does not know.
    on_battery = None if found.power_plugged is None else not found.power_plugged
    return Sample(on_battery=on_battery, battery=share, facts=(SensorFact("battery", share, "share"),))


def mode(tree: Tree) -> list[Probe]:
    """What the owner set the device to: nvpmodel's mode, the firmware's profile, or the frequency governor."""
    return [Probe("power mode", "", partial(_read_mode, tree))]


def _read_mode(tree: Tree) -> Sample:
    match = _MODE.search(tree.word(tree.root / "var/lib/nvpmodel/status"))
    if match:
        try:
            names = tree.text(tree.root / "etc/nvpmodel.conf")
        except OSError:
            names = ""
        named = re.search(rf"< *POWER_MODEL +ID=0*{match.group(1)} +NAME=([\w.+-]{{1,32}}) *>", names)
        return Sample(power_mode=f"nvpmodel {printable(named.group(1)) if named else match.group(1)}")
    for place in ("sys/firmware/acpi/platform_profile", "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"):
        if word := tree.word(tree.root / place):
            return Sample(power_mode=word)
    return Sample()
