"""Whether a string was made by a machine rather than by a writer."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

_WORDLIKE = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)?[0-9]{0,2}|[0-9]+")
_SPLIT = re.compile(r"[_.\-/:]+|(?<=[a-z])(?=[A-Z])")


def entropy(text: str) -> float:
    """Shannon's, in bits a character; 0 for an empty text."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def varied(text: str) -> bool:
    """Not the xxxxxxxx or ******** of a manual: six different characters at least."""
    return len(set(text)) >= 6


def looks_random(text: str, least: int = 12) -> bool:
    """Long enough, mixed, and no name of words such as user_token_v2 or config.api.key."""
    if len(text) < least or not varied(text) or entropy(text) < 2.5:
        return False
    digits = sum(c.isdigit() for c in text)
    letters = sum(c.isalpha() for c in text)
    if not digits:
        # Letters alone: upper and lower case in turn, as base64 has them and CamelCase has not.
        flips = sum(a.islower() and b.isupper() for a, b in itertools.pairwise(text))
        return len(text) >= 16 and flips >= len(text) / 6
    return bool(letters) and not all(_WORDLIKE.fullmatch(part) for part in _SPLIT.split(text) if part)
