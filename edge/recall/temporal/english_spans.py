"""Stretches counted back from now, and vague times, as they are said in English."""

from __future__ import annotations

import re
from collections.abc import Callable

from edge.recall.temporal.calendar import DAY, Bounds, Grain, Now, days, days_of_week, latest
from edge.recall.temporal.numerals import ENGLISH_NUMBER, english_quantity
from edge.recall.temporal.phrase import Rule, Sense, ago, back, fixed, last_time, past

_COUNT = rf"(?:[0-9]{{1,5}}|half an?|a few|(?:a )?couple(?: of)?|several|few|{ENGLISH_NUMBER})"
_UNIT = r"(?:days?|weeks?|months?|years?|hours?|hrs?|minutes?|mins?|nights?)"


def _unit(text: str) -> str:
    name = text.rstrip("s")
    return {"hr": "hour", "min": "minute", "night": "day"}.get(name, name)


def _same_day(m: re.Match[str], now: Now) -> Sense | None:
    size = m["unit"] or m["unit2"] or m["unit3"]
    then = back(now.today, 1, size)
    around = {"year": 15, "month": 3, "week": 1}[size] if "time" in m[0] else 0
    return fixed(Bounds(then - DAY * around, then + DAY * (1 + around))) if then else None


def _ago(m: re.Match[str], now: Now) -> Sense | None:
    low = english_quantity(m["count"])
    high = english_quantity(m["high"]) if m["high"] else low
    if low is None or high is None:
        return None
    half = 0.5 if m["half"] or m["more"] else 0
    return ago(low[0] + half, high[1] + half, _unit(m["unit"]), now)


def _or_two_ago(m: re.Match[str], now: Now) -> Sense | None:
    return ago(1, 2, _unit(m["unit"]), now)


def _many_ago(m: re.Match[str], now: Now) -> Sense | None:
    return ago(2, 9, _unit(m["unit"]), now)


def _weekends_ago(m: re.Match[str], now: Now) -> Sense | None:
    quantity = english_quantity(m["count"])
    if quantity is None or quantity[0] != quantity[1]:
        return ago(2, 6, "week", now)
    last = latest(days_of_week(5, 2), Grain.WEEK, now, over=True)
    first = back(last.first, quantity[0] - 1, "week") if last else None
    return fixed(days(first, 2)) if first else None


def _past(m: re.Match[str], now: Now) -> Sense | None:
    quantity = english_quantity(m["count"]) if m["count"] else (2, 9)
    return (
        past(quantity[1], _unit(m["unit"] or m["units"]), now, explicit=quantity[0] == quantity[1])
        if quantity
        else None
    )


def _vague(days: int) -> Callable[[re.Match[str], Now], Sense | None]:
    return lambda _, now: past(days, "day", now, explicit=False)


def _just_now(_: re.Match[str], now: Now) -> Sense | None:
    return past(2, "hour", now, explicit=False)


def _a_while_ago(_: re.Match[str], now: Now) -> Sense | None:
    """Neither these days nor last year."""
    return fixed(Bounds(now.today - DAY * 120, now.today - DAY * 3), explicit=False)


# Of the words for numbers and of half, few, couple, several.
_NUMBERS = "0123456789aotfsenhc"

RULES: tuple[Rule, ...] = (
    Rule(
        "aot",
        r"(?:at )?this time last (?P<unit>year|month|week)|(?:on )?this (?:same )?day last (?P<unit2>year|month|week)"
        r"|(?:a|one) (?P<unit3>year|month|week) ago today",
        _same_day,
    ),
    Rule("a", rf"a (?P<unit>{_UNIT}) or two (?:ago|back)(?!\w)", _or_two_ago),
    Rule(
        _NUMBERS,
        rf"(?P<count>{_COUNT})(?: (?:or|to) (?P<high>{_COUNT}))?(?P<more> and a half)? (?P<unit>{_UNIT})"
        r"(?P<half> and a half)? (?:ago|back)(?!\w)",
        _ago,
    ),
    Rule(_NUMBERS, rf"(?P<count>{_COUNT}) weekends? ago(?!\w)", _weekends_ago),
    Rule("dwmyh", r"(?P<unit>days|weeks|months|years|hours) ago(?!\w)", _many_ago),
    Rule(
        "iodwftlpr",
        r"(?:(?:in|over|during|within|for) )?(?:the |these |this )?(?:last|past|previous|recent) "
        rf"(?:(?P<count>{_COUNT}) (?P<unit>days?|weeks?|months?|years?|hours?|minutes?)"
        r"|(?P<units>days|weeks|months|years))(?!\w)",
        _past,
    ),
    Rule("tlm", r"(?:the )?last time|(?:the )?most recent(?:ly)?(?: time)?|(?:the )?latest(?: time)?", last_time),
    Rule("t", r"the other (?:day|night|week)(?!\w)", _vague(14)),
    Rule("as", r"(?:a (?:little )?while (?:ago|back)|some time ago)(?!\w)", _a_while_ago),
    Rule("jam", r"just now|(?:a few )?moments ago", _just_now),
    Rule("e", r"earlier today", lambda _, now: fixed(Bounds(now.today, now.local))),
    Rule("n", r"not (?:too )?long ago", _vague(60)),
    Rule("tnlr", r"(?:these|nowa)days|these days|lately|recent(?:ly)?(?!\w)", _vague(30)),
)
