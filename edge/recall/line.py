"""A text on one line, and a line made shorter without breaking what belongs together."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

ELLIPSIS = "…"
# A part of a text that ought to be seen: first character, end, weight.
Span = tuple[int, int, float]

_PICTURE = r"\u2190-\u2bff\U0001f000-\U0001faff"
# White space, controls, line breaks and what is invisible (Unicode 15, Default_Ignorable_Code_Point, and the blank
# Braille cell).
_EMPTY = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    r"\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Two more belong to emoji and stay there: the joiner between pictures, and the selector that makes a character a
# picture. A single space inside a line is as it should be.
_FLAT = re.compile(
    rf"(?! [^{_EMPTY}\u200d\ufe0f])(?:[{_EMPTY}]"
    rf"|\u200d(?![{_PICTURE}])|(?<![{_PICTURE}\ufe0f])\u200d"
    rf"|(?<![#*0-9\u00a9\u00ae\u203c-\u3299{_PICTURE}])\ufe0f)+"
)
_SPACED = re.compile(r"\s")
# What is not parted: a word of letters that are written with spaces between words (with its accents and vowel signs),
# and a number with its parts and its unit.
_LETTER = (
    r"(?:[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u9fff"
    r"\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
    r"|[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff])"
)
_WORD = re.compile(rf"{_LETTER}+")
_WHOLE = re.compile(rf"[$€£¥￥]?[+-]?{_LETTER}+(?:[-_'’.,:/@+]+{_LETTER}+)*[%％°]?")
# Nothing here is drawn together with its neighbour: ASCII, punctuation, kana, Han, full width.
_APART = re.compile(
    r"[\x00-\x7f\u00a0-\u00ff\u2010-\u2027\u3000-\u3029\u3030-\u3098\u309b-\u33ff\u3400-\u9fff\uff01-\uffee]*"
)
_CLAUSE = re.compile(r"[，；。！？]|[,;.!?](?=\s)| - | – |——")


def flatten(text: str) -> str:
    """One line: runs of white space, controls and invisible characters become one space where there was space, else
    nothing.
    """
    return _FLAT.sub(lambda match: " " if _SPACED.search(match[0]) else "", text).strip()


def shorten(text: str, limit: int, spans: Sequence[Span] = ()) -> str:
    """At most `limit` characters of a line in one run, with an ellipsis where some are missing.

    The run that has the most of `spans`, of equals the first. It begins and ends where a clause does when that loses
    nothing, and never inside a number, a word that is written with letters, or what is drawn as one character, unless
    that alone is longer than half of the limit.
    """
    if len(text) <= limit:
        return text
    if limit < 3:
        return ELLIPSIS[: max(limit, 0)]
    room = limit - 2
    cuts = _cuts(text, max(room // 2, 1))
    clauses = sorted({match.end() for match in _CLAUSE.finditer(text)}.intersection(cuts))
    begins = {0}
    starts = {0, cuts[bisect_left(cuts, len(text) - room - 1)]}
    for first, _, _ in spans:
        starts.add(cuts[bisect_right(cuts, first) - 1])
        starts.add(cuts[bisect_left(cuts, max(first - room // 2, 0))])
        if place := bisect_right(clauses, first):
            begins.add(clauses[place - 1])
    sums = _sums(len(text), spans)
    best, start, end = (-1.0, False), 0, 0
    for first in sorted(starts | begins):
        left = limit - 1 if first == 0 else room
        last = len(text) if len(text) - first <= left + (first > 0) else cuts[bisect_right(cuts, first + left) - 1]
        # Of equals one that begins as a clause does, and is not too short for it.
        rank = (round(sums[last] - sums[first], 6), first in begins and last - first >= room // 2)
        if last > first and rank > best:
            best, start, end = rank, first, last
    if end < len(text):
        # Back to the end of a clause, when half of the room is used all the same and nothing that counts is lost.
        clause = clauses[place - 1] if (place := bisect_right(clauses, end)) else 0
        if clause - start >= room // 2 and sums[end] - sums[clause] < 1e-9:
            end = clause
    shown = text[start:end].strip()
    return (ELLIPSIS if start else "") + shown + (ELLIPSIS if end < len(text) else "")


def _sums(length: int, spans: Sequence[Span]) -> list[float]:
    """What the spans weigh up to each place; the weight of a span lies on its characters."""
    weights = [0.0] * length
    for start, end, weight in spans:
        for place in range(start, end):
            weights[place] += weight / (end - start)
    return [0.0, *accumulate(weights)]


def _cuts(text: str, longest: int) -> list[int]:
    """Where a line may be cut, ascending, 0 and its end among them; what is longer than `longest` may be parted."""
    free = bytearray(b"\1") * (len(text) + 1)
    for match in _WHOLE.finditer(text):
        parts = [match] if match.end() - match.start() <= longest else _WORD.finditer(text, *match.span())
        for part in parts:
            if (inside := part.end() - part.start() - 1) < longest:
                free[part.start() + 1 : part.end()] = bytes(inside)
    if not _APART.fullmatch(text):
        _keep_drawn(text, free, longest)
    free[0] = free[len(text)] = 1
    return [place for place, may in enumerate(free) if may]


def _keep_drawn(text: str, free: bytearray, longest: int) -> None:
    """Marks the places inside of what is drawn as one character (UAX 29, in short)."""
    begun, flags = 0, 0
    for place in range(1, len(text)):
        left, right = text[place - 1], text[place]
        flags = flags + 1 if "\U0001f1e6" <= left <= "\U0001f1ff" else 0
        joined = right > "\x7f" and (
            left == "\u200d"
            or right == "\u200d"
            or unicodedata.category(right)[0] == "M"
            or "\U0001f3fb" <= right <= "\U0001f3ff"
            # A flag is two of them: the third begins the next one.
            or (flags % 2 == 1 and "\U0001f1e6" <= right <= "\U0001f1ff")
            or ("\u1160" <= right <= "\u11ff" and "\u1100" <= left <= "\u11ff")
        )
        if not joined:
            begun = place
        elif place - begun < longest:
            free[place] = 0
