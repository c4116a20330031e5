"""How things look on a terminal: nothing that a memory holds can move the cursor or turn the text around."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timezone
from typing import Any

# C0 and C1 controls, line and paragraph separators, and what turns the direction of writing (cases 10; Trojan Source,
# CVE-2021-42574). Letters of right-to-left scripts are none of these.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNSAFE_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BAR = 10


def one_line(text: str) -> str:
    """The text in one line, every control and bidi character as its escape."""
    return _UNSAFE.sub(_escape, text)


def lines(text: str, indent: str = "") -> str:
    """The text with its line breaks and tabs, every other control and bidi character as its escape."""
    return "\n".join(indent + _UNSAFE_BUT_LINES.sub(_escape, line) for line in text.split("\n"))


def _escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match.group())
    return named or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")


def as_json(value: Any) -> str:
    """The exact value; what `one_line` escapes is a JSON escape here, so it reads back as it was."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def bar(share: float) -> str:
    """A share of 0 to 1 as ten blocks."""
    full, empty = ("█", "░") if (sys.stdout.encoding or "").lower().startswith("utf") else ("#", ".")
    count = round(min(1.0, max(0.0, share)) * _BAR)
    return full * count + empty * (_BAR - count)


def rfc3339(stamp: Any) -> str:
    """A Timestamp as RFC 3339 in UTC, microseconds only where there are any."""
    micros = stamp.seconds * 1_000_000 + stamp.nanos // 1000
    try:
        moment = _EPOCH.fromtimestamp(micros // 1_000_000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return ""
    fraction = f".{micros % 1_000_000:06d}" if micros % 1_000_000 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def local(stamp: Any) -> str:
    """A Timestamp for a reader: minutes, in this machine's zone."""
    try:
        return f"{_EPOCH.fromtimestamp(stamp.seconds, timezone.utc).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "?"


def seconds(duration: Any) -> float:
    """A Duration in seconds."""
    return float(duration.seconds + duration.nanos / 1e9)


def millis(took: float) -> str:
    """Seconds, for a reader."""
    return f"{took * 1000:.1f} ms"


def counted(count: int, one: str, many: str) -> str:
    """The number with the word that goes with it."""
    return f"{count:,} {one if count == 1 else many}"


def size(count: float) -> str:
    """Bytes, for a reader."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def table(rows: list[tuple[str, ...]]) -> str:
    """Columns under their heads: the first to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numeric = [all(re.fullmatch(r"[\d,.\-+ ]*", row[column]) for row in rows[1:]) for column in range(len(widths))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    )
