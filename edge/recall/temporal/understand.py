"""What a question says about time, and what is left of it."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from dataclasses import dataclass

from edge.recall.temporal.calendar import LAST, Now
from edge.recall.temporal.compose import BEGINNING, END, compose
from edge.recall.temporal.numerals import fold
from edge.recall.temporal.phrase import Phrase
from edge.recall.temporal.scan import scan
from edge.types import Micros


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time that a question speaks of: since <= t < until, in UTC microseconds, between 1970 and 2100.

    `explicit` says that the question names its bounds, so it may filter; others (最近, "the other day", a time to
    come, a holiday without a year) may only raise what lies in them. It was said with characters [start, end).
    """

    since: Micros
    until: Micros
    explicit: bool
    start: int
    end: int

    def holds(self, moment: Micros) -> bool:
        return self.since <= moment < self.until


@dataclass(frozen=True, slots=True)
class Times:
    """What a question says about time.

    `query` is the question without its expressions, and whole where nothing else is in it; names of holidays stay,
    as they are a matter too. `latest`: the most recent one is wanted. `asks_when`: the answer is a time. `bare`: it
    speaks of nothing but a time (上周聊了什么), so whatever was said then answers it.
    """

    windows: tuple[Window, ...]
    query: str
    latest: bool
    asks_when: bool
    bare: bool = False


# Each is a search of its own; nobody names more.
_WINDOWS = 8

# What a question about a time is made of, besides the time.
_SAYS_NOTHING = re.compile(
    r"我|你|咱|们|大家|都|还|有|在|是|发生|说|聊|讲|谈|提|讨论|做|干|忙|记|定|了|过|的|些|什么|啥|哪|事|情|内容|话题|一下|天"
    r"|吗|呢|吧|啊|到|和|与|跟"
    r"|\b(?:what(?:'s|s)?|did|do|does|was|were|is|are|have|had|has|been|i|we|you|us|me|our|my|happen(?:ed|s|ing)?|going"
    r"|say|said|saying|tell|told|talk(?:ed|ing)?|discuss(?:ed)?|chat(?:ted)?|mention(?:ed)?|doing|done|about|anything"
    r"|everything|something|things?|on|in|at|the|a|to|from|and|up|with|all|else)\b"
)

_ASKS_WHEN = re.compile(
    r"什么时[候间]|啥时候?|何时|几时|哪[一个]{0,2}(?:天|年|月|周|日|星期|礼拜|时候|季度)|几月|几号|几点|星期几|周几"
    r"|礼拜几|多久(?:之|以)?前|日期|时间是|什么日子|何年|何月"
    r"|(?:^|[.?!,;:] *|\b(?:know|me|sure|of|remember|recall|since|and|or) )when(?:'s)?\b"
    r"(?! (?:i|we|he|she|they|you|it)\b[^?]*,)"
    r"|\bwhen (?:did|do|does|was|were|is|are|has|have|had|will|would|should)\b"
    r"|\b(?:what|which|whose) (?:exact )?(?:date|day|time|year|month|week|season|weekday)\b|\bwhat's the date\b"
    r"|\bhow (?:long|many \w+) (?:ago|since|back)\b|\bhow recently\b|\bdate of\b"
)


def understand(query: str, now: Micros, zone: dt.tzinfo) -> Times:
    """The times in a question in Chinese or English, for one who asks at `now` in `zone`. It raises for no text.

    Days are those of the zone; weeks begin on Monday (ISO 8601). What may be of several years is the latest that has
    begun. A date that does not exist, and one outside 1970 to 2100, gives no window and stays in the query.
    """
    text = fold(query)
    asks_when = _ASKS_WHEN.search(text) is not None
    here = Now.of(now, zone)
    if here is None:
        return Times((), query, False, asks_when)
    phrases = [(phrase, window) for phrase in _phrases(text, here) if (window := _window(phrase, here))]
    if not phrases:
        return Times((), query, False, asks_when)
    latest = any(phrase.sense.latest for phrase, _ in phrases if phrase.sense)
    rest = _without(query, text, [phrase for phrase, _ in phrases])
    if not _says_something(rest) or _speaks_of_time(fold(rest), here):
        rest = query
    windows: dict[tuple[Micros, Micros], Window] = {}
    for _, window in phrases:
        windows.setdefault((window.since, window.until), window)
    bare = not latest and not asks_when and _nothing_else(text, phrases)
    return Times(tuple(windows.values())[:_WINDOWS], rest, latest, asks_when, bare)


def _nothing_else(text: str, phrases: list[tuple[Phrase, Window]]) -> bool:
    """Whether a question speaks of nothing but times. The name of a holiday alone is a matter."""
    left, at = "", 0
    for phrase, window in phrases:
        if phrase.topics and not window.explicit:
            return False
        left += text[at : phrase.start] + " "
        at = max(at, phrase.end)
    return not _says_something(_SAYS_NOTHING.sub("", left + text[at:]))


def _phrases(text: str, now: Now) -> list[Phrase]:
    parts = scan(text, now)
    return compose(parts, text, now) if parts else []


def _window(phrase: Phrase, now: Now) -> Window | None:
    if phrase.sense is None:
        return None
    first, last = phrase.sense.bounds
    since = 0 if first == BEGINNING else _utc(first, now)
    until = LAST if last == END else _utc(last, now)
    if since is None or until is None or not 0 <= since < until <= LAST:
        return None
    # Nothing can have been said yet in a time to come, and a window that holds all there is chooses nothing.
    explicit = phrase.sense.explicit and since <= now.micros and not (since == 0 and until > now.micros)
    return Window(since, until, explicit, phrase.start, phrase.end)


def _utc(local: dt.datetime, now: Now) -> Micros | None:
    return now.utc(local) if 1969 <= local.year <= 2101 else None


def _speaks_of_time(text: str, now: Now) -> bool:
    """Other than by the name of a holiday."""
    windows = ((_window(phrase, now), phrase) for phrase in _phrases(text, now))
    return any(window and (window.explicit or not phrase.topics) for window, phrase in windows)


_MARKS = " ,.!?;:，、。！？；：~…"
# An adverb ("last week") takes no "in" with it: "participate in last week" keeps it.
_ADVERB = re.compile(r"(?:the )?(?:last|this|next|yesterday|today|tomorrow|tonight)\b")
_LOOSE = re.compile(r"(?:recent|lately|just now|earlier|[0-9a-z ]+ ago\b)")
_LEADS = re.compile(
    r"(?:(?:大约|大概|差不多|就|早|还)?(?:在|于|自从|打从|从|自)|[ ,]*\b(?:(?:back |sometime )?"
    r"(?:on|in|at|during|over|within|throughout|between)|from|since|around|about|by|for|of)(?: the)?) ?$"
)
_LEADS_ADVERB = re.compile(r"(?:(?:在|于|自从|打从|从|自)| *\b(?:from|since|for|of)(?: the)?) ?$")
_TRAILS = re.compile(
    r"(?:'s)?(?:的?[这那](?:一?[天周年次回段]|个[月时]|几天|时候?|会儿|段时间|期间)?(?:的?时候)?|期间|的?时候?(?!间)|当[天晚时]"
    r"|里(?![面程约])|份|的)?[ ,，、]*(?:的(?!确))?"
)


def _without(query: str, text: str, phrases: list[Phrase]) -> str:
    """The query without the expressions and the small words that only joined them to it."""
    rest = ""
    at = 0
    for phrase in phrases:
        lead, end = text[at : phrase.start], phrase.end
        leads = _LEADS_ADVERB if _ADVERB.match(text, phrase.start) else _LEADS
        kept = " ".join(query[start:stop] for start, stop in phrase.topics)
        if not kept:
            small = None if _LOOSE.match(text, phrase.start) else leads.search(lead[-24:])
            if small:
                lead = lead[: len(lead) - (small.end() - small.start())]
            trail = _TRAILS.match(text, end)
            end = trail.end() if trail else end
        rest = _join(rest, query[at : at + len(lead)])
        rest = _join(rest, kept)
        at = max(at, end)
    return _join(rest, query[at:]).strip().lstrip(_MARKS).strip()


def _join(left: str, right: str) -> str:
    """Side by side; apart where letters would run together, and without marks before a mark."""
    if not left or not right:
        return left or right
    bare = right.lstrip()
    if bare and bare[0] in _MARKS:
        return left.rstrip(_MARKS) + bare
    if left[-1].isspace() or right[0].isspace():
        return left.rstrip() + " " + bare
    return left + (" " if left[-1].isascii() and right[0].isascii() else "") + right


def _says_something(text: str) -> bool:
    return any(unicodedata.category(char)[0] in "LNS" for char in text)
