"""How a time is said in English."""

from __future__ import annotations

import re

from edge.recall.temporal import holidays
from edge.recall.temporal.calendar import (
    DAY,
    At,
    Bounds,
    Grain,
    Now,
    date,
    day_of_month,
    days,
    days_of_week,
    following,
    hours,
    index,
    latest,
    months,
    week,
    year,
    year_months,
)
from edge.recall.temporal.phrase import Rule, Sense, fixed, past, recurring


def _words(text: str) -> list[str]:
    return text.split()


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_MONTHS = {name: n for n, name in enumerate(_words("jan feb mar apr may jun jul aug sep oct nov dec"), 1)}
# Also words and names: these need a preposition, a day or a year beside them to be a month.
_AMBIGUOUS = frozenset(_words("jan mar march apr april may jun june jul aug august sep dec"))
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = r"(?:mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun)"
_WEEKDAYS = {name: n for n, name in enumerate(_words("mon tue wed thu fri sat sun"))}
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 28), "night": (17, 28)}
_PREPOSITIONS = re.compile(
    r"(?:\b(?:in|during|since|until|till|by|before|after|from|between|back in|as of|this past|of)"
    r"|\b(?:early|mid|late)[ -]?|[(]) ?(?:the month of )?$"
)
_YEAR_AFTER = re.compile(
    r"\b(?:in|during|since|until|till|by|before|after|from|of|year|throughout|between|early|mid|late)[ -]"
    r"(?:the )?(?:year )?$"
)
_NOT_WEEKDAY = re.compile(r"\b(?:every|each|any|most|black|good|ash|cyber|fat|palm|easter|super|some) $")


def _month_number(text: str) -> int:
    return _MONTHS[text[:3]]


def _context(m: re.Match[str]) -> str:
    """The characters right before the match, enough for two short words."""
    return m.string[max(0, m.start() - 24) : m.start()]


def _dated(m: re.Match[str], now: Now) -> Sense | None:
    """April 30th, 30 April 2025, Apr 3-5."""
    month, first = _month_number(m["month"]), int(m["day"])
    last = int(m["last"]) if "last" in m.re.groupindex and m["last"] else first

    def at(number: int) -> Bounds | None:
        begin, end = date(number, month, first), date(number, month, last)
        return Bounds(begin.first, end.last) if begin and end and begin.first < end.last else None

    return fixed(at(int(m["year"]))) if m["year"] else recurring(at, Grain.YEAR, now)


def _day_first(m: re.Match[str], now: Now) -> Sense | None:
    """Of "the 5 may be" no date is made."""
    unsure = m["month"] in ("may", "mar", "march") and not (m["th"] or m["year"])
    return None if unsure and not _context(m).endswith(("on ", "since ", "until ", "by ")) else _dated(m, now)


def _month_year(m: re.Match[str], _: Now) -> Sense | None:
    number = int(m["year"]) if m["year"] else 2000 + int(m["short"])
    return fixed(year_months(_month_number(m["month"]))(number))


def _month(m: re.Match[str], now: Now) -> Sense | None:
    at, which, name = year_months(_month_number(m["month"])), m["which"], m["month"]
    if which:
        if name in ("may", "march", "mar") and which != "last":
            return None
        if which == "last":
            return recurring(at, Grain.YEAR, now, over=True)
        return fixed(at(now.local.year) if which == "this" else following(at, Grain.YEAR, now.local))
    sure = name not in _AMBIGUOUS or _PREPOSITIONS.search(_context(m))
    return recurring(at, Grain.YEAR, now, alone=bool(sure))


def _relative(m: re.Match[str], now: Now) -> Sense | None:
    which, what = m["which"].removeprefix("this "), m["what"]
    steps = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1, "upcoming": 1}.get(which, -1)
    if m["again"]:
        steps -= 1
    if which == "past" and what in ("week", "month", "year") and not m["again"]:
        return past(1, what, now)
    if what == "week":
        return fixed(week(index(Grain.WEEK, now.local) + steps))
    if what == "month":
        return fixed(months(index(Grain.MONTH, now.local) + steps))
    if what == "quarter":
        return fixed(months((index(Grain.MONTH, now.local) // 3 + steps) * 3, 3))
    if what == "year":
        return fixed(year(now.local.year + steps))
    if what in _PARTS:
        day = now.today + DAY * (steps if what in ("night", "evening") or not steps else 0)
        return fixed(hours(*_PARTS[what])(day.toordinal())) if steps <= 0 and (not steps or day < now.today) else None
    if what == "weekend":
        return _of_circle(days_of_week(5, 2), Grain.WEEK, steps, now)
    return _of_circle(year_months(_SEASONS[what], 3), Grain.YEAR, steps, now)


def _of_circle(at: At, every: Grain, steps: int, now: Now) -> Sense | None:
    """The last that is over, this one (begun, or of this week or year), the next to begin; two back is one earlier."""
    if steps > 0:
        return fixed(following(at, every, now.local))
    if steps == 0:
        running = latest(at, every, now)
        if running and running.last > now.local:
            return Sense(running, at, every)
        return fixed(at(index(every, now.local)))
    if steps == -1:
        return recurring(at, every, now, over=True)
    last = latest(at, every, now, over=True)
    return fixed(at(index(every, last.first) + steps + 1)) if last else None


def _weekday(m: re.Match[str], now: Now) -> Sense | None:
    at = days_of_week(_WEEKDAYS[m["day"][:3]])
    which = (m["which"] or "").removeprefix("this ")
    if which in ("next", "coming"):
        return fixed(following(at, Grain.WEEK, now.today + DAY))
    if which == "this":
        return fixed(at(index(Grain.WEEK, now.local)))
    if not which and _NOT_WEEKDAY.search(_context(m)):
        return None
    return recurring(at, Grain.WEEK, now, explicit=bool(which) or _context(m).endswith("on "), over=True)


def _short_weekday(m: re.Match[str], now: Now) -> Sense | None:
    at = days_of_week(_WEEKDAYS[(m["day"] or m["day2"])[:3]])
    return recurring(at, Grain.WEEK, now, over=True)


def _weekend(m: re.Match[str], now: Now) -> Sense | None:
    sure = re.search(r"\b(?:over|on|at|during) the $", _context(m))
    return recurring(days_of_week(5, 2), Grain.WEEK, now, explicit=False, alone=bool(sure))


def _part(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(hours(*_PARTS[m[0]]), Grain.DAY, now, alone=False)


_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1, "the day before yesterday": -2, "the day after tomorrow": 2}


def _day(m: re.Match[str], now: Now) -> Sense | None:
    return fixed(days(now.today + DAY * _DAYS[m[0]], 1))


def _tonight(_: re.Match[str], now: Now) -> Sense | None:
    return fixed(hours(*_PARTS["night"])(now.today.toordinal()))


def _day_of_month(m: re.Match[str], now: Now) -> Sense | None:
    """ "On the 30th": a day where the sentence ends after it, else perhaps a floor or a birthday."""
    sure = _context(m).endswith("on the ") and re.match(r" *(?:$|[?.!,;])", m.string[m.end() : m.end() + 8])
    return recurring(day_of_month(int(m["day"])), Grain.MONTH, now, explicit=False, alone=bool(sure))


def _year(m: re.Match[str], _: Now) -> Sense | None:
    sense = fixed(year(int(m["year"])))
    return sense and Sense(sense.bounds, alone=bool(_YEAR_AFTER.search(_context(m))))


def _season(m: re.Match[str], now: Now) -> Sense | None:
    """A season by itself is a matter ("plans for the summer"), and a time only of a year."""
    return recurring(year_months(_SEASONS[m[0]], 3), Grain.YEAR, now, alone=False)


def _half_year(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(year_months(1 if m["half"] == "first" else 7, 6), Grain.YEAR, now)


def _quarter(m: re.Match[str], now: Now) -> Sense | None:
    number = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}[m["number"]]
    return recurring(year_months(number * 3 - 2, 3), Grain.YEAR, now, alone=False)


def _holiday(pattern: str, at: At) -> Rule:
    """Alone it only hints: "the movie they watch during Thanksgiving" is no movie of last November."""

    def sense(m: re.Match[str], now: Now) -> Sense | None:
        which = m["which"]
        if not which:
            return recurring(at, Grain.YEAR, now, explicit=False)
        return _of_circle(at, Grain.YEAR, {"last": -1, "this": 0, "next": 1}[which], now)

    begins = "ltn" + "".join(part.removeprefix("(?:")[0] for part in pattern.split("|"))
    return Rule(begins, rf"(?:(?P<which>last|this|next) )?(?P<topic>{pattern})(?!\w)", sense, topic=True)


_YEAR_DIGITS = r"(?:,? ?(?:of )?(?P<year>(?:19|20)[0-9]{2})(?![0-9]))?"
_TO = r" ?(?:-|to|through|until|till|and) ?"
_MONTH_BEGINS = "jfmasond"
_DIGITS = "0123456789"

RULES: tuple[Rule, ...] = (
    *(_holiday(pattern, at) for pattern, at in holidays.ENGLISH.items()),
    Rule(
        _MONTH_BEGINS,
        rf"(?P<month>{_MONTH})\.? (?:the )?(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?"
        rf"(?:{_TO}(?P<last>[0-9]{{1,2}})(?:st|nd|rd|th)?)?(?![\w%]|[.:/][0-9]){_YEAR_DIGITS}",
        _dated,
    ),
    Rule(
        _DIGITS,
        rf"(?P<day>[0-9]{{1,2}})(?P<th>(?:st|nd|rd|th)?(?: of)?) ?-?(?P<month>{_MONTH})(?!\w)\.?-?{_YEAR_DIGITS}",
        _day_first,
        ".-/:",
    ),
    Rule(
        _MONTH_BEGINS,
        rf"(?P<month>{_MONTH})\.?(?:,? (?:of )?(?P<year>(?:19|20)[0-9]{{2}})|,? ?'(?P<short>[0-9]{{2}}))(?![\w%])",
        _month_year,
    ),
    Rule(
        "lt" + _MONTH_BEGINS, rf"(?:(?P<which>last|this|next) )?(?P<month>{_MONTH})(?![\w'])(?:\.(?= ?[a-z]))?", _month
    ),
    Rule(
        "tlpcnu",
        r"(?:the )?(?P<which>last|previous|this past|past|this coming|this|current|next|coming|upcoming) "
        r"(?P<what>weekend|week|month|year|quarter|night|evening|morning|afternoon|spring|summer|fall|autumn|winter)"
        r"(?![\w-])(?P<again> before last)?",
        _relative,
    ),
    Rule(
        "twmyn",
        r"(?:the )?(?P<what>weekend|week|month|year|night)(?P<again> before )(?P<which>last)(?!\w)",
        _relative,
    ),
    Rule(
        "ltpncmwfs",
        rf"(?:(?P<which>last|this past|past|this coming|this|next|coming) )?(?P<day>{_WEEKDAY})(?!\w)",
        _weekday,
    ),
    Rule(
        "mtwfs",
        rf"(?<=\blast )(?P<day>{_SHORT_WEEKDAY})(?!\w)|(?<=\bon )(?P<day2>tues?|thu(?:rs?)?|fri)(?!\w)",
        _short_weekday,
    ),
    Rule("w", r"weekend(?!\w)", _weekend),
    Rule("ty", r"the day before yesterday|the day after tomorrow|yesterday|today|tomorrow", _day),
    Rule("t", r"tonight", _tonight),
    Rule("maen", r"(?:morning|afternoon|evening|night)(?!\w)", _part),
    Rule("sfaw", r"(?:spring|summer|fall|autumn|winter)(?!\w)", _season),
    Rule("fs", r"(?P<half>first|second) half of the year(?= \w|$)", _half_year),
    Rule("fstl", r"(?P<number>first|second|third|fourth|last) quarter(?!\w)", _quarter),
    Rule(_DIGITS, r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)(?!\w)", _day_of_month),
    Rule(
        "12",
        r"(?P<year>(?:19|20)[0-9]{2})(?![\w%-]|[.,:/][0-9]| ?(?:dollars|usd|rmb|people|steps|calories|words|miles|km|kg"
        r"|points|times|meters|米|元|块|人|步|个|款|型|版|次|年|卡|公里))",
        _year,
        "0123456789.-/:$¥￥+#",
    ),
)
