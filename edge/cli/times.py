"""Times as people and RFC 3339 write them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from edge.errors import InvalidArgument

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)


def instant(text: object, field: str) -> int:
    """Microseconds since 1970 UTC of an RFC 3339 time with its zone. Raises InvalidArgument that names the field."""
    match = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if match is None or match.group(8) is None:
        raise InvalidArgument(
            f"{field}: write it as RFC 3339 with its zone, as in 2026-01-31T09:30:00+08:00", field=field
        )
    return _micros(match, field)


def moment(text: str, field: str) -> int:
    """The same for a reader's own words: a date is its first moment here, and a time without a zone is local."""
    if day := _DATE.fullmatch(text):
        try:
            return _since_epoch(
                datetime.combine(date(*map(int, day.groups())), datetime.min.time()).astimezone(), field
            )
        except (ValueError, OverflowError):
            raise _no_such_time(field) from None
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{field}: write a date (2026-01-31) or a time (2026-01-31T09:30:00+08:00)", field=field)
    return _micros(match, field)


def _micros(match: re.Match[str], field: str) -> int:
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = int((match.group(7) or "").ljust(6, "0")[:6])
    try:
        # A leap second (RFC 3339, 5.6) is told as the second after the one before it.
        when = datetime(year, month, day, hour, minute, min(second, 59), fraction)  # noqa: DTZ001  # its zone comes next
        if second == 60:
            when += timedelta(seconds=1)
        return _since_epoch(_in_zone(when, match.group(8)), field) if second <= 60 else _fail(field)
    except (ValueError, OverflowError):
        raise _no_such_time(field) from None


def _in_zone(when: datetime, zone: str | None) -> datetime:
    if zone is None:
        return when.astimezone()
    if zone in "Zz":
        return when.replace(tzinfo=timezone.utc)
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59:
        raise ValueError(zone)
    offset = timedelta(hours=hours, minutes=minutes)
    return when.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))


def _since_epoch(when: datetime, field: str) -> int:
    delta = when - _EPOCH
    if delta.days < 0:
        raise InvalidArgument(f"{field}: is before 1970; the box keeps the years 1970 to 2100", field=field)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _no_such_time(field: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: there is no such time; check its parts", field=field)


def _fail(field: str) -> int:
    raise _no_such_time(field)
