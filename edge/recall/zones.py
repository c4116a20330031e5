"""Where it is what time: the asker's zone, or the box's own."""

from __future__ import annotations

import datetime as dt
import logging
import zoneinfo
from functools import lru_cache

import tzlocal

from edge.errors import InvalidArgument

log = logging.getLogger(__name__)


@lru_cache(maxsize=64)
def _named(name: str) -> dt.tzinfo:
    return zoneinfo.ZoneInfo(name)


def zone(name: str) -> dt.tzinfo:
    """Of an IANA name that is known; the box's own where it is empty."""
    if name:
        return _named(name)
    # What the C library makes of a zone without a name is its offset just now.
    return _own() or dt.datetime.now().astimezone().tzinfo or dt.timezone.utc


@lru_cache(maxsize=1)
def _own() -> dt.tzinfo | None:
    try:
        return tzlocal.get_localzone()
    # A zone set to something odd ("UTC+8"), or to two things at once, must not cost the box its recalls.
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        log.warning("this system's time zone has no IANA name (%s); set TZ to one, such as Asia/Shanghai", error)
        return None


def known(name: str) -> str:
    """The name; raises InvalidArgument for one of a zone that nobody knows."""
    try:
        if name:
            _named(name)
        return name
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument(
            "time_zone: no such zone; give an IANA name such as Asia/Shanghai, or none", field="time_zone"
        ) from None
