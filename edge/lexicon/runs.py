"""Text folded for search, and cut into the runs that a lexicon makes terms of.

A term holds only characters of the Unicode categories L*, N*, M*, S* and Co, so that a keyword index which takes
exactly those as token characters (FTS5: `unicode61 remove_diacritics 0 categories 'L* N* M* S* Co'`) keeps each term
whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from edge.lexicon.han import simplified

# (run, "", ()) for a run of a script written without spaces; ("", whole, parts) for any other word. `whole` is the
# term for all of it (empty when that is too long), `parts` the terms of its parts: of `pre-edit` preedit, pre and
# edit; of `don't` dont, don and t; of `v1.5` v1<DOT>5, v1 and 5; of `gpt4` gpt4 and gpt.
Run = tuple[str, str, tuple[str, ...]]

# Stands for the full stop inside a term (`v1.5`), as a full stop is no term character. Private use: typed by nobody.
DOT = "\ue000"
# C# and F# in full: the number sign is no term character, the music sharp (category So) is.
SHARP = "\u266f"
# A run of letters longer than this is no word (base64, a held-down key): it is taken in slices.
LONGEST = 64

_HAN = r"\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Written without spaces, or with particles glued on: a part of a run must find it. Kana, bopomofo, Hangul, Thai, Lao,
# Myanmar, Khmer.
_GLUED = (
    r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    r"\u1100-\u11ff\uac00-\ud7a3\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17d3"
)
# All ASCII that is neither letter nor digit, and what must not be taken for a letter.
_BREAKS = r"\x00-/:-@\[-`{-\x7f"
_FLAGS = r"\U0001f1e6-\U0001f1ff"
_LETTER = rf"[^{_BREAKS}{_HAN}{_GLUED}{_FLAGS}]"
_RUN = re.compile(
    rf"(?P<dense>[{_HAN}{_GLUED}]+)"
    rf"|(?P<word>{_LETTER}+(?:[-_'.]{_LETTER}+)*)(?P<suffix>(?:\+\+|\#)(?![0-9a-z]))?"
    rf"|(?P<flag>[{_FLAGS}]{{1,2}})"
)
_CONNECTOR = re.compile(r"[-_'.]")
HAN_RUN = re.compile(rf"[{_HAN}]+")
GLUED_RUN = re.compile(rf"[{_GLUED}]+")
# The parts of a run: Han, or what is glued.
PARTS = re.compile(rf"(?P<han>[{_HAN}]+)|[{_GLUED}]+")
_MIXED = re.compile(r"[^\W\d_]+|\d+")
_DIGIT = re.compile(r"\d")
_APOSTROPHES = "\u2018\u2019\u02bc\u055a\u05f3\u201b"
_HYPHENS = "\u2010\u2011\u2012\u2013\u2212\u05be\u30a0"


class _Cleaner(dict[int, "str | int | None"]):
    """For str.translate: what becomes of a code point. It fills itself, as Unicode is large and a text's part is
    small.
    """

    def __missing__(self, point: int) -> str | int | None:
        self[point] = result = self._decide(chr(point))
        return result

    @staticmethod
    def _decide(char: str) -> str | int | None:
        if char in _APOSTROPHES:
            return "'"
        if char in _HYPHENS:
            return "-"
        # Joiners, direction marks, soft hyphens, variation selectors, keycaps, Hangul fillers: seen by nobody, so
        # they must not part what looks whole. NUL and the other controls do part.
        if unicodedata.category(char) == "Cf" or _IGNORABLE.match(char):
            return None
        if char < "\x80" or "\U0001f1e6" <= char <= "\U0001f1ff":
            return char
        category = unicodedata.category(char)
        if category[0] in "LNM" or category == "Co":
            # A simplified form that is younger than this Python's Unicode would be no letter here.
            return form if HAN_RUN.match(char) and unicodedata.category(form := simplified(char))[0] in "LN" else char
        # Each emoji and each currency sign is a term by itself. Other symbols and punctuation only part words.
        if category in ("So", "Sc"):
            return f" {char} "
        return " "


_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u20e3\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_CLEANER = _Cleaner()


def fold(text: str) -> str:
    """NFKC and case-folded (Unicode 3.13, NFKC_Casefold), Han characters simplified, without what is invisible.

    For search alone; stored text is never touched.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_CLEANER)


def runs(text: str) -> Iterator[Run]:
    """The runs of a text in order."""
    for dense, word, suffix, flag in _RUN.findall(fold(text)):
        if dense:
            yield dense, "", ()
        elif flag:
            yield "", flag, ()
        elif not suffix and len(word) <= LONGEST and (word.isalpha() or word.isdigit()):
            yield "", word, ()
        else:
            yield _word(word, suffix)


def _word(raw: str, suffix: str) -> Run:
    pieces = _CONNECTOR.split(raw)
    parts: list[str] = []
    if len(pieces) > 1:
        for piece in pieces:
            parts.extend(_slices(piece))
    for piece in pieces:
        if len(piece) <= LONGEST and _DIGIT.search(piece) and not piece.isdigit():
            # gpt4 is to be found by gpt, and iphone15 by 15; the crumbs of a hash (a3f9c2) are not worth a term.
            parts.extend(part for part in _MIXED.findall(piece) if len(part) > 1 and part != piece)
    whole = raw.replace(".", DOT).translate(_JOINED)
    if len(whole) > LONGEST:
        return "", "", tuple(parts) if len(pieces) > 1 else tuple(_slices(raw))
    if suffix and len(pieces[-1]) <= 3:
        return "", whole + suffix.replace("#", SHARP), (whole, *parts)
    return "", whole, tuple(parts)


_JOINED = str.maketrans("", "", "-_'")


def _slices(word: str) -> Iterator[str]:
    return (word[at : at + LONGEST] for at in range(0, len(word), LONGEST))


def singles(run: str) -> list[str]:
    """The characters of a run that can stand alone (a vowel sign of Thai cannot)."""
    if run.isalnum():
        return list(run)
    return [char for char in run if char.isalnum() or unicodedata.category(char)[0] != "M"]


def bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]
