"""The door: who comes in, how many, and how what went wrong inside is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2
from grpc_calls import reason_of

from edge.errors import (
    EdgeError,
    Exhausted,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from edge.service import permissions
from edge.service.intercept import Door, Passage
from edge.service.later import LATER
from edge.types import Caller, Grant, Scope

RECALL = "/edge.v1.MemoryService/Recall"
STREAM = "/edge.v1.MemoryService/RecallStream"
INGEST = "/edge.v1.MemoryService/Ingest"
PAIR = "/edge.v1.PairingService/Pair"
DESK = Caller("desk", (Grant("private/desk", frozenset({Scope.READ})),), token="T-1")


class Context:
    """A call as grpc.aio shows it: abort raises, and what it was told is kept."""

    def __init__(self, peer: str = "unix:", secret: str = "") -> None:
        self._peer = peer
        self._sent = (("authorization", f"Bearer {secret}"),) if secret else ()
        self.written: list[Any] = []
        self.code: grpc.StatusCode | None = None
        self.message = ""
        self.metadata: dict[str, Any] = {}

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._sent

    async def write(self, response: Any) -> None:
        self.written.append(response)

    async def abort(self, code: grpc.StatusCode, message: str, metadata: tuple[tuple[str, Any], ...]) -> None:
        self.code, self.message, self.metadata = code, message, dict(metadata)
        raise grpc.aio.AbortError


class Tokens:
    """One token is good, until the test revokes it."""

    def __init__(self) -> None:
        self.watching: list[Callable[[], None]] = []

    def authenticate(self, secret: str) -> Caller | None:
        return DESK if secret == "good" else None

    def on_revoked(self, caller: Caller, ended: Callable[[], None]) -> Callable[[], None]:
        assert caller is DESK
        self.watching.append(ended)
        return lambda: self.watching.remove(ended)


class Details:
    def __init__(self, method: str) -> None:
        self.method = method


async def guarded(door: Door, method: str, handler: grpc.RpcMethodHandler[Any, Any] | None) -> Any:
    async def continuation(_: Any) -> Any:
        return handler

    return await door.intercept_service(continuation, Details(method))  # type: ignore[arg-type]  # all of it that the door reads


async def unary(door: Door, call: Callable[[Any, Any], Any], method: str = RECALL) -> Any:
    return await guarded(door, method, grpc.unary_unary_rpc_method_handler(call, bytes.decode, str.encode))


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


@pytest.fixture
async def door(tokens: Tokens) -> Door:
    return Door(tokens, no_auth=False, streams=2)


def coming(door: Door, method: str = RECALL, context: Context | None = None, *, stream: bool = False) -> Passage:
    return Passage(door, method, context or Context(), stream=stream)


async def test_the_owner_on_the_socket_comes_in(door: Door) -> None:
    door.enter(coming(door, RECALL, Context("unix:")))
    assert door.streams == 0


@pytest.mark.parametrize("peer", ["ipv4:127.0.0.1:5", "ipv6:[::1]:5", "", "vsock:1"])
async def test_nobody_else_comes_in_without_a_token(door: Door, peer: str) -> None:
    with pytest.raises(Unauthenticated):
        door.enter(coming(door, RECALL, Context(peer)))
    # Whoever is not let in is not told what there is either.
    with pytest.raises(Unauthenticated):
        door.enter(coming(door, next(iter(LATER)), Context(peer)))
    assert not door.enter(coming(door, PAIR, Context(peer), stream=True)).grants


async def test_without_auth_everyone_comes_in() -> None:
    door = Door(Tokens(), no_auth=True, streams=2)
    assert door.enter(coming(door, RECALL, Context("ipv4:127.0.0.1:5"))).owner


TCP = "ipv4:192.0.2.7:5"


async def test_a_good_token_says_who_calls(door: Door) -> None:
    assert door.enter(coming(door, RECALL, Context(TCP, "good"))) is DESK


@pytest.mark.parametrize("secret", ["bad", "good ness", "GOOD"])
async def test_a_token_that_stands_for_nobody_is_turned_away(door: Door, secret: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        door.enter(coming(door, RECALL, Context(TCP, secret)))
    assert caught.value.reason == "TOKEN_UNKNOWN"
    assert secret not in caught.value.message


async def test_a_token_opens_no_more_than_its_scopes(door: Door) -> None:
    with pytest.raises(PermissionDenied):
        door.enter(coming(door, INGEST, Context(TCP, "good"), stream=True))
    assert door.streams == 0


async def test_a_call_knows_its_caller(door: Door) -> None:
    async def call(request: str, _: Context) -> str:
        return permissions.current.get().name

    handler = await unary(door, call)
    assert await handler.unary_unary("", Context(TCP, "good")) == "desk"
    assert await handler.unary_unary("", Context()) == "owner"


async def test_a_revoked_token_ends_its_calls_and_no_others(door: Door, tokens: Tokens) -> None:
    waits = asyncio.Event()

    async def call(request: str, _: Context) -> str:
        await waits.wait()
        return "done"

    handler = await unary(door, call)
    theirs, ours = Context(TCP, "good"), Context()
    calls = [asyncio.ensure_future(handler.unary_unary("", context)) for context in (theirs, ours)]
    await asyncio.sleep(0)
    for revoked in [*tokens.watching]:
        revoked()
    with pytest.raises(grpc.aio.AbortError):
        await calls[0]
    assert theirs.code is grpc.StatusCode.UNAUTHENTICATED
    waits.set()
    assert await calls[1] == "done"
    assert not tokens.watching


async def test_streams_are_counted_and_calls_are_not(door: Door) -> None:
    first = coming(door, STREAM, stream=True)
    for passage in (first, coming(door, STREAM, stream=True)):
        door.enter(passage)
    with pytest.raises(Exhausted) as caught:
        door.enter(coming(door, STREAM, Context(), stream=True))
    assert caught.value.retry_after
    door.enter(coming(door))
    door.leave(first)
    door.enter(coming(door, STREAM, Context(), stream=True))
    assert door.streams == 2


WATCH = "/grpc.health.v1.Health/Watch"


async def test_strangers_who_watch_keep_nobody_from_pairing_nor_the_owner_from_anything(door: Door) -> None:
    for _ in range(64):
        door.enter(coming(door, WATCH, Context(TCP), stream=True))
    with pytest.raises(Exhausted):
        door.enter(coming(door, WATCH, Context(TCP), stream=True))
    pairing = coming(door, PAIR, Context(TCP), stream=True)
    door.enter(pairing)
    for _ in range(63):
        door.enter(coming(door, PAIR, Context(TCP), stream=True))
    with pytest.raises(Exhausted):
        door.enter(coming(door, PAIR, Context(TCP), stream=True))
    assert door.enter(coming(door, PAIR, Context("unix:"), stream=True)).owner
    assert door.enter(coming(door, STREAM, Context(TCP, "good"), stream=True)) is DESK
    assert door.streams == 130
    door.leave(pairing)
    assert door.streams == 129


async def test_a_closing_door_ends_streams_that_only_wait_and_lets_the_others_finish(door: Door) -> None:
    goes_on, heard = asyncio.Event(), asyncio.Event()

    async def answer(requests: AsyncIterator[str], context: Context) -> None:
        async for request in requests:
            heard.set()
            await goes_on.wait()
            await context.write(request)

    async def silent() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b"never"

    async def speaking() -> AsyncIterator[bytes]:
        yield b"said"

    make = grpc.stream_stream_rpc_method_handler(answer, bytes.decode, str.encode)
    handler = await guarded(door, STREAM, make)
    idle, busy = Context(), Context()
    calls = [
        asyncio.ensure_future(handler.stream_stream(requests, context))
        for requests, context in ((silent(), idle), (decoded(speaking()), busy))
    ]
    await heard.wait()
    door.close()
    with pytest.raises(grpc.aio.AbortError):
        await calls[0]
    assert idle.code is grpc.StatusCode.UNAVAILABLE
    goes_on.set()
    await calls[1]
    assert busy.written == ["said"]
    await door.drained()


async def decoded(messages: AsyncIterator[bytes]) -> AsyncIterator[str]:
    async for message in messages:
        yield message.decode()


async def test_a_closing_door_turns_new_calls_away_and_waits_for_the_rest(door: Door) -> None:
    passage = coming(door)
    door.enter(passage)
    door.close()
    with pytest.raises(Unavailable):
        door.enter(coming(door))
    waiting = asyncio.create_task(door.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    door.leave(passage)
    await waiting


async def test_an_answer_goes_out_as_it_is(door: Door) -> None:
    async def call(request: str, _: Context) -> str:
        return request + "!"

    handler = await unary(door, call)
    assert await handler.unary_unary("hello", Context()) == "hello!"


async def test_a_failure_of_ours_is_told_with_its_code_and_reason(door: Door) -> None:
    async def call(_: str, __: Context) -> str:
        raise NotFound("id: there is no such memory", field="id")

    context = Context()
    handler = await unary(door, call)
    with pytest.raises(grpc.aio.AbortError):
        await handler.unary_unary("x", context)
    assert (context.code, context.message) == (grpc.StatusCode.NOT_FOUND, "id: there is no such memory")
    assert reason_of(status_pb2.Status.FromString(context.metadata["grpc-status-details-bin"])) == "NOT_FOUND"


async def test_an_unforeseen_failure_tells_nobody_the_words_it_holds(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    async def call(_: str, __: Context) -> str:
        raise ValueError("the memory says: my password is 1234")

    context = Context()
    handler = await unary(door, call)
    with pytest.raises(grpc.aio.AbortError):
        await handler.unary_unary("x", context)
    assert context.code is grpc.StatusCode.INTERNAL
    assert "ValueError" in context.message
    assert "1234" not in context.message + caplog.text
    assert "ValueError" in caplog.text


async def test_bytes_that_are_no_message_are_the_caller_s_fault(door: Door) -> None:
    async def call(request: str, _: Context) -> str:
        return request

    handler = await unary(door, call)
    context = Context()
    with pytest.raises(grpc.aio.AbortError):
        await handler.unary_unary(handler.request_deserializer(b"\xff"), context)
    assert context.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_bad_message_on_a_stream_is_met_in_its_place(door: Door) -> None:
    seen: list[str] = []

    async def call(requests: AsyncIterator[str], context: Context) -> None:
        async for request in requests:
            seen.append(request)
            await context.write(request)

    handler = await guarded(
        door,
        STREAM,
        grpc.stream_stream_rpc_method_handler(call, bytes.decode, str.encode),  # type: ignore[arg-type]  # an aio handler
    )

    async def raw() -> AsyncIterator[Any]:
        for message in (b"a", b"\xff", b"b"):
            yield handler.request_deserializer(message)

    context = Context()
    with pytest.raises(grpc.aio.AbortError):
        await handler.stream_stream(raw(), context)
    assert (seen, context.written, context.code) == (["a"], ["a"], grpc.StatusCode.INVALID_ARGUMENT)
    assert door.streams == 0


@pytest.mark.parametrize(
    "error", [InvalidArgument("no"), RuntimeError("no"), asyncio.CancelledError(), EdgeError("no")]
)
async def test_whatever_ends_a_stream_it_is_counted_out(door: Door, error: BaseException) -> None:
    async def call(_: AsyncIterator[str], __: Context) -> None:
        assert door.streams == 1
        raise error

    async def nothing() -> AsyncIterator[Any]:
        return
        yield

    handler = await guarded(
        door,
        STREAM,
        grpc.stream_stream_rpc_method_handler(call, bytes.decode, str.encode),  # type: ignore[arg-type]  # an aio handler
    )
    with pytest.raises((grpc.aio.AbortError, asyncio.CancelledError)):
        await handler.stream_stream(nothing(), Context())
    assert door.streams == 0
    await door.drained()


async def test_a_method_that_nobody_has_stays_so(door: Door) -> None:
    assert await guarded(door, "/edge.v1.MemoryService/Nothing", None) is None


async def test_health_and_reflection_pass_untouched(door: Door) -> None:
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    assert await guarded(door, "/grpc.health.v1.Health/Check", handler) is handler
