"""What the device says of itself at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from edge.types import Pressure, SensorFact


@dataclass(frozen=True, slots=True)
class Readings:
    """None: no sensor says. `at` is in seconds of the clock's monotonic time."""

    at: float
    # Degrees Celsius: the hottest that counts, and where the device throttles itself by its own account.
    temperature: float | None = None
    trip: float | None = None
    # The system's own word for its heat (macOS has no temperatures).
    pressure: Pressure | None = None
    # Over-current events a second.
    overcurrent: float | None = None
    # Shares, 0 to 1.
    gpu_load: float | None = None
    frequency: float | None = None
    # Bytes this process may still take: the least that the system, the own control group and NvMap say.
    memory_available: int | None = None
    # Percent of the last ten seconds in which somebody waited for memory (PSI "some").
    memory_pressure: float | None = None
    on_battery: bool | None = None
    battery: float | None = None
    power_mode: str = ""
    sensors: tuple[SensorFact, ...] = ()
