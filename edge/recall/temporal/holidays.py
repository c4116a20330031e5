"""Holidays of China and of the English-speaking world, each as the days people mean by its name."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache

from edge.recall.temporal.calendar import DAY, FIRST_YEAR, LAST_YEAR, At, Bounds, date, days, month_day

# Years for which the lunar calendar is at hand.
_LUNAR_YEARS = range(FIRST_YEAR - 1, LAST_YEAR)


@lru_cache(maxsize=256)
def _lunar_day(year: int, month: int, day: int) -> dt.datetime | None:
    if year not in _LUNAR_YEARS:
        return None
    from borax.calendars.lunardate import InvalidLunarDateError, LunarDate  # here, as it takes 50 ms and few ask for it

    try:
        solar = LunarDate(year, month, day).to_solar_date()
    except InvalidLunarDateError:
        return None
    return dt.datetime.fromordinal(solar.toordinal())


def lunar(month: int, day: int, before: int = 0, after: int = 0) -> At:
    """A day of the Chinese calendar in the year whose first month begins in the given one, with days around it."""

    def at(year: int) -> Bounds | None:
        found = _lunar_day(year, month, day)
        return days(found - DAY * before, 1 + before + after) if found else None

    return at


def lunar_month(month: int) -> At:
    def at(year: int) -> Bounds | None:
        first = _lunar_day(year, month, 1)
        after = _lunar_day(year, month + 1, 1) if month < 12 else _lunar_day(year + 1, 1, 1)
        return Bounds(first, after) if first and after else None

    return at


def new_years_eve(year: int) -> Bounds | None:
    """除夕, the day before the first of the first month."""
    first = _lunar_day(year, 1, 1)
    return days(first - DAY, 1) if first else None


def solar_term(name: str, before: int = 0, after: int = 0) -> At:
    def at(year: int) -> Bounds | None:
        if year not in _LUNAR_YEARS:
            return None
        from borax.calendars.lunardate import TermUtils  # here, as above

        day = TermUtils.nth_term_day(year, term_name=name)
        return days(dt.datetime.fromordinal(day.toordinal()) - DAY * before, 1 + before + after)

    return at


def around(month: int, day: int, before: int = 0, after: int = 0) -> At:
    exact = month_day(month, day)

    def at(year: int) -> Bounds | None:
        bounds = exact(year)
        return Bounds(bounds.first - DAY * before, bounds.last + DAY * after) if bounds else None

    return at


def nth_weekday(month: int, weekday: int, nth: int, before: int = 0, after: int = 0) -> At:
    """The n-th Monday (0) … Sunday (6) of a month, or with -1 the last."""

    def at(year: int) -> Bounds | None:
        first = date(year, month, 1)
        if not first:
            return None
        found = first.first + DAY * ((weekday - first.first.weekday()) % 7 + 7 * (nth - 1 if nth > 0 else 3))
        if nth < 0 and (found + DAY * 7).month == month:
            found += DAY * 7
        return days(found - DAY * before, 1 + before + after)

    return at


def easter(year: int) -> Bounds | None:
    """Good Friday to Easter Monday, by the anonymous Gregorian computus (Meeus, Astronomical Algorithms, ch. 8)."""
    golden = year % 19
    century, rest = divmod(year, 100)
    leaps, left = divmod(century, 4)
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leaps - correction + 15) % 30
    quarter, remainder = divmod(rest, 4)
    weekday = (32 + 2 * left + 2 * quarter - epact - remainder) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    sunday = date(year, month, day + 1)
    return Bounds(sunday.first - DAY * 2, sunday.last + DAY) if sunday else None


# 春节 is the eve to the 15th day; 国庆 and 五一 are the days off; the others the day, and its neighbours where the
# feast is made on them.
CHINESE: dict[str, At] = {
    r"国庆(?:节|黄金周|长假|假期)?|十一(?:黄金周|长假|假期|期间)": around(10, 1, after=6),
    r"五一(?!路|广场|[0-9一二三四五六七八九班号])(?:劳动节|黄金周|长假|小长假|假期)?|劳动节": around(5, 1, after=4),
    r"元旦(?:节|假期)?": around(1, 1, before=1, after=2),
    r"春节(?:假期)?|过年(?![龄轻级纪底初末中代])": lunar(1, 1, before=1, after=14),
    r"除夕夜?|大年三十|年三十": new_years_eve,
    r"元宵节|正月十五": lunar(1, 15),
    r"清明(?!上河)(?:节|假期)?": solar_term("清明", before=1, after=1),
    r"端午节?(?:假期)?": lunar(5, 5, before=1, after=1),
    r"七夕节?": lunar(7, 7),
    r"中元节": lunar(7, 15),
    r"中秋节?(?:假期)?": lunar(8, 15, before=1, after=1),
    r"重阳节": lunar(9, 9),
    r"腊八节?": lunar(12, 8),
    r"冬至": solar_term("冬至"),
    r"情人节": around(2, 14),
    r"三八(?:妇女节|节)|妇女节": around(3, 8),
    r"愚人节": around(4, 1),
    r"五四青年节|青年节": around(5, 4),
    r"母亲节": nth_weekday(5, 6, 2),
    r"父亲节": nth_weekday(6, 6, 3),
    r"六一(?:儿童节|节)|儿童节": around(6, 1),
    r"教师节": around(9, 10),
    r"万圣节|万圣夜": around(10, 31, after=1),
    r"双十一|双11": around(11, 11, before=1),
    r"感恩节": nth_weekday(11, 3, 4, after=3),
    r"平安夜|圣诞夜": around(12, 24),
    r"圣诞(?!老人|树|帽|歌|卡)节?": around(12, 24, after=2),
    r"复活节": easter,
    r"跨年夜?": lambda year: around(12, 31, after=1)(year - 1),
    r"暑假": lambda year: _between(date(year, 7, 1), date(year, 8, 31)),
    r"寒假": lambda year: _between(date(year, 1, 10), date(year, 2, 28)),
}

ENGLISH: dict[str, At] = {
    r"christmas eve": around(12, 24),
    r"christmas(?: day| holidays?| break)?|xmas": around(12, 24, after=2),
    r"thanksgiving(?: day| weekend)?": nth_weekday(11, 3, 4, after=3),
    r"black friday": nth_weekday(11, 3, 4, before=-1, after=1),
    r"(?:chinese|lunar) new year|spring festival": lunar(1, 1, before=1, after=14),
    r"mid-autumn(?: festival)?": lunar(8, 15, before=1, after=1),
    r"dragon boat festival": lunar(5, 5, before=1, after=1),
    r"new year'?s eve": lambda year: date(year - 1, 12, 31),
    r"new year'?s(?: day)?|new year(?! resolution)": lambda year: around(12, 31, after=1)(year - 1),
    r"easter(?: sunday| monday| weekend)?": easter,
    r"halloween": around(10, 31),
    r"valentine'?s(?: day)?": around(2, 14),
    r"mother'?s day": nth_weekday(5, 6, 2),
    r"father'?s day": nth_weekday(6, 6, 3),
    r"memorial day(?: weekend)?": nth_weekday(5, 0, -1, before=2),
    r"labou?r day(?: weekend)?": nth_weekday(9, 0, 1, before=2),
    r"independence day|(?:the )?(?:fourth|4th) of july": around(7, 4),
    r"national day(?: holiday)?": around(10, 1, after=6),
    r"boxing day": around(12, 26),
}


def _between(first: Bounds | None, last: Bounds | None) -> Bounds | None:
    return Bounds(first.first, last.last) if first and last else None
