"""Small graphs in a line of text. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
# Where the terminal has no blocks.
_PLAIN = "_.,-=+*#"


def columns(
    points: Sequence[tuple[float, float | None]], now: float, width: int, span: float, hold: float
) -> list[float | None]:
    """The last `span` seconds before `now` in `width` equal stretches, the newest last: the highest point of each.

    Points are (seconds, value), oldest first. A stretch without one goes on with the value before it, for `hold`
    seconds at most; None is where nothing is known. The stretches stand still on the clock, so that a picture drawn
    again moves by whole columns.
    """
    stretch = span / width
    first = math.floor(now / stretch) - width + 1
    measured: dict[int, float] = {}
    carried: dict[int, float | None] = {}
    for at, value in points:
        place = math.floor(at / stretch) - first
        if value is not None:
            measured[place] = max(value, measured.get(place, value))
        # A point without a value ends what stood before it, in its own stretch already.
        for later in range(place + (value is not None), min(width, math.floor((at + hold) / stretch) - first + 1)):
            carried[later] = value
    return [measured.get(place, carried.get(place)) for place in range(width)]


def sparkline(values: Sequence[float | None], low: float, high: float, blocks: bool = True) -> str:
    """A character a value, from `low` to `high`; a space for None."""
    steps = _BLOCKS if blocks else _PLAIN
    reach = high - low
    marks = []
    for value in values:
        if value is None:
            marks.append(" ")
            continue
        share = (value - low) / reach if reach > 0 else 0.0
        marks.append(steps[round(min(1.0, max(0.0, share)) * (len(steps) - 1))])
    return "".join(marks)
