"""What touches a secret without being part of it."""

from __future__ import annotations

import re

# The last characters of an escape: \n in JSON, %3D in a URL, \x1b[0m before a coloured word.
_ESCAPE = re.compile(r"(?<!\\)\\[nrt]$|%[0-9A-Fa-f]{2}$|\x1b\[[0-9;]*m$")


def word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def opens(text: str, start: int) -> bool:
    """Whether a word can begin at `start`: no ASCII letter or digit before it, except one that ends an escape."""
    if not start or not (text[start - 1].isascii() and text[start - 1].isalnum()):
        return True
    return bool(_ESCAPE.search(text, max(0, start - 8), start))
