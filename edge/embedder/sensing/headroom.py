"""How much memory this process may still take, and whether somebody already waits for some."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

from edge.embedder.sensing import cgroups
from edge.embedder.sensing.probes import NotCredible, Probe, Sample, Tree, shown
from edge.types import SensorFact

_KILO = re.compile(r"^(MemTotal|MemAvailable|NvMapMemUsed): +([0-9]{1,15}) kB$", re.MULTILINE)
_SOME = re.compile(r"some avg10=([0-9]{1,3}\.[0-9]{1,6}) ")


class Memory:
    """The system's memory, that of the control groups around the process, and the pressure on it."""

    def __init__(self, tree: Tree, available: Callable[[], int] | None) -> None:
        self._tree = tree
        self._available = available
        self._groups: list[cgroups.Group] = []

    def probes(self) -> list[Probe]:
        self._groups = cgroups.own(self._tree)
        probes = []
        if (self._tree.root / "proc/meminfo").exists():
            probes.append(Probe("memory", "bytes", self._read_meminfo))
        elif self._available is not None:
            probes.append(Probe("memory", "bytes", self._ask))
        if self._groups:
            probes.append(Probe("memory of the control group", "bytes", self._read_groups))
        probes.append(Probe("memory pressure", "percent", self._read_pressure))
        return probes

    def _read_meminfo(self) -> Sample:
        found = {
            key: int(kilos) * 1024 for key, kilos in _KILO.findall(self._tree.text(self._tree.root / "proc/meminfo"))
        }
        available = found.get("MemAvailable")
        total = found.get("MemTotal", 0)
        if available is None or available > total:
            raise NotCredible("has no credible MemAvailable in /proc/meminfo")
        facts = [SensorFact("memory", available, "bytes")]
        nvmap = found.get("NvMapMemUsed")
        if nvmap is not None:
            # What the GPU holds cannot be dropped, whatever else the kernel believes.
            available = min(available, max(0, total - nvmap))
            facts.append(SensorFact("NvMap", nvmap, "bytes"))
        return Sample(memory_available=available, facts=tuple(facts))

    def _ask(self) -> Sample:
        if self._available is None:
            return Sample()
        available = self._available()
        if available < 0:
            raise NotCredible(f"says {available} bytes, which is no amount")
        return Sample(memory_available=available, facts=(SensorFact("memory", available, "bytes"),))

    def _read_groups(self) -> Sample:
        try:
            available = cgroups.available(self._tree, self._groups)
        except FileNotFoundError:
            # The process was moved, and its old group removed.
            self._groups = cgroups.own(self._tree)
            available = cgroups.available(self._tree, self._groups)
        if available is None:
            return Sample()
        fact = SensorFact("memory of the control group", available, "bytes")
        return Sample(memory_available=available, facts=(fact,))

    def _read_pressure(self) -> Sample:
        """PSI (the kernel's accounting/psi): the own group's where there is one, else the system's; often neither."""
        places = [group.path / "memory.pressure" for group in self._groups[:1] if group.version == 2]
        for path in [*places, self._tree.root / "proc/pressure/memory"]:
            try:
                text = self._tree.text(path)
            except OSError as error:
                # A kernel started with psi=0 has the file, and answers EOPNOTSUPP.
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP):
                    continue
                raise
            match = _SOME.match(text)
            if match is None or float(match.group(1)) > 100:
                raise NotCredible(f"says {shown(text)}, which is no pressure")
            percent = float(match.group(1))
            return Sample(memory_pressure=percent, facts=(SensorFact("memory pressure", percent, "percent"),))
        return Sample()
