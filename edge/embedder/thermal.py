"""How much of its time the model may run so that the device stays cool: temperature in, duty out. Pure.

A PI controller (Åström and Hägglund, Advanced PID Control, 2006) on the temperature some seconds ahead. It needs no
model of the device: the proportional part answers a neighbour's burst, the integral part finds the duty that the
device can bear at the limit, whatever its case, its fan and the weather. The way up is cautious (the integral is led
back while the duty is at its most), so that a cold device does not run past the limit; the way down is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Seconds over which readings are smoothed: noise of ±1 °C becomes one of ±0.3 °C.
_SMOOTH = 4.0
_SMOOTH_SLOPE = 10.0
# Degrees above what was expected that are no noise any more, and so are believed sooner, within so many seconds.
_NOISE = 1.5
_SOON = 1.0
# Seconds that the slope is followed into the future.
_LOOK_AHEAD = 10.0
# Duty per degree, and per degree and second: 5 °C between full and no duty; what is left is gone in some minutes.
_GAIN = 0.2
_INTEGRAL = 0.0015
# Seconds in which the integral part is led back while more than full duty is asked for.
_TRACKING = 60.0
# The margin is for what comes suddenly. What is kept is how far readings have lately swung above the line, and a guard
# in degrees, within these shares of the margin: less on a calm device, more beside a wild neighbour. A swing is
# forgotten over an hour.
_GUARD = 0.8
_LEAST_KEPT, _MOST_KEPT = 0.6, 1.5
_FORGET_SWING = 3600.0
# Degrees a second by which one reading may move the filter: a single wild value does not decide.
_FASTEST = 8.0
# Outside the first a sensor lies, outside the second a trip does.
_PLAUSIBLE = (-40.0, 150.0)
_PLAUSIBLE_TRIP = (40.0, 125.0)


@dataclass(frozen=True, slots=True)
class Heat:
    """Temperatures in degrees Celsius, the slope in degrees a second; None: no sensor says."""

    temperature: float | None = None
    slope: float = 0.0
    trip: float = math.inf
    # Degrees below the trip where the temperature is held, and how far it has lately gone above that.
    kept: float = 0.0
    swing: float = 0.0
    # The integral part: the duty at which the device seems to settle at the limit; at first a guess.
    settled: float = 0.3
    duty: float = 1.0
    # Seconds for which a sensor that spoke before has said nothing.
    missing: float = 0.0


def believed(value: float | None) -> float | None:
    """A temperature that can be one."""
    return value if value is not None and _PLAUSIBLE[0] <= value <= _PLAUSIBLE[1] else None


def believed_trip(value: float | None, otherwise: float) -> float:
    """The device's own trip if it can be one."""
    return value if value is not None and _PLAUSIBLE_TRIP[0] <= value <= _PLAUSIBLE_TRIP[1] else otherwise


def follow(heat: Heat, reading: float, trip: float, margin: float, elapsed: float | None) -> Heat:
    """One reading later. `elapsed` in seconds; None: so long ago (or so odd) that the last temperature means nothing.

    All else equal, a hotter reading never gives more duty. The duty settles where the temperature is about `margin`
    below the trip: as far as its swings make needful, 0.6 to 1.5 times that.
    """
    if heat.temperature is None or elapsed is None:
        duty = _clamp(heat.settled + _GAIN * (trip - margin - reading))
        return Heat(reading, 0.0, trip, margin, margin, heat.settled, duty)
    off = reading - heat.temperature
    share = 1 - math.exp(-elapsed / _SMOOTH)
    moved = share * off + (1 - share) * max(0.0, off - _NOISE) * (1 - math.exp(-elapsed / _SOON))
    moved = max(-_FASTEST * elapsed, min(_FASTEST * elapsed, moved))
    temperature = heat.temperature + moved
    slope = heat.slope
    if elapsed > 0:
        slope += (1 - math.exp(-elapsed / _SMOOTH_SLOPE)) * (moved / elapsed - slope)
    predicted = temperature + _LOOK_AHEAD * slope
    above = min(reading - (heat.trip - heat.kept), _MOST_KEPT * margin)
    swing = max(heat.swing * math.exp(-elapsed / _FORGET_SWING), above)
    kept = min(_MOST_KEPT * margin, max(_LEAST_KEPT * margin, _GUARD + swing))
    limit = trip - kept
    wanted = heat.settled + _GAIN * (limit - predicted)
    duty = _clamp(wanted)
    led_back = min(0.0, duty - wanted) * min(1.0, elapsed / _TRACKING)
    settled = _clamp(heat.settled + _INTEGRAL * elapsed * (limit - temperature) + led_back)
    return Heat(temperature, slope, trip, kept, swing, settled, duty)


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))
