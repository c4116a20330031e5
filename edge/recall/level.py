"""How much of a memory is shown: a sentence, a paragraph, or all of it. Only an ellipsis is ever added."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edge.types import Level

ABSTRACT_LIMIT = 80
OVERVIEW_LIMIT = 120

_SENTENCE = re.compile(r"[^。！？!?\n\r]+?(?:[。！？]+[”’」』）)\"']*|[!?]+(?=\s|$)|\.(?=\s|$)|(?=[\n\r])|$)")
# Controls, line breaks and what is invisible; a sentence is one line.
_FLAT = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]+"
)


def flatten(text: str) -> str:
    """One line: runs of white space, controls and invisible characters become one space where there was space, else
    nothing.
    """
    return _FLAT.sub(lambda match: " " if any(c.isspace() for c in match[0]) else "", text).strip()


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis where some are missing."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def abstract(text: str, terms: Sequence[str] = (), limit: int = ABSTRACT_LIMIT) -> str:
    """One sentence on one line: the first of those with the most of the terms (without terms, the first)."""
    lines = [line for line in map(flatten, _SENTENCE.findall(text)) if any(map(str.isalnum, line))]
    if not lines:
        return shorten(flatten(text), limit)
    wanted = [term.casefold() for term in terms]
    folded = [line.casefold() for line in lines]
    counts = [sum(term in line for term in wanted) for line in folded]
    return shorten(lines[counts.index(max(counts))], limit)


def overview(text: str, limit: int = OVERVIEW_LIMIT) -> str:
    """A paragraph on one line, cut after the last sentence that fits, or within the first."""
    flat = flatten(text)
    if len(flat) <= limit:
        return flat
    end = 0
    for match in _SENTENCE.finditer(flat):
        if match.end() > limit:
            break
        end = match.end()
    return flat[:end].rstrip() if end >= limit // 2 else shorten(flat, limit)


def detail(text: str) -> str:
    """The original words, untouched."""
    return text


def at_level(text: str, level: Level, terms: Sequence[str] = ()) -> str:
    if level == Level.ABSTRACT:
        return abstract(text, terms)
    return overview(text) if level == Level.OVERVIEW else detail(text)
