"""Short-term memory: how much of what was just said goes into a budget. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import replace

from edge.types import Turn

_JOINERS = "\u200d\ufe0e\ufe0f"


def fit(
    newest_first: Iterable[Turn], *, budget: int, most_bytes: int, tokens: Callable[[str], int]
) -> tuple[list[Turn], bool]:
    """(turns, truncated): the newest turns, oldest of them first, that have `budget` tokens and `most_bytes` together.

    Turns are whole, and taken one by one until the next does not fit. When already the newest does not, its end is
    given, and `truncated` says so. The bytes have a bound of their own, for white space costs no tokens.
    """
    kept: list[Turn] = []
    for turn in newest_first:
        room, cost = _bytes(turn), tokens(turn.text)
        if cost > budget or room > most_bytes:
            return (
                (kept[::-1], False)
                if kept
                else ([replace(turn, text=_tail(turn.text, budget, most_bytes, tokens))], True)
            )
        kept.append(turn)
        budget -= cost
        most_bytes -= room
    return kept[::-1], False


def _tail(text: str, budget: int, most_bytes: int, tokens: Callable[[str], int]) -> str:
    """The longest end of the text that was found to fit."""

    def fits(length: int) -> bool:
        end = text[len(text) - length :]
        return len(end.encode()) <= most_bytes and tokens(end) <= budget

    # From below, so that no more than twice the answer is ever tokenized.
    good, bad = 0, min(budget, len(text))
    while bad < len(text) and fits(bad):
        good, bad = bad, min(2 * bad, len(text))
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    start = len(text) - good
    # What belongs to a character that was cut off.
    while start < len(text) and (unicodedata.category(text[start])[0] == "M" or text[start] in _JOINERS):
        start += 1
    return text[start:]


def _bytes(turn: Turn) -> int:
    return len(turn.text.encode()) + len(turn.attributes) + sum(len(tag.encode()) for tag in turn.tags)
