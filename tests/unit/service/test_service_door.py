"""The door: who comes in, how many, and how what went wrong inside is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2
from grpc_calls import reason_of

from edge.errors import EdgeError, Exhausted, InvalidArgument, NotFound, Unauthenticated, Unavailable, Unimplemented
from edge.service.intercept import Door
from edge.service.later import LATER

RECALL = "/edge.v1.MemoryService/Recall"
STREAM = "/edge.v1.MemoryService/RecallStream"
PAIR = "/edge.v1.PairingService/Pair"


class Context:
    """A call as grpc.aio shows it: abort raises, and what it was told is kept."""

    def __init__(self, peer: str = "unix:") -> None:
        self._peer = peer
        self.written: list[Any] = []
        self.code: grpc.StatusCode | None = None
        self.message = ""
        self.metadata: dict[str, Any] = {}

    def peer(self) -> str:
        return self._peer

    async def write(self, response: Any) -> None:
        self.written.append(response)

    async def abort(self, code: grpc.StatusCode, message: str, metadata: tuple[tuple[str, Any], ...]) -> None:
        self.code, self.message, self.metadata = code, message, dict(metadata)
        raise grpc.aio.AbortError


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
async def door() -> Door:
    return Door(no_auth=False, streams=2)


async def test_the_owner_on_the_socket_comes_in(door: Door) -> None:
    door.enter(RECALL, Context("unix:"), False)
    assert door.streams == 0


@pytest.mark.parametrize("peer", ["ipv4:127.0.0.1:5", "ipv6:[::1]:5", "", "vsock:1"])
async def test_nobody_else_comes_in_without_a_token(door: Door, peer: str) -> None:
    with pytest.raises(Unauthenticated):
        door.enter(RECALL, Context(peer), False)
    # Whoever is not let in is not told what there is either.
    with pytest.raises(Unauthenticated):
        door.enter(next(method for method in LATER if method != PAIR), Context(peer), False)
    with pytest.raises(Unimplemented):
        door.enter(PAIR, Context(peer), True)


async def test_without_auth_everyone_comes_in() -> None:
    Door(no_auth=True, streams=2).enter(RECALL, Context("ipv4:127.0.0.1:5"), False)


async def test_streams_are_counted_and_calls_are_not(door: Door) -> None:
    for _ in range(2):
        door.enter(STREAM, Context(), True)
    with pytest.raises(Exhausted) as caught:
        door.enter(STREAM, Context(), True)
    assert caught.value.retry_after
    door.enter(RECALL, Context(), False)
    door.leave(True)
    door.enter(STREAM, Context(), True)
    assert door.streams == 2


async def test_a_closing_door_turns_new_calls_away_and_waits_for_the_rest(door: Door) -> None:
    door.enter(RECALL, Context(), False)
    door.close()
    with pytest.raises(Unavailable):
        door.enter(RECALL, Context(), False)
    waiting = asyncio.create_task(door.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    door.leave(False)
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
