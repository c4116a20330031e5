"""The block of memories for a model's context (contract, "Context block"). Pure.

What a memory says goes into somebody's prompt, so no memory may end the block early or begin another: brackets of every
kind become parentheses, and the markers' words are left out where they stand together, in any width, script variant or
spacing. Each memory is one line, without controls.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from edge.recall.level import abstract, flatten, shorten
from edge.types import Hit

MAX_LINES = 8
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SOURCE_LIMIT = 40
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Wording:
    start: str
    note: str
    end: str


WORDINGS = {
    "zh": Wording("[相关记忆开始]", "以下为历史记忆，可能过时，请以当前对话为准。", "[相关记忆结束]"),
    "en": Wording(
        "[Related memories begin]",
        "These are past memories and may be out of date; the current conversation takes precedence.",
        "[Related memories end]",
    ),
}

_OPENING = "[［【〖〔〘〚⟦❲⁅﹇︹︻︗⦋⦍⦏"
_CLOSING = "]］】〗〕〙〛⟧❳⁆﹈︺︼︘⦌⦎⦐"
_BRACKETS = str.maketrans(_OPENING + _CLOSING, "(" * len(_OPENING) + ")" * len(_CLOSING))
_GAP = r"[\W_]*"
_MARKERS = re.compile(
    _GAP.join(("相", "[关關関]", "[记記]", "[忆憶]", "(?:[开開]" + _GAP + "始|[结結]" + _GAP + "束)"))
    + "|"
    + _GAP.join((*"relatedmemor", f"(?:y|{_GAP.join('ies')})", f"(?:{_GAP.join('begin')}|{_GAP.join('end')})")),
    re.IGNORECASE,
)
# In the place of a marker's words. A letter, so that what stands before and after cannot join to another marker.
_OMITTED = "略"


def context_block(
    hits: Iterable[Hit],
    *,
    language: str,
    budget: int,
    tokens: Callable[[str], int],
    terms: Sequence[str] = (),
) -> str:
    """The block, best hit first, at most 8 lines and `budget` tokens in all; empty when no hit fits.

    A line that is too long for what is left is shortened; the next ones are then left out. `terms` choose the
    sentence of each memory. Dates are UTC.
    """
    wording = WORDINGS.get(language, WORDINGS["zh"])
    lines: list[str] = []
    seen: set[str] = set()
    for hit in hits:
        said = defuse(abstract(hit.memory.text, terms))
        if not said or said in seen:
            continue
        seen.add(said)
        head = f"- ({_day(hit.memory.occurred_at)}, {shorten(defuse(flatten(hit.memory.source)), _SOURCE_LIMIT)}) "
        length = len(said)
        while tokens(_block(wording, [*lines, head + shorten(said, length)])) > budget:
            length //= 2
            if length < _LEAST:
                return _block(wording, lines) if lines else ""
        lines.append(head + shorten(said, length))
        if length < len(said) or len(lines) == MAX_LINES:
            break
    return _block(wording, lines) if lines else ""


def _block(wording: Wording, lines: Sequence[str]) -> str:
    return "\n".join((wording.start, wording.note, *lines, wording.end))


def _day(occurred_at: int) -> str:
    return (_EPOCH + dt.timedelta(microseconds=occurred_at)).strftime("%Y-%m-%d")


def defuse(line: str) -> str:
    """The line, unable to pass for a marker."""
    line = line.translate(_BRACKETS)
    wide = unicodedata.normalize("NFKC", line)
    # Some bracket that only its compatibility form shows, or the words themselves: then the plain form is shown
    # instead.
    if "[" in wide or "]" in wide or _MARKERS.search(wide):
        line = _MARKERS.sub(_OMITTED, wide.translate(_BRACKETS))
    return line
