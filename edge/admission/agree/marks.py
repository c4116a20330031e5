"""How a value that was read out of a text stands in it: between two marks, so that no later rule takes it apart.

A mark's first letter is its kind: T a point in time of one sort (its second letter), N a number, C text to be left as
it is. The marks are control characters, which no folded text holds.
"""

from __future__ import annotations

import re

OPEN, CLOSE = "\x01", "\x02"
# In the order in which adjacent times are put: how often, date, weekday, clock.
FREQUENCY, DATE, WEEKDAY, CLOCK = "Tf", "Td", "Tw", "Tx"
NUMBER, ORDINAL, CODE = "N", "No", "C"
# Stands where a sentence or a part of it ends.
PAUSE = ","

# A whole mark of the kinds that begin so, as a pattern.
TIME = rf"{OPEN}T[^{CLOSE}]*{CLOSE}"
AMOUNT = rf"{OPEN}N[^o{CLOSE}][^{CLOSE}]*{CLOSE}"
_MARKED = re.compile(rf"({OPEN}[^{CLOSE}]*{CLOSE})")


def mark(kind: str, value: str) -> str:
    return f"{OPEN}{kind} {value}{CLOSE}"


def outside(text: str) -> list[str]:
    """The text cut at its marks: at even places what lies outside, at odd ones the marks."""
    return _MARKED.split(text)
