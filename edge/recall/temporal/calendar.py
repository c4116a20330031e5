"""Stretches of local time, and things that come back in them."""

from __future__ import annotations

import calendar
import datetime as dt
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from edge.types import Micros

# Years that a window may reach into; nothing was said to the box before, nor will be after.
FIRST_YEAR, LAST_YEAR = 1970, 2100

DAY = dt.timedelta(days=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICRO = dt.timedelta(microseconds=1)
_MONDAY = dt.date(1970, 1, 5).toordinal()
LAST: Micros = (dt.datetime(LAST_YEAR, 1, 1, tzinfo=dt.timezone.utc) - _EPOCH) // _MICRO


class Grain(enum.IntEnum):
    """The circle in which something comes back: an evening in a day, a Tuesday in a week, a 5th, a March."""

    DAY = 1
    WEEK = 2
    MONTH = 3
    YEAR = 4


class Bounds(NamedTuple):
    """Half-open [first, last), on the wall clock of the asker: naive, with `fold` where the clock was set back."""

    first: dt.datetime
    last: dt.datetime

    @property
    def days(self) -> float:
        return (self.last - self.first) / DAY

    def holds(self, other: Bounds) -> bool:
        return self.first <= other.first and other.last <= self.last


# Of the n-th circle (see Now.index): the bounds in it, or None where there are none (30 February).
At = Callable[[int], "Bounds | None"]


@dataclass(frozen=True, slots=True)
class Now:
    """When and where it is asked."""

    micros: Micros
    zone: dt.tzinfo
    # Both on the wall clock of the zone, naive.
    local: dt.datetime
    today: dt.datetime

    @classmethod
    def of(cls, micros: Micros, zone: dt.tzinfo) -> Now | None:
        """None for a moment outside 1970 to 2100, about which nothing can be said."""
        if not 0 <= micros < LAST:
            return None
        local = (_EPOCH + micros * _MICRO).astimezone(zone).replace(tzinfo=None)
        return cls(micros, zone, local, midnight(local))

    def moment(self, micros: Micros) -> dt.datetime:
        """A moment on the wall clock, with its fold."""
        return (_EPOCH + micros * _MICRO).astimezone(self.zone).replace(tzinfo=None)

    def utc(self, local: dt.datetime) -> Micros:
        """A time on the wall clock, as a moment. One that the clock skipped is the moment it was set forward."""
        return (local.replace(tzinfo=self.zone) - _EPOCH) // _MICRO


def midnight(moment: dt.datetime) -> dt.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def index(every: Grain, day: dt.datetime) -> int:
    """Which circle a day is in: years since 0, months since 0, Mondays since 1970, days since 0001-01-01."""
    if every is Grain.YEAR:
        return day.year
    if every is Grain.MONTH:
        return day.year * 12 + day.month - 1
    if every is Grain.WEEK:
        return (day.toordinal() - _MONDAY) // 7
    return day.toordinal()


def latest(at: At, every: Grain, now: Now, *, over: bool = False) -> Bounds | None:
    """The latest occurrence that has begun by now, or with `over` the latest that ended before today.

    It looks back nine circles: 29 February may be eight years away, a 31st two months.
    """
    here = index(every, now.local)
    for number in range(here + 1, here - 10, -1):
        bounds = at(number)
        if bounds and (bounds.last <= now.today if over else bounds.first <= now.local):
            return bounds
    return None


def following(at: At, every: Grain, moment: dt.datetime) -> Bounds | None:
    """The first occurrence that begins at a moment or after it."""
    here = index(every, moment)
    for number in range(here - 1, here + 10):
        bounds = at(number)
        if bounds and bounds.first >= moment:
            return bounds
    return None


def preceding(at: At, every: Grain, moment: dt.datetime) -> Bounds | None:
    """The last occurrence that begins before a moment."""
    here = index(every, moment)
    for number in range(here + 1, here - 10, -1):
        bounds = at(number)
        if bounds and bounds.first < moment:
            return bounds
    return None


def days(first: dt.datetime, count: float) -> Bounds:
    return Bounds(first, first + DAY * count)


def date(year: int, month: int, day: int) -> Bounds | None:
    """The day, if the calendar has it."""
    if not (FIRST_YEAR <= year < LAST_YEAR and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    return days(dt.datetime(year, month, day), 1)  # noqa: DTZ001  # wall clock of the asker; Now.utc adds the zone


def months(number: int, count: int = 1) -> Bounds | None:
    """`count` whole months, the first of them the n-th since year 0."""
    first, last = (date(n // 12, n % 12 + 1, 1) for n in (number, number + count - 1))
    if not first or not last:
        return None
    return Bounds(first.first, last.first + DAY * calendar.monthrange(last.first.year, last.first.month)[1])


def year(number: int) -> Bounds | None:
    return months(number * 12, 12)


def week(number: int) -> Bounds | None:
    """Monday to Sunday (ISO 8601)."""
    ordinal = _MONDAY + number * 7
    if not dt.date(FIRST_YEAR, 1, 1).toordinal() <= ordinal < dt.date(LAST_YEAR, 1, 1).toordinal():
        return None
    return days(dt.datetime.fromordinal(ordinal), 7)


def month_day(month: int, day: int) -> At:
    return lambda number: date(number, month, day)


def year_months(month: int, count: int = 1) -> At:
    return lambda number: months(number * 12 + month - 1, count)


def day_of_month(day: int) -> At:
    return lambda number: date(number // 12, number % 12 + 1, day)


def days_of_week(first: int, count: int = 1) -> At:
    """From a day of the week (Monday 0) on."""

    def at(number: int) -> Bounds | None:
        whole = week(number)
        return days(whole.first + DAY * first, count) if whole else None

    return at


def hours(first: int, last: int) -> At:
    """A part of the day; hours after 24 are those of the next day."""
    return lambda number: Bounds(
        dt.datetime.fromordinal(number) + dt.timedelta(hours=first),
        dt.datetime.fromordinal(number) + dt.timedelta(hours=last),
    )


def months_before(moment: dt.datetime, count: int) -> dt.datetime | None:
    """The same day so many months earlier, or the last day of a shorter month; None before year 1."""
    number = moment.year * 12 + moment.month - 1 - count
    year_, month = number // 12, number % 12 + 1
    if not 1 <= year_ <= 9999:
        return None
    return moment.replace(year=year_, month=month, day=min(moment.day, calendar.monthrange(year_, month)[1]))


# Of a month in days, of a year in months, [first, last): wide enough that nobody's "end of March" is left out.
_OF_MONTH = {"early": (0, 10), "mid": (10, 20), "late": (20, 31), "end": (20, 31), "half1": (0, 15), "half2": (15, 31)}
_OF_YEAR = {"early": (0, 3), "mid": (4, 8), "late": (9, 12), "end": (10, 12), "half1": (0, 6), "half2": (6, 12)}
_THIRDS = {"early": (0, 2), "mid": (2, 4), "late": (4, 6), "end": (4, 6), "half1": (0, 3), "half2": (3, 6)}


def phase(bounds: Bounds | None, which: str) -> Bounds | None:
    """The beginning, middle or end of a month, a year, or any other stretch (by thirds)."""
    if not bounds:
        return None
    if 28 <= bounds.days <= 31 and bounds.first.day == 1:
        first, last = _OF_MONTH[which]
        return Bounds(bounds.first + DAY * first, min(bounds.first + DAY * last, bounds.last))
    if bounds.days >= 365 and bounds.first.month == 1 and bounds.first.day == 1:
        first, last = _OF_YEAR[which]
        return months(bounds.first.year * 12 + first, last - first)
    first, last = _THIRDS[which]
    sixth = bounds.days / 6
    return Bounds(bounds.first + DAY * round(sixth * first), bounds.first + DAY * round(sixth * last))


def phased(at: At, which: str) -> At:
    return lambda number: phase(at(number), which)
