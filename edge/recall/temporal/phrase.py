"""What an expression says, and how two of them beside each other become one."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from edge.recall.temporal.calendar import (
    DAY,
    At,
    Bounds,
    Grain,
    Now,
    following,
    index,
    latest,
    midnight,
    months_before,
    phase,
    phased,
    preceding,
)


@dataclass(frozen=True, slots=True)
class Sense:
    """What one expression means. With `at` it comes back, and `bounds` is the occurrence that is meant by itself."""

    bounds: Bounds
    at: At | None = None
    every: Grain = Grain.YEAR
    # The occurrence meant is over before today: "Tuesday", said on a Tuesday, is not today.
    over: bool = False
    explicit: bool = True
    latest: bool = False
    # Whether it says a time without another expression beside it: 下午 and a bare "2023" do not.
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Phrase:
    """Characters [start, end) and their sense; None for a date that does not exist. `topics` stay in the query."""

    start: int
    end: int
    sense: Sense | None
    topics: tuple[tuple[int, int], ...] = ()
    # It has both its ends already, so that 3月到5月到7月 is no chain (each link would be resolved anew by the next).
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern over folded text, and the sense of its match, None when it is no time after all.

    `begins` are the characters a match may begin with: the pattern is tried where one of them stands. `not_after` are
    characters that may not stand before it. A `topic` (国庆) is as much a matter as a time: it stays in the query.
    """

    begins: str
    pattern: str
    sense: Callable[[re.Match[str], Now], Sense | None]
    not_after: str = ""
    topic: bool = False


def fixed(bounds: Bounds | None, *, explicit: bool = True, latest: bool = False) -> Sense | None:
    return Sense(bounds, explicit=explicit, latest=latest) if bounds else None


def recurring(
    at: At, every: Grain, now: Now, *, explicit: bool = True, alone: bool = True, over: bool = False
) -> Sense | None:
    bounds = latest(at, every, now, over=over)
    return Sense(bounds, at, every, over, explicit, False, alone) if bounds else None


# An outer stretch must be about one circle of the inner: 三月 has one 5号, and 去年 has twelve.
_CIRCLE = {Grain.DAY: (0.9, 1.1), Grain.WEEK: (6, 8), Grain.MONTH: (28, 31), Grain.YEAR: (360, 367)}


def fits(outer: Sense, inner: Sense) -> bool:
    shortest, longest = _CIRCLE[inner.every]
    return (
        inner.at is not None
        and (outer.at is None or outer.every > inner.every)
        and shortest <= outer.bounds.days <= longest
    )


def narrow(outer: Sense, inner: Sense, now: Now) -> Sense | None:
    """下午 of 昨天, 国庆 of 去年, Tuesday of last week; None when the outer has no such (2月 has no 30号)."""
    inner_at = inner.at
    outer_at = outer.at
    if inner_at is None:
        return None

    def within(whole: Bounds | None) -> Bounds | None:
        if whole is None:
            return None
        here = index(inner.every, whole.first)
        for number in range(here - 1, here + 3):
            bounds = inner_at(number)
            if bounds and whole.first <= bounds.first < whole.last:
                return bounds
        return None

    if outer_at is None:
        return fixed(within(outer.bounds), explicit=outer.explicit)
    return recurring(
        lambda number: within(outer_at(number)), outer.every, now, explicit=outer.explicit, over=outer.over
    )


def either(first: Sense, second: Sense) -> Sense | None:
    """Of the same time said twice the closer one: "yesterday, 22 July", 4月30日星期四; None when they are two times."""
    if not (first.explicit or first.at) or not (second.explicit or second.at):
        return None
    for wide, close in ((first, second), (second, first)):
        if wide.bounds.holds(close.bounds):
            return replace(close, alone=True)
        # The day of the week that goes with a date was resolved without it.
        if wide.every is Grain.WEEK and wide.at and close.bounds.days == 1 and close.every is not Grain.WEEK:
            return close
    return None


def phase_of(sense: Sense, which: str, now: Now) -> Sense | None:
    """The beginning, middle or end of it."""
    if sense.at:
        return recurring(phased(sense.at, which), sense.every, now)
    return fixed(phase(sense.bounds, which), explicit=sense.explicit)


def stretch(first: Sense, last: Sense, now: Now) -> Sense | None:
    """From one to the other, both included. Of 三月到五月 the months belong to one spring, not each to its latest."""
    first_at, last_at = first.at, last.at
    if first_at and last_at and first.every >= last.every:

        def at(number: int) -> Bounds | None:
            begin = first_at(number)
            end = following(last_at, last.every, begin.first) if begin else None
            return Bounds(begin.first, end.last) if begin and end else None

        return recurring(at, first.every, now, explicit=first.explicit or last.explicit)
    begin, end = first.bounds, last.bounds
    if last_at:
        end = following(last_at, last.every, begin.first) or end
    elif first_at:
        begin = preceding(first_at, first.every, end.last) or begin
    if begin.first >= end.last or begin.first > end.first:
        return None
    return Sense(Bounds(begin.first, end.last), explicit=first.explicit or last.explicit)


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit in months or days or seconds; `half` is half its width in days."""

    months: int = 0
    days: int = 0
    seconds: int = 0
    half: float = 0


UNITS = {
    "year": Unit(months=12, half=183),
    "month": Unit(months=1, half=15),
    "week": Unit(days=7, half=3),
    "day": Unit(days=1),
    "hour": Unit(seconds=3600),
    "minute": Unit(seconds=60),
}
# Whoever says "ten minutes ago" did not look at a watch.
_SLACK = {"hour": 1800, "minute": 300}


def back(moment: dt.datetime, count: float, unit: str) -> dt.datetime | None:
    """So many days, weeks, months or years earlier (later, when negative); halves are half months and days."""
    size = UNITS[unit]
    halves = round(count * 2)
    whole_months = size.months * halves // 2
    whole_days = size.days * halves // 2 + (15 if unit == "month" and halves % 2 else 0)
    earlier = months_before(moment, whole_months)
    try:
        return earlier - DAY * whole_days if earlier else None
    except OverflowError:
        return None


def ago(low: float, high: float, unit: str, now: Now) -> Sense | None:
    """A window as wide as the unit around the day so long ago: 84天前 is a day, 两周前 seven, 三个月前 a month.

    Of a vague number (几天前) it reaches from the one end to the other, and is not explicit.
    """
    size = UNITS[unit]
    if size.seconds:
        slack = _SLACK[unit]
        since = now.micros - round((high * size.seconds + slack) * 1e6)
        until = now.micros - round((low * size.seconds - slack) * 1e6)
        if since < 0:
            return None
        return fixed(Bounds(now.moment(since), now.moment(min(until, now.micros))), explicit=low == high)
    if unit == "day" and low != int(low):
        low, high = int(low), int(high) + 1
    # Half a year ago is nearer to a month than a year ago is.
    half = DAY * int(size.half if low == int(low) else size.half / 2)
    begin, end = back(now.today, high, unit), back(now.today, low, unit)
    if begin is None or end is None or begin.year < 2:
        return None
    if low < high:
        return fixed(Bounds(begin, end + DAY), explicit=False)
    return fixed(Bounds(begin - half, min(end + DAY + half, now.local) if half else end + DAY))


def past(count: float, unit: str, now: Now, *, explicit: bool = True) -> Sense | None:
    """The last so many units up to now, from the beginning of their first day."""
    seconds = UNITS[unit].seconds
    if seconds:
        since = now.micros - round(count * seconds * 1e6)
        return fixed(Bounds(now.moment(since), now.local), explicit=explicit) if since >= 0 else None
    begin = back(now.today, count, unit)
    return fixed(Bounds(midnight(begin), now.local), explicit=explicit) if begin else None


def last_time(_: re.Match[str], now: Now) -> Sense | None:
    """上次, "last time": somewhere in the past year, and the latest of them."""
    begin = back(now.today, 1, "year")
    return fixed(Bounds(begin, now.local), explicit=False, latest=True) if begin else None
