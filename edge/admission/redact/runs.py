"""Runs of digits as people group them, and whether a part of one stands alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edge.admission.redact.edges import opens, word

_GAP = " \\t\u00a0\u2000-\u200a\u202f\u205f\u3000.\\-\u2010-\u2015\u2212\ufe63\uff0d·・\\r\\n"
# The look-behind comes after the first digit, because `re` is only fast with a pattern that begins with a set.
_RUN = re.compile(rf"[0-9](?<![0-9][0-9])(?:[{_GAP}]{{0,3}}[0-9]){{12,}}(?:[{_GAP}]{{0,3}}[XxΧХ×])?")
# Where a run may be: a repeated set costs a tenth of the repeated group above.
_WINDOW = re.compile(rf"[0-9](?<![0-9][0-9])[0-9{_GAP}]{{12,}}")
_GROUP = re.compile("[0-9]+")

# What may touch a number without making it part of a longer id.
_TOUCHING_LABEL = re.compile(
    r"(?<![A-Za-z0-9])(?:id|no|sfz|sfzh|card|cardno|idcard|visa|cc|number|nr)\.?$", re.IGNORECASE
)
# How far before a number a word still speaks of it, in characters.
NEAR = 24


class Run:
    """Groups of digits with little between them. `digits`: all of them; `offsets[n]`: how many come before group n."""

    __slots__ = ("check", "digits", "groups", "offsets", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.groups = [group.span() for group in _GROUP.finditer(text, start, end)]
        self.offsets = [0]
        for first, last in self.groups:
            self.offsets.append(self.offsets[-1] + last - first)
        self.digits = "".join([text[first:last] for first, last in self.groups])
        # Where an X ends that may be the last group's check character, else 0.
        self.check = end if text[end - 1] in "XxΧХ×" else 0

    def length(self, at: int) -> int:
        return self.offsets[at + 1] - self.offsets[at]

    def gap(self, at: int) -> str:
        """What is between groups at - 1 and at."""
        return self.text[self.groups[at - 1][1] : self.groups[at][0]]

    def before(self, at: int) -> tuple[str, int, int]:
        """The text, start and end for a search in what leads up to a group."""
        start = self.groups[at][0]
        return self.text, max(0, start - NEAR), start

    def alone(self, first: int, last: int, end: int) -> bool:
        """Whether groups[first..last] are tied to no neighbour: only white space parts them from further digits."""
        if first and not _spaced(self.gap(first)):
            return False
        if last + 1 < len(self.groups) and not _spaced(self.gap(last + 1)):
            return False
        start = self.groups[first][0]
        return not _tied_before(self.text[max(0, start - 12) : start]) and not _tied_after(self.text[end : end + 2])


def runs(text: str) -> Iterator[Run]:
    for window in _WINDOW.finditer(text):
        # Beyond it only a check character may follow, with its gap.
        for match in _RUN.finditer(text, window.start(), window.end() + 4):
            yield Run(text, *match.span())


def _spaced(gap: str) -> bool:
    return any(character.isspace() for character in gap)


def _tied_before(before: str) -> bool:
    if not before:
        return False
    if word(before[-1]):
        return before[-1] == "_" or not (_TOUCHING_LABEL.search(before) or opens(before, len(before)))
    if before[-1] in "+%$¥￥":
        return True
    return before[-1] in "-_/.@" and len(before) > 1 and word(before[-2]) and not _TOUCHING_LABEL.search(before)


def _tied_after(after: str) -> bool:
    if not after:
        return False
    if word(after[0]):
        return True
    return after[0] in "-_/@%" and len(after) > 1 and word(after[1])
