"""A text as the detectors read it: full-width letters narrow, invisible characters gone, earlier placeholders masked.

People write ４１１１ or copy a zero-width space into the middle of a number. The detectors see the folded text, and
each character of it remembers where it stood, so that the text around a secret stays as it was, to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Stands where an earlier placeholder was; no detector takes it for part of a secret (U+FFFC, object replacement).
BARRIER = "\ufffc"
# Format characters that are copied along unseen. Variation selectors stay: every second emoji carries one.
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
# Digits of the scripts that a keyboard at home may type, and the mathematical ones of fancy text.
_ZEROS = (0x660, 0x6F0, 0x966, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6)
# Full-width punctuation of sentences ends a secret, so it must not become a character that may belong to one.
_KEPT = "！（），：；？［］｛｝｜～"
# Inside a word of full-width letters it is a character of a password.
_INNER_MARK = re.compile("(?<=[０-９Ａ-Ｚａ-ｚ])！(?=[０-９Ａ-Ｚａ-ｚ＠＃％＆＊＋＝＿－])")
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in _KEPT}
_NARROW |= {zero + digit: 0x30 + digit for zero in _ZEROS for digit in range(10)}
# Half of a surrogate pair cannot be encoded, which the keyword search has to do.
_NARROW |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)

_FOLDS = re.compile("[０-９Ａ-Ｚａ-ｚ\ud800-\udfff" + "".join(f"{chr(z)}-{chr(z + 9)}" for z in _ZEROS) + _UNSEEN + "]")
_DROPPED = re.compile(f"[{_UNSEEN}]")


class View:
    """`text` is what detectors read; `low` is the same in lower case, character for character."""

    __slots__ = ("_origin", "low", "text")

    def __init__(self, text: str, origin: Sequence[int] | None) -> None:
        self.text = text
        self.low = lowered(text)
        self._origin = origin

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where text[start:end] of the view stands in the text that it was made of; start < end."""
        if self._origin is None:
            return start, end
        return self._origin[start], self._origin[end - 1] + 1


def view(text: str, placeholders: re.Pattern[str]) -> View:
    if "[" in text:
        text = placeholders.sub(lambda match: BARRIER * len(match[0]), text)
    if text.isascii() or not _FOLDS.search(text):
        return View(text, None)
    narrow = _INNER_MARK.sub("!", text).translate(_NARROW)
    if not _DROPPED.search(narrow):
        return View(narrow, None)
    gone = {match.start() for match in _DROPPED.finditer(narrow)}
    origin = [at for at in range(len(narrow)) if at not in gone]
    return View(_DROPPED.sub("", narrow), origin)


def lowered(text: str) -> str:
    """Lower case of the same length: İ (U+0130) is the one character that would become two."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("İ", "i").lower()
