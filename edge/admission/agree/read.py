"""A sentence in its plain form: the tokens that carry its meaning, in order."""

from __future__ import annotations

import functools
import re

from edge.admission.agree import chinese, english
from edge.admission.agree.amounts import amounts
from edge.admission.agree.fold import codes, fold, lower
from edge.admission.agree.marks import CLOSE, CODE, OPEN, PAUSE, mark, outside
from edge.admission.agree.times import times

# Characters of the longest text that is read at all; a piece of a turn has 300.
LONGEST = 400

_ORDER = re.compile(
    r"^(?:请|麻烦|你|帮我|给我|一定要|务必|要)*(?:记住|记一下|记下来|记下|记着|别忘了|不要忘了|不要忘记"
    r"|别忘记)(?:了|一下)?[:,，。 ]*"
    r"|^(?:please |kindly )?(?:remember|note|keep in mind|do not forget|never forget|make a note)(?: that|:|,)? ",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"{OPEN}[^{CLOSE}]*{CLOSE}|[^\W\d_\u3400-\u9fff]+|'s\b|\d+(?:\.\d+)?|\S")
# Marks that only divide. A question stays one, and "no, thanks" is not "no thanks".
_DIVIDING = frozenset(",。.!;:…·()[]-—\"'“”")
_KEPT = re.compile(rf"{OPEN}{CODE} ([0-9]+){CLOSE}")
_LATIN = re.compile("[A-Za-z]")
_PIECES = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")

_COUNTED = re.compile(
    r"[今明昨后前]天|今[晚早晨]|[明昨]晚|[今去明前后]年|[上下这本][个]?(?:周|星期|礼拜|月|季度|学期|周末)|刚[才刚]"
    r"|最近|前几天|过几天|[天周月年]后|[天周月年]前"
    r"|\b(?:today|tonight|tomorrow|yesterday|(?:this|next|last) (?:week|month|year|weekend|night|morning|evening"
    r"|spring|summer|"
    r"autumn|fall|winter|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|just now|recently|lately|ago|in an? "
    r"(?:hour|day|week|month|year)s?|in \w+ (?:minutes|hours|days|weeks|months|years))\b",
    re.IGNORECASE,
)


def counts_from_today(text: str) -> bool:
    """Whether it names a time that is another one on another day: tomorrow, 下周五, two days ago."""
    return _COUNTED.search(text) is not None


@functools.lru_cache(maxsize=1024)
def read(text: str) -> tuple[str, ...]:
    """The tokens: Han characters one by one, words, numbers and times as marks. Linear in the length of the text."""
    kept: list[str] = []

    def keep(verbatim: str) -> str:
        """A mark in its place, so that no rule reads its words."""
        kept.append(verbatim)
        return mark(CODE, str(len(kept) - 1))

    text = _ORDER.sub("", fold(text, keep))
    # The rules of a language are for its letters, and cost a fifth of the time.
    han, latin = not text.isascii(), _LATIN.search(text) is not None
    text = times(text)
    text = chinese.early(text) if han else text
    parts = outside(english.early(text) if latin else text)
    parts[::2] = [codes(part, keep) for part in parts[::2]]
    text = amounts("".join(parts))
    text = chinese.late(text) if han else text
    text = english.late(text) if latin else text
    tokens: list[str] = []
    for found in _TOKEN.findall(text):
        if place := _KEPT.fullmatch(found):
            tokens.extend(_PIECES.findall(kept[int(place[1])]))
        elif found in _DIVIDING:
            if tokens and tokens[-1] != PAUSE and found in ",.;。!":
                tokens.append(PAUSE)
        elif found[0] == OPEN:
            tokens.append(found)
        elif word := english.word(lower(found)):
            tokens.append(word)
    if tokens and tokens[-1] == PAUSE:
        tokens.pop()
    return tuple(tokens)
