"""Whether a text has anything that a reader would see."""

from __future__ import annotations

import re

# Not seen: white space and controls, format characters (joiners, direction marks, tags), variation selectors, lone
# surrogates, and letters that are blank by definition (Hangul fillers, the empty Braille cell). Unicode 15,
# Default_Ignorable_Code_Point.
INVISIBLE = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_VISIBLE = re.compile(f"[^{INVISIBLE}]")


def has_visible(text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether any character of text[start:end] can be seen."""
    return _VISIBLE.search(text, start, len(text) if end is None else end) is not None
