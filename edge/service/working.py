"""WorkingService: task state, and what was just said."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from edge.admission.attributes import check_value
from edge.config import Limits
from edge.errors import InvalidArgument
from edge.service import permissions
from edge.service.convert import timestamp
from edge.space import Space
from edge.spaces import Spaces
from edge.types import Micros, Scope, Turn, check_space
from edge.v1 import types_pb2, working_pb2, working_pb2_grpc
from edge.working.short import fit
from edge.working.states import States
from edge.working.store import no_state
from edge.working.values import State, Value

_DEFAULT_PAGE = 100
_DEFAULT_TOKENS = 2000
_DEFAULT_TURNS, _MOST_TURNS = 50, 1000


class WorkingService(working_pb2_grpc.WorkingServiceServicer):
    """Thin: permits, converts, hands over. Blocking work goes to `works`, the disk is the states' own thread's.

    `tokens` counts what the model's tokenizer makes of a text.
    """

    def __init__(
        self, spaces: Spaces, states: States, tokens: Callable[[str], int], limits: Limits, works: ThreadPoolExecutor
    ) -> None:
        self._spaces = spaces
        self._states = states
        self._tokens = tokens
        self._limits = limits
        self._works = works
        # Of one answer: below what a client takes by default, with as large a value beside it.
        self._answer_bytes = limits.message_bytes // 2

    async def PutState(self, request: working_pb2.PutStateRequest, context: Any) -> working_pb2.PutStateResponse:
        space = _permitted(request.space, Scope.WRITE)
        expected, ttl = _expected(request), _ttl(request)
        state = await asyncio.wrap_future(await self._run(self._put, space, request, expected, ttl))
        return working_pb2.PutStateResponse(state=_message(state))

    async def GetState(self, request: working_pb2.GetStateRequest, context: Any) -> working_pb2.GetStateResponse:
        space = _permitted(request.space, Scope.READ)
        state = await asyncio.wrap_future(self._states.get(space, request.key))
        if state is None:
            raise no_state()
        return working_pb2.GetStateResponse(state=_message(state))

    async def ListStates(self, request: working_pb2.ListStatesRequest, context: Any) -> working_pb2.ListStatesResponse:
        space = _permitted(request.space, Scope.READ)
        size = request.page_size or _DEFAULT_PAGE
        if not 1 <= size <= self._limits.page_size:
            raise InvalidArgument(f"page_size: must be 1 to {self._limits.page_size}", field="page_size")
        after = _after(request.page_token, space, request.prefix)
        states, more = await asyncio.wrap_future(
            self._states.page(space, request.prefix, after=after, count=size, room=self._answer_bytes)
        )
        return working_pb2.ListStatesResponse(
            states=map(_message, states),
            next_page_token=_token(space, request.prefix, states[-1].key) if more else "",
        )

    async def DeleteState(
        self, request: working_pb2.DeleteStateRequest, context: Any
    ) -> working_pb2.DeleteStateResponse:
        space = _permitted(request.space, Scope.WRITE)
        await asyncio.wrap_future(self._states.delete(space, request.key, expected=_expected(request)))
        return working_pb2.DeleteStateResponse()

    async def RecentTurns(
        self, request: working_pb2.RecentTurnsRequest, context: Any
    ) -> working_pb2.RecentTurnsResponse:
        name = _permitted(request.space, Scope.READ)
        if not request.session:
            raise InvalidArgument("session: is empty; name the session", field="session")
        limits = self._limits
        budget = (
            request.token_budget if request.HasField("token_budget") else min(_DEFAULT_TOKENS, limits.context_tokens)
        )
        if not 1 <= budget <= limits.context_tokens:
            raise InvalidArgument(f"token_budget: must be 1 to {limits.context_tokens}", field="token_budget")
        most = request.max_turns if request.HasField("max_turns") else _DEFAULT_TURNS
        if not 1 <= most <= _MOST_TURNS:
            raise InvalidArgument(f"max_turns: must be 1 to {_MOST_TURNS}", field="max_turns")
        space = self._spaces.get(name) or await self._run(self._spaces.find, name)
        if space is None:
            # As everywhere, one that holds nothing yet is simply empty.
            return working_pb2.RecentTurnsResponse()
        turns, truncated = await self._run(self._recent, space, request.source, request.session, most, budget)
        return working_pb2.RecentTurnsResponse(turns=[_turn(turn, name) for turn in turns], truncated=truncated)

    # In a thread.

    def _put(
        self, space: str, request: working_pb2.PutStateRequest, expected: int | None, ttl: Micros | None
    ) -> Future[State]:
        value = self._value(request)
        self._states.check(request.key, value, expected, ttl)
        # A space that has states is there, so that it can be listed and deleted.
        self._spaces.open(space)
        return self._states.put(space, request.key, value, expected=expected, ttl=ttl)

    def _value(self, request: working_pb2.PutStateRequest) -> Value:
        form = request.WhichOneof("value")
        if form is None:
            raise InvalidArgument("value: is missing; give a text, or one msgpack value", field="value")
        if form == "text":
            return request.text
        if len(request.msgpack) > self._limits.state_bytes:
            raise InvalidArgument(
                f"msgpack: has {len(request.msgpack)} bytes, more than {self._limits.state_bytes}; keep less",
                field="msgpack",
            )
        return check_value(request.msgpack, "msgpack")

    def _recent(self, space: Space, source: str, session: str, most: int, budget: int) -> tuple[list[Turn], bool]:
        return fit(
            space.recent_turns(source, session, most),
            budget=budget,
            most_bytes=self._answer_bytes,
            tokens=self._tokens,
        )

    async def _run(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._works, function, *arguments)


def _permitted(name: str, scope: Scope) -> str:
    """The space that is named, or the caller's own; raises PermissionDenied."""
    caller = permissions.current.get()
    return permissions.check_space_right(caller, scope, check_space(name or caller.home), "space")


def _expected(request: working_pb2.PutStateRequest | working_pb2.DeleteStateRequest) -> int | None:
    return request.expected_revision if request.HasField("expected_revision") else None


def _ttl(request: working_pb2.PutStateRequest) -> Micros | None:
    if not request.HasField("ttl"):
        return None
    seconds, nanos = request.ttl.seconds, request.ttl.nanos
    if not 0 <= nanos < 1_000_000_000:
        raise InvalidArgument("ttl: its nanos must be 0 to 999,999,999", field="ttl")
    # Up, so that what is above 0 stays so.
    return seconds * 1_000_000 + -(-nanos // 1000)


def _token(space: str, prefix: str, key: str) -> str:
    raw = json.dumps([space, prefix, key], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode("ascii")


def _after(token: str, space: str, prefix: str) -> str:
    """The key behind which the page begins. Raises InvalidArgument for a token of another list."""
    if not token:
        return ""
    try:
        of_space, of_prefix, key = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
        if (of_space, of_prefix) == (space, prefix) and isinstance(key, str):
            key.encode()
            return key
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidArgument("page_token: not one that this list gave; start again without it", field="page_token")


def _message(state: State) -> working_pb2.State:
    text = isinstance(state.value, str)
    return working_pb2.State(
        space=state.space,
        key=state.key,
        **{"text" if text else "msgpack": state.value},  # type: ignore[arg-type]  # the one of the two that it is
        revision=state.revision,
        updated_at=timestamp(state.updated_at),
        expires_at=timestamp(state.expires_at) if state.expires_at else None,
    )


def _turn(turn: Turn, space: str) -> types_pb2.Turn:
    return types_pb2.Turn(
        source=turn.source,
        session=turn.session,
        seq=turn.seq,
        role=turn.role,
        occurred_at=timestamp(turn.occurred_at),
        text=turn.text,
        tags=turn.tags,
        attributes=turn.attributes,
        space=space,
    )
