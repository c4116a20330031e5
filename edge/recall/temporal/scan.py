"""The expressions in a folded text, each by itself."""

from __future__ import annotations

import re

from edge.recall.temporal import chinese, chinese_spans, english, english_spans, numeric
from edge.recall.temporal.calendar import Now
from edge.recall.temporal.phrase import Phrase, Rule

# Chinese needs no border before a word, English does. The first rule that matches wins, so longer readings stand
# before shorter ones.
_ANYWHERE = (*numeric.RULES, *chinese_spans.RULES, *chinese.RULES)
_AT_WORDS = (*english_spans.RULES, *english.RULES)

_Tried = tuple[re.Pattern[str], Rule]


def _by_first(rules: tuple[Rule, ...]) -> dict[str, tuple[_Tried, ...]]:
    """The rules to try at a character. One regular expression of all takes twenty times as long, as Python's engine
    tries its branches one by one at every place.
    """
    compiled = [(re.compile(rule.pattern), rule) for rule in rules]
    firsts = sorted({char for rule in rules for char in rule.begins})
    return {char: tuple(tried for tried in compiled if char in tried[1].begins) for char in firsts}


_INSIDE = _by_first(_ANYWHERE)
_AT_BORDER = _by_first((*_ANYWHERE, *_AT_WORDS))
_CANDIDATE = re.compile(
    rf"(?P<border>(?<![a-z0-9_@])[{re.escape(''.join(_AT_BORDER))}])|[{re.escape(''.join(_INSIDE))}]"
)


def scan(text: str, now: Now) -> list[Phrase]:
    """In order, none over another. One that is no date (2月30日) is kept without a sense, so that no part of it is
    read alone.
    """
    found: list[Phrase] = []
    end = 0
    for candidate in _CANDIDATE.finditer(text):
        start = candidate.start()
        if start < end:
            continue
        before = text[start - 1] if start else ""
        for pattern, rule in (_AT_BORDER if candidate["border"] else _INSIDE)[text[start]]:
            match = None if before and before in rule.not_after else pattern.match(text, start)
            if match:
                end = match.end()
                topics = (match.span("topic") if "topic" in pattern.groupindex else match.span(),) if rule.topic else ()
                found.append(Phrase(start, end, rule.sense(match, now), topics))
                break
    return found
