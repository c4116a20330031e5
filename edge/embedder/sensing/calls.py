"""What the system says by calls instead of files: psutil, and macOS's notifications."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from edge.embedder.sensing.apple import ThermalPressure

# psutil.sensors_temperatures: entries with `current`, `high` and `critical` in degrees Celsius, by chip.
Temperatures = Callable[[], Mapping[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Calls:
    """None: this system has no such call. Each may raise anything, and may hang."""

    temperatures: Temperatures | None = None
    # The level of macOS's thermal pressure, 0 to 4.
    thermal_pressure: Callable[[], int] | None = None
    # Bytes; asked only where there is no /proc/meminfo.
    memory_available: Callable[[], int] | None = None
    # psutil's battery: `percent` and `power_plugged`; asked only where there is no /sys/class/power_supply.
    battery: Callable[[], Any] | None = None


def of_this_system() -> Calls:
    return Calls(
        # psutil has these two only where it knows how to ask.
        temperatures=getattr(psutil, "sensors_temperatures", None),
        thermal_pressure=ThermalPressure() if sys.platform == "darwin" else None,
        memory_available=lambda: int(psutil.virtual_memory().available),
        battery=getattr(psutil, "sensors_battery", None),
    )
