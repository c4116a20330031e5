"""Times as a model writes them."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from edge.errors import InvalidArgument

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?([Zz]|[+-]\d\d:\d\d)?)?", re.ASCII)


def moment(text: str, field: str) -> int | None:
    """Microseconds since 1970 UTC; None for nothing. A date is its first moment, and what names no zone is local.

    Raises InvalidArgument that names the field.
    """
    if not text.strip():
        return None
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise InvalidArgument(f"{field}: write 2026-01-31, or 2026-01-31T09:30:00+08:00", field=field)
    day, clock, zone = match.groups()
    try:
        when = datetime.fromisoformat(f"{day}T{clock or '00:00'}{'+00:00' if zone in ('Z', 'z') else zone or ''}")
        delta = when.astimezone() - _EPOCH
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(f"{field}: there is no such time; check its parts", field=field) from None
    if delta.days < 0:
        raise InvalidArgument(f"{field}: is before 1970; the box keeps the years 1970 to 2100", field=field)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000
