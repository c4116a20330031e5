"""Task state, and what was just said. A part of AsyncClient."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgpack
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from edge.client.line import Line
from edge.client.requests import integer, string
from edge.errors import InvalidArgument
from edge.v1 import working_pb2
from edge.v1.working_pb2 import RecentTurnsResponse


@dataclass(frozen=True, slots=True)
class State:
    """A task's state. `value` is as it was put: a str, or what msgpack holds (tuples come back as lists)."""

    space: str
    key: str
    value: Any
    revision: int
    updated_at: Timestamp
    # None for never.
    expires_at: Timestamp | None = None


class Working:
    """What a token needs for these is WRITE of the space to put and delete, READ for the rest.

    `space`: empty for the caller's own, which is public for the owner and private/<its name> for a client.
    """

    _line: Line

    async def put_state(
        self,
        key: str,
        value: Any,
        *,
        space: str = "",
        expected_revision: int | None = None,
        ttl: timedelta | float | None = None,
        timeout: float | None = None,
    ) -> State:
        """Keeps a value under a key; on the disk when it returns.

        value: a str is kept as text; a mapping with string keys, a list, a number, a bool, None or bytes as msgpack.
        expected_revision: what it must be at, 0 for none; else FailedPrecondition with the reason REVISION. ttl: a
        timedelta or seconds, after which it is gone.
        """
        request = working_pb2.PutStateRequest(
            space=string(space, "space"),
            key=string(key, "key"),
            expected_revision=_revision(expected_revision),
            ttl=None if ttl is None else _duration(ttl),
        )
        if isinstance(value, str):
            request.text = string(value, "value")
        else:
            request.msgpack = _packed(value)
        response: working_pb2.PutStateResponse = await self._line.call(
            "working", "PutState", request, timeout, again=False
        )
        return _state(response.state)

    async def get_state(self, key: str, *, space: str = "", timeout: float | None = None) -> State:
        """Raises NotFound."""
        request = working_pb2.GetStateRequest(space=string(space, "space"), key=string(key, "key"))
        response: working_pb2.GetStateResponse = await self._line.call(
            "working", "GetState", request, timeout, again=True
        )
        return _state(response.state)

    async def list_states(
        self, prefix: str = "", *, space: str = "", page_size: int = 100, timeout: float | None = None
    ) -> AsyncIterator[State]:
        """Those whose key begins with `prefix`, by key, page after page as they are taken; the timeout is for one."""
        request = working_pb2.ListStatesRequest(
            space=string(space, "space"),
            prefix=string(prefix, "prefix"),
            page_size=integer(page_size, "page_size", 32),
        )
        while True:
            response: working_pb2.ListStatesResponse = await self._line.call(
                "working", "ListStates", request, timeout, again=True
            )
            for state in response.states:
                yield _state(state)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def delete_state(
        self, key: str, *, space: str = "", expected_revision: int | None = None, timeout: float | None = None
    ) -> None:
        """Erases it: nothing of it is left on the box's disk. Raises NotFound, FailedPrecondition as put_state."""
        request = working_pb2.DeleteStateRequest(
            space=string(space, "space"), key=string(key, "key"), expected_revision=_revision(expected_revision)
        )
        await self._line.call("working", "DeleteState", request, timeout, again=False)

    async def recent_turns(
        self,
        session: str,
        source: str = "",
        *,
        space: str = "",
        token_budget: int | None = None,
        max_turns: int | None = None,
        timeout: float | None = None,
    ) -> RecentTurnsResponse:
        """The last turns of a session as they were said, `turns` with the oldest first; source: empty for every one.

        Whole turns, as many as have token_budget tokens (2,000) and max_turns (50). `truncated`: already the last is
        more than that, and the one turn is its end.
        """
        request = working_pb2.RecentTurnsRequest(
            space=string(space, "space"),
            source=string(source, "source"),
            session=string(session, "session"),
            token_budget=None if token_budget is None else integer(token_budget, "token_budget", 32),
            max_turns=None if max_turns is None else integer(max_turns, "max_turns", 32),
        )
        response: RecentTurnsResponse = await self._line.call("working", "RecentTurns", request, timeout, again=True)
        return response


def _state(message: working_pb2.State) -> State:
    packed = message.WhichOneof("value") == "msgpack"
    return State(
        message.space,
        message.key,
        msgpack.unpackb(message.msgpack) if packed else message.text,
        message.revision,
        message.updated_at,
        message.expires_at if message.HasField("expires_at") else None,
    )


def _revision(expected: int | None) -> int | None:
    return None if expected is None else integer(expected, "expected_revision", 64)


def _duration(ttl: timedelta | float) -> Duration:
    try:
        micros = round((ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)) / timedelta(microseconds=1))
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument("ttl: must be a timedelta, or seconds, of at most 10 years", field="ttl") from None
    return Duration(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def _packed(value: Any) -> bytes:
    try:
        packed: bytes = msgpack.packb(_clean(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArgument(f"value: msgpack cannot hold this ({error})", field="value") from None
    return packed


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return string(value, "value")
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(inner) for inner in value]
    return value
