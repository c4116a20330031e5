"""What a program wrote into the conversation in plain text: between tags of its own, or in a set phrase."""

from __future__ import annotations

import re
from functools import lru_cache

from edge.admission.noise.names import NOTES, OPENINGS, STRUCTURAL, TAGS

_OPENING = re.compile(r"<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,300})?>")
_PREFIXES = tuple(OPENINGS)
# Tags whose inside the user may have typed.
_TYPED = "command-args"


def wrapped(text: str) -> tuple[str, str] | None:
    """The rule and the reason, when the text, stripped, is nothing but such tags, or begins as such a note does.

    A tag that is never closed keeps the text: what follows it may be the user's. Linear in len(text).
    """
    if text.startswith("<"):
        return _tags(text)
    if text.startswith(_PREFIXES):
        what = next(OPENINGS[prefix] for prefix in _PREFIXES if text.startswith(prefix))
        return STRUCTURAL, f"it is {what}, written by a program"
    if text in NOTES:
        return STRUCTURAL, "it is a placeholder, written by a program"
    return None


def _tags(text: str) -> tuple[str, str] | None:
    first = ""
    at = 0
    while at < len(text):
        opening = _OPENING.match(text, at)
        if opening is None or opening[1] not in TAGS:
            return None
        tag = opening[1]
        closing = _closing(tag).search(text, opening.end())
        if closing is None or (tag == _TYPED and _is_sentence(text[opening.end() : closing.start()])):
            return None
        first = first or tag
        at = closing.end()
    return TAGS[first], f"it is nothing but what stands between <{first}> and </{first}>"


@lru_cache(maxsize=len(TAGS))
def _closing(tag: str) -> re.Pattern[str]:
    # Codex repeats the attributes: <permissions instructions>…</permissions instructions>.
    return re.compile(rf"</{re.escape(tag)}(?:\s[^<>]{{0,300}})?>\s*")


def _is_sentence(arguments: str) -> bool:
    """Whether what follows a command is more than its parameters."""
    words = arguments.split()
    return bool(words) and not words[0].startswith("-") and (len(words) > 1 or not arguments.isascii())
