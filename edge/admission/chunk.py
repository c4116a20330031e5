"""A turn's text, cut into the pieces that are recalled by themselves.

Paragraph first, then sentence, clause, space, and a hard cut only where there is nothing else. Where to cut is
chosen by least cost over the whole text (as in Knuth and Plass, "Breaking Paragraphs into Lines", 1981): short
pieces, cuts inside a paragraph and pieces that span paragraphs all cost, so that small lines travel together and no
tail is left alone.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass

from edge.admission.visible import has_visible

LIMIT = 300

# How well a cut before an atom is placed.
_BLANK, _LINE, _SENTENCE, _CLAUSE, _SPACE, _HARD = range(6)
# What a cut there costs, and what it costs to have such a place inside a piece.
_CUT = (0.0, 0.0, 0.15, 0.4, 0.5, 0.6)
_SPAN = (0.3, 0.12, 0.0, 0.0, 0.0, 0.0)
_PIECE = 0.1
# Pieces below this are costly: too little for a vector to hold on to.
_SHORT = 120
# Atoms below this go with a neighbour before cuts are chosen; it also bounds the work.
_TINY = 40

_NEWLINE = r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]"
_LINES = re.compile(f"(?:{_NEWLINE})+")
_CLOSERS = r"[”’」』）》】)\]\"']*"
_SENTENCES = re.compile(
    rf"(?:[。！？；…]+|[!?;]+(?![\w=&/])|(?<!\.)\.+(?=[\"')\]]*(?:\s|[^\x00-\x7f])))[。！？；…!?;.]*{_CLOSERS}"
)
_CLAUSES = re.compile(r"[，、：]|[,:](?=\s|[^\x00-\x7f])")
_SPACES = re.compile(r"\s+")
_LEVELS = ((_SENTENCES, _SENTENCE), (_CLAUSES, _CLAUSE), (_SPACES, _SPACE))


@dataclass(slots=True)
class _Atom:
    start: int
    end: int
    # The place before it.
    place: int


def chunk(text: str) -> list[tuple[int, int]]:
    """Spans [start, end) of characters, in order, disjoint, each at most 300 long and with something visible.

    Between and around them lies only what cannot be seen. A text of at most 300 characters is one span, all of it; a
    text with nothing visible has none. Linear in the text's length.
    """
    if len(text) <= LIMIT:
        return [(0, len(text))] if has_visible(text) else []
    return _pack(_gather(_atoms(text)))


def _atoms(text: str) -> list[_Atom]:
    atoms: list[_Atom] = []
    at, blank = 0, False
    ends = itertools.chain(((m.start(), m.end()) for m in _LINES.finditer(text)), [(len(text), len(text))])
    for end, after in ends:
        before = len(atoms)
        _split(text, at, end, _BLANK if blank else _LINE, 0, atoms)
        # A line of nothing but white space is as blank as no line at all.
        blank = len(atoms) == before or (after - end > 1 and text[end:after] != "\r\n")
        at = after
    return atoms


def _split(text: str, start: int, end: int, place: int, level: int, atoms: list[_Atom]) -> None:
    """Appends the atoms of text[start:end], trimmed; the first has `place` before it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if end - start <= LIMIT:
        if has_visible(text, start, end):
            atoms.append(_Atom(start, end, place))
        return
    if level == len(_LEVELS):
        _cut(text, start, end, place, atoms)
        return
    pattern, inner = _LEVELS[level]
    at = start
    for match in pattern.finditer(text, start, end):
        if at < match.end() < end:
            _split(text, at, match.end(), place, level + 1, atoms)
            at, place = match.end(), inner
    _split(text, at, end, place, level + 1, atoms)


def _cut(text: str, start: int, end: int, place: int, atoms: list[_Atom]) -> None:
    """Even slices, so that the last is no crumb."""
    while end - start > LIMIT:
        slices = -(-(end - start) // LIMIT)
        at = _character_break(text, start + -(-(end - start) // slices))
        if has_visible(text, start, at):
            atoms.append(_Atom(start, at, place))
        start, place = at, _HARD
    if has_visible(text, start, end):
        atoms.append(_Atom(start, end, place))


def _character_break(text: str, at: int) -> int:
    """The nearest place at or a little before `at` that does not part what is drawn as one (UAX 29, in short)."""
    for place in range(at, max(at - 32, 0), -1):
        if not _joined(text[place - 1], text[place]):
            return place
    return at


def _joined(left: str, right: str) -> bool:
    return (
        left == "\u200d"
        or right == "\u200d"
        or unicodedata.category(right)[0] == "M"
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff")
    )


def _gather(atoms: list[_Atom]) -> list[_Atom]:
    """Tiny atoms joined to a neighbour: forward, or backward at the end of a paragraph; a tiny paragraph to the next
    one.
    """
    joined: list[_Atom] = []
    for at, atom in enumerate(atoms):
        if joined and atom.end - joined[-1].start <= LIMIT:
            last = joined[-1]
            ends_block = at + 1 == len(atoms) or atoms[at + 1].place == _BLANK
            tail = atom.end - atom.start < _TINY and ends_block
            if (last.end - last.start < _TINY or tail) and atom.place != _BLANK:
                last.end = atom.end
                continue
        joined.append(_Atom(atom.start, atom.end, atom.place))
    blocks: list[_Atom] = []
    for atom in joined:
        if blocks and blocks[-1].end - blocks[-1].start < _TINY and atom.end - blocks[-1].start <= LIMIT:
            blocks[-1].end = atom.end
        else:
            blocks.append(atom)
    return blocks


def _pack(atoms: list[_Atom]) -> list[tuple[int, int]]:
    """The cheapest way to put neighbouring atoms into pieces; best[i] is the cost of the first i atoms."""
    best = [0.0]
    came_from = [0]
    for last, atom in enumerate(atoms):
        cost, origin = float("inf"), last
        span = 0.0
        for first in range(last, -1, -1):
            length = atom.end - atoms[first].start
            if length > LIMIT and first < last:
                break
            short = max(0.0, 1 - length / _SHORT)
            cut = _CUT[atoms[first].place] if first else 0.0
            total = best[first] + _PIECE + short * short + cut + span
            if total < cost:
                cost, origin = total, first
            span += _SPAN[atoms[first].place]
        best.append(cost)
        came_from.append(origin)
    pieces: list[tuple[int, int]] = []
    at = len(atoms)
    while at:
        pieces.append((atoms[came_from[at]].start, atoms[at - 1].end))
        at = came_from[at]
    return pieces[::-1]
