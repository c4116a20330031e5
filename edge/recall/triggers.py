"""Words of a query that ask for a deep recall, and the query without them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

# What people say before a trigger and do not search for: "请你帮我回忆一下", "can you look it up".
_COURTESIES = (
    "请",
    "麻烦",
    "能不能",
    "可以",
    "帮忙",
    "帮",
    "给",
    "再",
    "你",
    "您",
    "我",
    "please",
    "can",
    "could",
    "you",
    "hey",
)
_PARTICLES = "吧呀啊呢哦嘛啦"
_MARKS = " \t\r\n\u3000,.!?;:~，。！？；：、～…—-"


@lru_cache(maxsize=16)
def _pattern(triggers: tuple[str, ...]) -> re.Pattern[str] | None:
    words = [r"\s+".join(map(re.escape, trigger.split())) for trigger in sorted(triggers, key=len, reverse=True)]
    # A Latin trigger ends where its word ends: "look it up" is not in "look it upside". Chinese has no such borders.
    bounded = [
        (r"(?<![A-Za-z0-9_])" if word[0].isascii() and word[0].isalnum() else "")
        + word
        + (r"(?![A-Za-z0-9_])" if word[-1].isascii() and word[-1].isalnum() else "")
        for word in words
        if word
    ]
    return re.compile("|".join(bounded), re.IGNORECASE) if bounded else None


def find_trigger(query: str, triggers: Sequence[str]) -> tuple[str, str]:
    """(the query without triggers, the first trigger in it as configured); (query, "") when there is none.

    A trigger goes with the marks and courtesies around it. The query is left whole when nothing else is in it.
    Letter case does not matter; Latin triggers match whole words.
    """
    configured = tuple(triggers)
    pattern = _pattern(configured)
    found = pattern.search(query) if pattern else None
    if pattern is None or found is None:
        return query, ""
    said = " ".join(found[0].split()).casefold()
    trigger = next((t for t in configured if " ".join(t.split()).casefold() == said), found[0])
    rest = _without(query, pattern)
    return (rest if _says_something(rest) else query), trigger


def _without(query: str, pattern: re.Pattern[str]) -> str:
    kept: list[str] = []
    at = 0
    for match in pattern.finditer(query):
        kept.append(query[at : _before_courtesies(query, at, match.start())].strip(_MARKS if at else "").rstrip(_MARKS))
        at = match.end()
        if at < len(query) and query[at] in _PARTICLES:
            at += 1
    kept.append(query[at:].lstrip(_MARKS))
    return " ".join(part for part in kept if part).strip()


def _before_courtesies(query: str, start: int, end: int) -> int:
    """Where the courtesies begin that end at `end`."""
    while True:
        at = end
        while at > start and query[at - 1].isspace():
            at -= 1
        for word in _COURTESIES:
            first = at - len(word)
            if first >= start and query[first:at].casefold() == word:
                # "you" is no courtesy in "thank-you": a Latin one is a word of its own.
                if word.isascii() and first > start and query[first - 1].isascii() and query[first - 1].isalnum():
                    continue
                end = first
                break
        else:
            return end


def _says_something(text: str) -> bool:
    return any(unicodedata.category(char)[0] in "LNS" for char in text)
