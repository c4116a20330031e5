"""Dates in digits, the same in every language."""

from __future__ import annotations

import re

from edge.recall.temporal.calendar import Grain, Now, date, month_day, months, year_months
from edge.recall.temporal.phrase import Rule, Sense, fixed, recurring


def _year_first(m: re.Match[str], _: Now) -> Sense | None:
    return fixed(date(int(m["year"]), int(m["month"]), int(m["day"])))


def _year_last(m: re.Match[str], _: Now) -> Sense | None:
    """4/30/2026 and 30/4/2026; of 3/4/2026 the month is first, as in the United States."""
    first, second, year = int(m["first"]), int(m["second"]), int(m["year"])
    return fixed(date(year, first, second) or date(year, second, first))


def _year_month(m: re.Match[str], _: Now) -> Sense | None:
    month = int(m["month"])
    return fixed(months(int(m["year"]) * 12 + month - 1)) if 1 <= month <= 12 else None


def _month_day(m: re.Match[str], now: Now) -> Sense | None:
    """4/30, or 30/4; what may be a fraction (3/4) only after a preposition, and then as a hint."""
    first, second = int(m["first"]), int(m["second"])
    if first > 12:
        first, second = second, first
    sure = second > 12 or _BEFORE_DATE.search(m.string[max(0, m.start() - 8) : m.start()])
    return recurring(month_day(first, second), Grain.YEAR, now, explicit=second > 12, alone=bool(sure))


def _quarter(m: re.Match[str], now: Now) -> Sense | None:
    at = year_months(int(m["number"]) * 3 - 2, 3)
    if m["year"]:
        return fixed(at(int(m["year"])))
    return recurring(at, Grain.YEAR, now, explicit=False)


_BEFORE_DATE = re.compile(r"(?:\b(?:on|since|until|till|by|before|after|from)|在|于|从|自) ?$")
_NOT_DIGIT = "0123456789.-/:$¥￥+#"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_NO_DIGIT = r"(?![0-9%]|[-/.:][0-9])"

RULES: tuple[Rule, ...] = (
    Rule("12", rf"{_YEAR}[-/](?P<month>[0-9]{{1,2}})[-/](?P<day>[0-9]{{1,2}}){_NO_DIGIT}", _year_first, _NOT_DIGIT),
    Rule("12", rf"{_YEAR}\.(?P<month>[0-9]{{2}})\.(?P<day>[0-9]{{2}}){_NO_DIGIT}", _year_first, _NOT_DIGIT),
    Rule("12", rf"{_YEAR}年?(?P<month>[0-9]{{1,2}})月(?P<day>[0-9]{{1,2}})[日号]", _year_first, _NOT_DIGIT),
    Rule("0123456789", rf"(?P<first>[0-9]{{1,2}})/(?P<second>[0-9]{{1,2}})/{_YEAR}{_NO_DIGIT}", _year_last, _NOT_DIGIT),
    Rule("12", rf"{_YEAR}[-/](?P<month>0[1-9]|1[0-2]){_NO_DIGIT}", _year_month, _NOT_DIGIT),
    Rule(
        "0123456789",
        r"(?P<first>[0-9]{1,2})/(?P<second>[0-9]{1,2})(?!分|的概|[0-9/%.]|[ ]?(?:of|cup|inch|full)\b)",
        _month_day,
        _NOT_DIGIT,
    ),
    Rule(
        "12q",
        rf"(?:{_YEAR} ?年?(?:的|第)?)?q(?P<number>[1-4])(?![0-9a-z])",
        _quarter,
        _NOT_DIGIT + "qabcdefghijklmnoprstuvwxyz",
    ),
)
