"""What a state is: its key, its value, and what of a value may touch the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from edge.errors import FailedPrecondition, InvalidArgument
from edge.types import Micros

KEY_BYTES = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

# One msgpack value as bytes, or a text.
Value = bytes | str


@dataclass(frozen=True, slots=True)
class State:
    """A state as it is kept. `expires_at` is 0 for never."""

    space: str
    key: str
    value: Value
    revision: int
    updated_at: Micros
    expires_at: Micros = 0


class RevisionConflict(FailedPrecondition):
    """Somebody else put or deleted the state first; `metadata` names the revision it is at, "0" for none."""

    # A test-and-set that failed: the caller reads again and decides anew (google.rpc.Code, on ABORTED).
    code = "ABORTED"
    reason = "REVISION"

    metadata: Mapping[str, str] = {}

    @classmethod
    def at(cls, present: int, expected: int) -> RevisionConflict:
        """`present` is 0 where there is no such state."""
        found = f"the state is at revision {present}" if present else "there is no such state"
        conflict = cls(
            f"expected_revision: {found}, and {expected} was expected; get it, and put again on top of that",
            field="expected_revision",
        )
        conflict.metadata = {"revision": str(present)}
        return conflict


def check_key(key: str, field: str = "key") -> str:
    """The key, if it has 1 to 256 bytes of UTF-8 and no control characters; else InvalidArgument."""
    if not key:
        raise InvalidArgument(f"{field}: is empty; name the state", field=field)
    return check_prefix(key, field)


def check_prefix(prefix: str, field: str = "prefix") -> str:
    """As check_key, for the beginning of keys, which may be empty."""
    try:
        size = len(prefix.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field}: has half of a surrogate pair; use whole characters", field=field) from None
    if size > KEY_BYTES:
        raise InvalidArgument(f"{field}: has {size} bytes of UTF-8, more than {KEY_BYTES}; shorten it", field=field)
    if _CONTROL.search(prefix):
        raise InvalidArgument(f"{field}: has a control character or line break; leave it out", field=field)
    return prefix


def redacted(value: Value, redact: Callable[[str], str]) -> Value:
    """The value with every string in it passed through `redact`; the very same bytes where that changes nothing.

    msgpack must have been checked to be one plain value (32 levels at most), for here it is decoded.
    """
    if isinstance(value, str):
        return redact(value)
    plain = msgpack.unpackb(value)
    clean = _redacted(plain, redact)
    packed: bytes = value if clean is plain else msgpack.packb(clean)
    return packed


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """The same object where nothing changed: equality would not tell 1 from True."""
    if isinstance(value, str):
        clean = redact(value)
        return value if clean == value else clean
    if isinstance(value, list):
        items = [_redacted(item, redact) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = [(_redacted(key, redact), _redacted(inner, redact)) for key, inner in value.items()]
        if all(key is old and inner is value[old] for (key, inner), old in zip(pairs, value, strict=True)):
            return value
        found: dict[str, Any] = {}
        for key, inner in pairs:
            # Two secrets used as keys have one placeholder: neither value may be lost for it.
            place, name = 1, key
            while name in found:
                place += 1
                name = f"{key} {place}"
            found[name] = inner
        return found
    return value
