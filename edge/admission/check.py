"""What a turn or a query must be before the box takes it in.

Sizes are judged first, so that nothing is built from what is too large. An error names the field to change, never
its content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from edge.admission.attributes import check_attributes
from edge.admission.visible import has_visible
from edge.config import Limits
from edge.errors import InvalidArgument
from edge.types import DEFAULT_KIND, MemoryState, Micros, Turn, check_kind

MIN_TIME: Micros = 0
# 2100-12-31T23:59:59.999999Z: the last instant of the years that the wire allows.
MAX_TIME: Micros = 4_133_980_800_000_000 - 1
MAX_SEQ = 2**63 - 1
MAX_WEIGHT = 10.0

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_turn(
    *,
    source: object,
    session: object,
    seq: object,
    role: object,
    occurred_at: object,
    text: object,
    tags: object = (),
    attributes: object = b"",
    limits: Limits,
    kind: object = DEFAULT_KIND,
    state: MemoryState = MemoryState.TEMPORARY,
    weight: object = 1.0,
) -> Turn:
    """The turn, checked and whole. Raises InvalidArgument that names the field: `text`, `tags[3]`, `attributes`, …

    `occurred_at` is in microseconds, 1970 to 2100; one that lies ahead of the box's clock is kept (devices' clocks
    are wrong), and counts as now when memories are ranked. `source` and `session` must not be empty; `role` may be
    (not every source has roles). Tags that repeat collapse to the first. A NUL in the text is refused: what follows
    it would be lost in too many tools that read the data directory.
    """
    words = check_text(text, limits.text_bytes, "text")
    if "\0" in words:
        raise InvalidArgument("text: has a NUL character; send the text without it", field="text")
    return Turn(
        source=_name(source, limits, "source"),
        session=_name(session, limits, "session"),
        seq=_whole(seq, 0, MAX_SEQ, "seq"),
        role=_name(role, limits, "role", may_be_empty=True),
        occurred_at=check_time(occurred_at),
        text=words,
        tags=check_tags(tags, limits),
        attributes=_attributes(attributes, limits),
        kind=check_kind(_string(kind, "kind")),
        state=state,
        weight=check_weight(weight),
    )


def check_query(query: object, limits: Limits) -> str:
    """The query, unchanged. Raises InvalidArgument (field `query`) when it is empty, invisible or too long."""
    return check_text(query, limits.query_bytes, "query")


def check_text(text: object, limit: int, field: str) -> str:
    """The text, unchanged, if it is at most `limit` bytes of UTF-8 and has a visible character."""
    words = _string(text, field)
    _size(words, limit, field)
    if not has_visible(words):
        raise InvalidArgument(f"{field}: is empty, or has nothing visible in it; send some text", field=field)
    return words


def check_time(value: object, field: str = "occurred_at") -> Micros:
    """Microseconds since 1970-01-01 UTC, until the end of 2100."""
    if isinstance(value, bool) or not isinstance(value, int) or not MIN_TIME <= value <= MAX_TIME:
        raise InvalidArgument(
            f"{field}: must be a time in the years 1970 to 2100, UTC; check the unit (a Timestamp counts seconds)",
            field=field,
        )
    return value


def check_weight(value: object, field: str = "weight") -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_WEIGHT:
        raise InvalidArgument(f"{field}: must be a number from 0 to 10", field=field)
    assert math.isfinite(value)  # NaN and infinity fail the comparison above
    return float(value)


def check_tags(tags: object, limits: Limits, field: str = "tags") -> tuple[str, ...]:
    """For filters as well: at most `limits.tags` tags, each one non-empty, short and without control characters."""
    if isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable):
        raise InvalidArgument(f"{field}: must be a list of strings", field=field)
    kept: dict[str, None] = {}
    for at, tag in enumerate(tags):
        if at >= limits.tags:
            raise InvalidArgument(f"{field}: more than {limits.tags}; send fewer", field=field)
        name = f"{field}[{at}]"
        word = _string(tag, name)
        _line(word, limits.tag_bytes, name)
        if not has_visible(word):
            raise InvalidArgument(f"{name}: is empty; leave it out", field=name)
        kept[word] = None
    return tuple(kept)


def _attributes(raw: object, limits: Limits) -> bytes:
    if not isinstance(raw, (bytes, bytearray)):
        raise InvalidArgument("attributes: must be bytes of one msgpack map", field="attributes")
    if len(raw) > limits.attributes_bytes:
        raise InvalidArgument(
            f"attributes: {len(raw)} bytes, more than {limits.attributes_bytes}; send less", field="attributes"
        )
    return check_attributes(bytes(raw))


def _name(value: object, limits: Limits, field: str, *, may_be_empty: bool = False) -> str:
    name = _string(value, field)
    _line(name, limits.name_bytes, field)
    if not has_visible(name) and not (may_be_empty and not name):
        raise InvalidArgument(f"{field}: is empty, or has nothing visible in it; name the {field}", field=field)
    return name


def _string(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{field}: must be a string", field=field)
    return value


def _line(value: str, limit: int, field: str) -> None:
    _size(value, limit, field)
    if _CONTROL.search(value):
        raise InvalidArgument(f"{field}: has a control character or line break; leave it out", field=field)


def _size(value: str, limit: int, field: str) -> None:
    # No encoding is shorter than the character count: what is far too long is refused before it is encoded.
    size = len(value)
    if size <= limit and not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise InvalidArgument(
                f"{field}: has half of a surrogate pair, which is no character; send whole characters", field=field
            ) from None
    if size > limit:
        raise InvalidArgument(f"{field}: longer than {limit} bytes of UTF-8; send it in parts", field=field)


def _whole(value: object, low: int, high: int, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgument(f"{field}: must be a whole number from {low} to {high}", field=field)
    return value
