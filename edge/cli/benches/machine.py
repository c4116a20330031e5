"""What the figures were measured on, and how busy it was besides."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from edge.cli.benches.result import median

_PACKAGES = ("onnxruntime", "tokenizers", "hnswlib", "grpcio", "numpy")
# What the int8 kernels of onnxruntime look for.
_FLAGS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm")
_SYNCS = 30


def describe() -> dict[str, Any]:
    """Processor, memory, versions, the load before the bench, and how long the disk under the box takes to sync."""
    try:
        information = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        information = ""
    named = re.search(r"^model name\s*:\s*(.+)$", information, re.MULTILINE)
    listed = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", information, re.MULTILINE)
    flags = listed.group(1).split() if listed else []
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": named.group(1) if named else platform.processor() or platform.machine(),
        "instructions": [flag for flag in _FLAGS if flag in flags],
        "cores": cores(),
        "memory_mb": psutil.virtual_memory().total / 1e6,
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "sync_ms": sync_seconds() * 1000,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sync_seconds() -> float:
    """Median time to append a line to a file in the temporary directory and have it on the disk."""
    took = []
    with tempfile.TemporaryFile() as file:
        for _ in range(_SYNCS):
            started = time.perf_counter()
            file.write(b"x" * 500)
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - started)
    return median(took)


def resident(pid: int) -> int:
    """Bytes of memory a process holds now."""
    return int(psutil.Process(pid).memory_info().rss)
