"""The block of memories for a model's context (contract, "Context block"). Pure.

What a memory says goes into somebody's prompt. It stays what it is, a quotation: each memory is one line, without
controls, that begins with its date and source, and none of them may end the block early or begin another (`markers`).
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from edge.quoting import BRACKETS, WORDINGS, Wording
from edge.recall.level import abstract
from edge.recall.line import flatten, shorten
from edge.recall.markers import defuse
from edge.types import Hit

MAX_LINES = 8
# So that one memory leaves room for the others, and three need 400 tokens at most, whatever they say: an emoji outside
# the model's vocabulary costs a token a word of its name.
LINE_TOKENS = 110
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SOURCE_LIMIT = 40
_LEAST = 8
# A source ends where its parenthesis does.
_PARENTHESES = str.maketrans(dict.fromkeys("()（）﹙﹚❨❩❪❫⸨⸩⟮⟯⦅⦆", " "))
# What may differ between two lines that say the same; not what belongs to a number, and not what makes a question.
_INCIDENTAL = re.compile(r"(?<!\d)[\s，,。.、！!；;：:~…“”‘’\"'「」—-]+(?!\d)|[\s，,。.！!；;~…”’\"'」]+$")


def context_block(
    hits: Iterable[Hit],
    *,
    language: str,
    budget: int,
    tokens: Callable[[str], int],
    terms: Sequence[str] = (),
    floor: float = 1.0,
    ids: bool = False,
) -> str:
    """The block, best hit first, at most 8 lines and `budget` tokens in all; empty when no hit fits.

    Hits whose relevance is below `floor` are left out, and so is what a line above says already. `terms` (as
    ports.Lexicon gives them for the query) choose the sentence of each memory. A line that is too long for what is
    left is shortened; from the first that does not fit at all, the rest is left out. Dates are UTC. With `ids`
    a line begins with its memory's id, which nothing that a memory says can stand in front of.
    """
    wording = WORDINGS.get(language, WORDINGS["zh"])
    lines: list[str] = []
    said: set[str] = set()
    # Counted line by line, as a tokenizer takes longer than all else here. What it adds to any text is counted once.
    ends = tokens("")
    left = budget - tokens(_block(wording, [""]))
    for hit in hits:
        # The other way round, so that what is no number does not pass.
        if not hit.relevance >= floor:
            continue
        text = abstract(hit.memory.text, terms)
        key = _key(text)
        if not key or key in said:
            continue
        said.add(key)
        line, length = _line(hit, text, ids), len(text)
        while (cost := tokens("\n" + line) - ends) > min(left, LINE_TOKENS) and length > 1:
            length //= 2
            line = _line(hit, abstract(hit.memory.text, terms, length), ids, length)
        if cost > left or (length < min(len(text), _LEAST) and left < LINE_TOKENS):
            break
        lines.append(line)
        left -= cost
        if len(lines) == MAX_LINES:
            break
    # Should the tokenizer make more of the whole than of its parts.
    while lines and tokens(_block(wording, lines)) > budget:
        lines.pop()
    return _block(wording, lines)


def _block(wording: Wording, lines: Sequence[str]) -> str:
    return "\n".join((wording.start, wording.note, *lines, wording.end)) if lines else ""


def _line(hit: Hit, text: str, ids: bool, room: int = _SOURCE_LIMIT) -> str:
    """`- (day, source) text`, with `ids` the id first, defused as a whole: the source may begin what the text ends."""
    source = flatten(hit.memory.source.translate(BRACKETS).translate(_PARENTHESES))
    name = f"{hit.memory.id} " if ids else ""
    return defuse(f"- {name}({_day(hit.memory.occurred_at)}, {shorten(source, min(room, _SOURCE_LIMIT))}) {text}")


def _day(occurred_at: int) -> str:
    return (_EPOCH + dt.timedelta(microseconds=occurred_at)).strftime("%Y-%m-%d")


def _key(text: str) -> str:
    """Equal for lines that differ in width, case, spaces and punctuation alone; empty when there is nothing to read."""
    return _INCIDENTAL.sub("", unicodedata.normalize("NFKC", text).casefold())
