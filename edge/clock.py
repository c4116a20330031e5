"""The device's own clock."""

from __future__ import annotations

import time

from edge.types import Micros

# Counts on during sleep on Linux; macOS's monotonic clock does not, and has nothing better in Python.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Implements ports.Clock."""

    def now(self) -> Micros:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.clock_gettime(_BOOTTIME)
