"""What this machine's processor is and can do, as far as speed and rounding depend on it."""

from __future__ import annotations

import contextlib
import functools
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from edge.embedder.governor import usable_cores

# What decides which int8 and float kernels onnxruntime takes (MLAS, onnxruntime/core/mlas/lib/platform.cpp).
_TELLING = frozenset(
    (
        "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx_vnni", "avx_vnni_int8",
        "amx_int8", "amx_tile", "avx512_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2", "asimdhp", "fphp",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hardware:
    """`memory` in whole GiB, since firmware and kernel take a little more or less of it at each update."""

    processor: str
    cores: int
    memory: int
    flags: tuple[str, ...]
    machine: str

    @property
    def saturates(self) -> bool:
        """Whether sums of two u8 x s8 products are cut at 16 bits: x86 without VNNI (vpmaddubsw)."""
        return self.machine in ("x86_64", "AMD64") and not {"avx512_vnni", "avx_vnni"} & set(self.flags)


@functools.cache
def here() -> Hardware:
    """This machine; an empty name or no flags where the system does not tell."""
    name, flags = _linux() if sys.platform == "linux" else _macos() if sys.platform == "darwin" else ("", set())
    return Hardware(
        processor=name or platform.processor(),
        cores=usable_cores(),
        memory=round(psutil.virtual_memory().total / (1 << 30)),
        flags=tuple(sorted(flags & _TELLING)),
        machine=platform.machine(),
    )


def _linux() -> tuple[str, set[str]]:
    with contextlib.suppress(OSError):
        return parse(Path("/proc/cpuinfo").read_text("utf-8", "replace"))
    return "", set()


def parse(cpuinfo: str) -> tuple[str, set[str]]:
    """(name, flags) of a /proc/cpuinfo; x86 calls them "flags", ARM "Features" and has part numbers for a name."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip().lower(), value.strip())
    arm = " ".join(found[key] for key in ("cpu implementer", "cpu part") if key in found)
    return found.get("model name", arm), set((found.get("flags") or found.get("features", "")).split())


def _macos() -> tuple[str, set[str]]:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True, text=True, timeout=2, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "", set()
    return done.stdout.strip(), set()
