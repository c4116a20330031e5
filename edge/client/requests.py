"""From Python's values to the wire's messages, refusing by name what cannot go there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, TypedDict, TypeVar

import msgpack
import tzlocal
from google.protobuf.timestamp_pb2 import Timestamp

from edge.errors import InvalidArgument
from edge.v1 import appliance_pb2, memory_pb2, types_pb2

# A datetime with a zone, or microseconds since 1970 UTC.
Moment = datetime | int

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DEPTHS = {"auto": memory_pb2.DEPTH_AUTO, "shallow": memory_pb2.DEPTH_SHALLOW, "deep": memory_pb2.DEPTH_DEEP}
_LEVELS = {
    "abstract": types_pb2.LEVEL_ABSTRACT,
    "overview": types_pb2.LEVEL_OVERVIEW,
    "detail": types_pb2.LEVEL_DETAIL,
}
_STATES = {
    "temporary": types_pb2.MEMORY_STATE_TEMPORARY,
    "candidate": types_pb2.MEMORY_STATE_CANDIDATE,
    "confirmed": types_pb2.MEMORY_STATE_CONFIRMED,
    "superseded": types_pb2.MEMORY_STATE_SUPERSEDED,
    "rejected": types_pb2.MEMORY_STATE_REJECTED,
}
_SCOPES = {"index": appliance_pb2.REBUILD_SCOPE_INDEX, "log": appliance_pb2.REBUILD_SCOPE_LOG}
_TURN_FIELDS = frozenset(types_pb2.Turn.DESCRIPTOR.fields_by_name)
_Enum = TypeVar("_Enum")


def string(value: object, field: str) -> str:
    """The text as protobuf takes it: surrogate pairs joined, lone surrogates as U+FFFD (cases 3)."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{field}: must be a string, not {type(value).__name__}", field=field)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def strings(values: object, field: str) -> list[str]:
    """Raises InvalidArgument for a single string too: its characters are never what is meant."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidArgument(f"{field}: must be a list of strings, not {type(values).__name__}", field=field)
    return [string(value, f"{field}[{index}]") for index, value in enumerate(values)]


def integer(value: object, field: str, bits: int) -> int:
    """A signed integer of so many bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{field}: must be a whole number, not {type(value).__name__}", field=field)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise InvalidArgument(f"{field}: {bits} bits are not enough for this number", field=field)
    return value


def timestamp(moment: object, field: str) -> Timestamp:
    """Raises InvalidArgument for a datetime without a zone and for microseconds beyond 64 bits."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidArgument(f"{field}: give the datetime a zone (tzinfo)", field=field)
        delta = moment - _EPOCH
        micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    else:
        micros = integer(moment, field, 64)
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def turn(
    text: str,
    *,
    source: str,
    session: str,
    seq: int,
    role: str = "user",
    occurred_at: Moment | None = None,
    tags: Sequence[str] = (),
    attributes: Mapping[str, Any] | bytes = b"",
    space: str = "",
) -> types_pb2.Turn:
    """One turn for `ingest`. occurred_at: None means the box's clock; attributes: a map, or its msgpack bytes.

    Raises InvalidArgument that names the field.
    """
    return types_pb2.Turn(
        source=string(source, "source"),
        session=string(session, "session"),
        seq=integer(seq, "seq", 64),
        role=string(role, "role"),
        occurred_at=None if occurred_at is None else timestamp(occurred_at, "occurred_at"),
        text=string(text, "text"),
        tags=strings(tags, "tags"),
        attributes=_attributes(attributes),
        space=string(space, "space"),
    )


def turn_of(value: types_pb2.Turn | Mapping[str, Any]) -> types_pb2.Turn:
    """A turn from a mapping of its fields; a message passes as it is."""
    if isinstance(value, types_pb2.Turn):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"turn: must be a Turn or a mapping, not {type(value).__name__}", field="turn")
    for key in value:
        if key not in _TURN_FIELDS:
            raise InvalidArgument(f"turn: unknown field; known are {', '.join(sorted(_TURN_FIELDS))}", field=str(key))
    for key in ("text", "source", "session", "seq"):
        if key not in value:
            raise InvalidArgument(f"{key}: is missing from the turn", field=key)
    return turn(**value)


def _attributes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"attributes: must be a map, not {type(value).__name__}", field="attributes")
    if not value:
        return b""
    try:
        packed: bytes = msgpack.packb(_clean(dict(value)))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"attributes: msgpack cannot hold this ({error})", field="attributes") from None
    return packed


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return string(value, "attributes")
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    return value


class Selection(TypedDict, total=False):
    """Which memories; every part given must hold. Times are half-open: since <= occurred_at < until."""

    since: Moment | None
    until: Moment | None
    tags: Sequence[str]
    kinds: Sequence[str]
    sources: Sequence[str]
    sessions: Sequence[str]
    include_archived: bool
    # "temporary", "candidate", "confirmed", "superseded", "rejected".
    states: Sequence[str]


def filter_message(which: Selection) -> types_pb2.Filter | None:
    """None when nothing is asked of it. Raises InvalidArgument that names the field."""
    since, until = which.get("since"), which.get("until")
    message = types_pb2.Filter(
        since=None if since is None else timestamp(since, "filter.since"),
        until=None if until is None else timestamp(until, "filter.until"),
        tags=strings(which.get("tags", ()), "filter.tags"),
        kinds=strings(which.get("kinds", ()), "filter.kinds"),
        sources=strings(which.get("sources", ()), "filter.sources"),
        sessions=strings(which.get("sessions", ()), "filter.sessions"),
        include_archived=which.get("include_archived", False),
        states=[_named(_STATES, state, "filter.states") for state in strings(which.get("states", ()), "filter.states")],
    )
    return message if message.ListFields() else None


def recall_message(
    query: str,
    *,
    spaces: Sequence[str] = (),
    depth: str = "auto",
    top_k: int | None = None,
    filter: types_pb2.Filter | None = None,
    level: str = "detail",
    with_context: bool = False,
    context_tokens: int | None = None,
    wait_for: Sequence[str] = (),
    asked_at: Moment | None = None,
    time_zone: str | None = None,
    only_relevant: bool = False,
    context_ids: bool = False,
) -> memory_pb2.RecallRequest:
    """Raises InvalidArgument that names the field."""
    return memory_pb2.RecallRequest(
        query=string(query, "query"),
        spaces=strings(spaces, "spaces"),
        depth=_named(_DEPTHS, depth, "depth"),
        top_k=None if top_k is None else integer(top_k, "top_k", 32),
        filter=filter,
        level=_named(_LEVELS, level, "level"),
        with_context=with_context,
        context_tokens=None if context_tokens is None else integer(context_tokens, "context_tokens", 32),
        wait_for=strings(wait_for, "wait_for"),
        asked_at=None if asked_at is None else timestamp(asked_at, "asked_at"),
        time_zone=own_zone() if time_zone is None else string(time_zone, "time_zone"),
        only_relevant=only_relevant,
        context_ids=context_ids,
    )


@lru_cache(maxsize=1)
def own_zone() -> str:
    """The IANA name of this machine's zone; empty where it has none, and then the box's own holds."""
    try:
        return tzlocal.get_localzone_name() or ""
    except (LookupError, ValueError, OSError):
        return ""


def level_number(level: str) -> types_pb2.Level.ValueType:
    """Raises InvalidArgument (field "level")."""
    return _named(_LEVELS, level, "level")


def scope_number(scope: str) -> appliance_pb2.RebuildScope.ValueType:
    """Raises InvalidArgument (field "scope")."""
    return _named(_SCOPES, scope, "scope")


def _named(names: Mapping[str, _Enum], name: str, field: str) -> _Enum:
    if name not in names:
        raise InvalidArgument(f"{field}: use one of {', '.join(names)}", field=field)
    return names[name]
