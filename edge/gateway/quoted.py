"""Memories as a model may read them: quotations between markers, of which none can end the block. Pure.

The box makes the block of a search itself, within a budget of tokens. This is for what is read and listed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from edge.gateway.box import Item
from edge.quoting import BRACKETS, WORDINGS

# What stands before every line of a memory, so that none passes for the head of another.
_MARGIN = "  | "


def block(items: Iterable[Item], language: str = "zh") -> str:
    """Each with its id, day, source, kind and state, then its text line by line; empty for none."""
    return framed((part for item in items for part in (_head(item), quoted(item.text.translate(BRACKETS)))), language)


def framed(parts: Iterable[str], language: str = "zh") -> str:
    """Between the markers; empty for none."""
    said = [*parts]
    wording = WORDINGS.get(language, WORDINGS["zh"])
    return "\n".join([wording.start, wording.note, *said, wording.end]) if said else ""


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


_WORDS = tuple(_bare(marker) for wording in WORDINGS.values() for marker in (wording.start, wording.end))


def inert(text: str) -> str:
    """The text as it is, but for one that says what a marker says, in whatever width, case or spacing."""
    bare = _bare(text)
    return text.translate(BRACKETS) if any(words in bare for words in _WORDS) else text


def plain(text: str) -> str:
    """One line that is safe to stand anywhere: no controls, no square brackets."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).translate(BRACKETS).split())


def _head(item: Item) -> str:
    part = f", piece {item.piece + 1} of {item.pieces}" if item.pieces > 1 else ""
    part += f", previous {item.previous}" if item.previous else ""
    part += f", next {item.next}" if item.next else ""
    tags = f", tags {', '.join(map(plain, item.tags))}" if item.tags else ""
    return f"- {item.uri} ({item.day}, {plain(item.source)}, {item.state}{part}{tags})"


def quoted(text: str) -> str:
    """Line by line behind a margin, without controls."""
    lines = text.splitlines() or [""]
    return "\n".join(_MARGIN + "".join(c if c.isprintable() or c == "\t" else " " for c in line) for line in lines)
