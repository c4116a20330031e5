"""What every call passes through: who may, how many at once, and how failures are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from edge.errors import EdgeError, Exhausted, InvalidArgument, Unauthenticated, Unavailable, Unimplemented
from edge.service.convert import trailing
from edge.service.later import LATER

logger = logging.getLogger(__name__)

_OPEN = ("/grpc.health.v1.", "/grpc.reflection.", "/edge.v1.PairingService/")


class _Undecodable:
    """Stands in for a message whose bytes are not of its type, such as text that is not UTF-8."""


def _tolerant(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def safe(data: bytes) -> Any:
        try:
            return deserialize(data)
        except Exception:  # noqa: BLE001  # protobuf's runtimes raise different types; the caller hears of it as a status
            return _Undecodable()

    return safe


def _decoded(request: Any) -> Any:
    if isinstance(request, _Undecodable):
        raise InvalidArgument("the message cannot be decoded; send text fields as valid UTF-8", field="request")
    return request


class Door(grpc.aio.ServerInterceptor):
    """Counts calls in flight (aio's own limit cannot be trusted: grpc#30424), checks the caller, tells errors richly.

    On the unix socket the caller is the owner. On TCP a token is needed, unless the box was started with --no-auth.
    """

    def __init__(self, *, no_auth: bool, streams: int) -> None:
        self._no_auth = no_auth
        self._limit = streams
        self._closing = False
        self.streams = 0
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def close(self) -> None:
        """From now on, calls are turned away."""
        self._closing = True

    async def drained(self) -> None:
        """When no call is in flight; server.stop() does not wait for handlers it aborted."""
        await self._idle.wait()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        # health and reflection give their handlers already fit for aio; only ours need guarding.
        method = handler_call_details.method
        if not method.startswith("/edge.v1."):
            return handler
        takes_many, gives_many = bool(handler.request_streaming), bool(handler.response_streaming)
        inner = {
            (False, False): handler.unary_unary,
            (False, True): handler.unary_stream,
            (True, False): handler.stream_unary,
            (True, True): handler.stream_stream,
        }[takes_many, gives_many]
        make, guard = {
            (False, False): (grpc.unary_unary_rpc_method_handler, self._one),
            (False, True): (grpc.unary_stream_rpc_method_handler, self._many),
            (True, False): (grpc.stream_unary_rpc_method_handler, self._one),
            (True, True): (grpc.stream_stream_rpc_method_handler, self._many),
        }[takes_many, gives_many]
        guarded = guard(method, inner, takes_many)
        return make(guarded, _tolerant(handler.request_deserializer), handler.response_serializer)

    def _one(self, method: str, inner: Any, streamed: bool) -> Any:
        async def call(request: Any, context: Any) -> Any:
            async with _Passage(self, method, context, stream=streamed):
                return await inner(_requests(request) if streamed else _decoded(request), context)

        return call

    def _many(self, method: str, inner: Any, streamed: bool) -> Any:
        async def call(request: Any, context: Any) -> None:
            async with _Passage(self, method, context, stream=True):
                responses = inner(_requests(request) if streamed else _decoded(request), context)
                if hasattr(responses, "__aiter__"):
                    async for response in responses:
                        await context.write(response)
                else:
                    await responses

        return call

    def enter(self, method: str, context: Any, stream: bool) -> None:
        if self._closing:
            raise Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0)
        if not self._no_auth and not method.startswith(_OPEN) and not context.peer().startswith("unix"):
            raise Unauthenticated(
                "a token is needed on TCP; talk to the unix socket on the box itself, "
                "or start the box with --no-auth on a loopback address"
            )
        if method in LATER:
            raise Unimplemented(f"{method.rpartition('/')[2]} is not built yet: {LATER[method]}")
        if stream and self.streams >= self._limit:
            raise Exhausted(f"the box already serves {self._limit} streams; close idle ones", retry_after=5.0)
        self.streams += stream
        self._in_flight += 1
        self._idle.clear()

    def leave(self, stream: bool) -> None:
        self.streams -= stream
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()


async def _requests(incoming: Any) -> Any:
    async for request in incoming:
        yield _decoded(request)


class _Passage:
    """One call from enter to leave; turns an EdgeError into a rich status, anything else into a plain INTERNAL."""

    def __init__(self, door: Door, method: str, context: Any, *, stream: bool) -> None:
        self._door = door
        self._method = method
        self._context = context
        self._stream = stream
        self._entered = False

    async def __aenter__(self) -> None:
        try:
            self._door.enter(self._method, self._context, self._stream)
        except EdgeError as error:
            await _abort(self._context, error)
        self._entered = True

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if self._entered:
            self._door.leave(self._stream)
        if isinstance(error, EdgeError):
            await _abort(self._context, error)
        if isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError):
            # The text of an unforeseen error may hold a memory's words: it goes to neither the log nor the caller.
            logger.error("%s failed: %s at %s", self._method, type(error).__name__, _place(trace))
            await _abort(self._context, EdgeError(f"the box failed inside ({type(error).__name__}); see its log"))
        return False


async def _abort(context: Any, error: EdgeError) -> None:
    code, message, metadata = trailing(error)
    await context.abort(code, message, metadata)


def _place(trace: Any) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else "?"
