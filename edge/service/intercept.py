"""What every call passes through: who may, how many at once, and how failures are told."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc

from edge.errors import EdgeError, Exhausted, InvalidArgument, Unauthenticated, Unavailable, Unimplemented
from edge.service import permissions
from edge.service.convert import trailing
from edge.service.later import LATER
from edge.types import OWNER, Caller

logger = logging.getLogger(__name__)

_BEARER = "bearer "
# Streams at once of those who need no token, of each service apart: who watches the health keeps nobody from pairing.
_STRANGERS = 64


def _nothing() -> None:
    """What ends no watch."""


class Tokens(Protocol):
    """Whose a token's secret is, None for nobody's; and when it is good no longer (edge.lan.tokens)."""

    def authenticate(self, secret: str) -> Caller | None: ...

    def on_revoked(self, caller: Caller, ended: Callable[[], None]) -> Callable[[], None]: ...


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

    def __init__(self, tokens: Tokens, *, no_auth: bool, streams: int) -> None:
        self._tokens = tokens
        self._no_auth = no_auth
        self._limit = streams
        self._closing = False
        # Open streams, by the service that strangers use; under "" those of all whom the box knows.
        self._streams: Counter[str] = Counter()
        self._inside: set[Passage] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def streams(self) -> int:
        """Open now, of everybody."""
        return self._streams.total()

    def close(self) -> None:
        """From now on, calls are turned away, and streams on which nothing is under way end: a box must not wait for
        their next message.
        """
        self._closing = True
        for passage in self._inside:
            passage.end_if_idle()

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
        method = handler_call_details.method
        takes_many, gives_many = bool(handler.request_streaming), bool(handler.response_streaming)
        # What is asked of health once is answered to the end.
        if not method.startswith("/edge.v1.") and not gives_many:
            return handler
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
            async with Passage(self, method, context, stream=streamed) as passage:
                return await inner(_requests(request, passage) if streamed else _decoded(request), context)

        return call

    def _many(self, method: str, inner: Any, streamed: bool) -> Any:
        async def call(request: Any, context: Any) -> None:
            async with Passage(self, method, context, stream=True) as passage:
                if not streamed:
                    passage.idles()
                responses = inner(_requests(request, passage) if streamed else _decoded(request), context)
                if hasattr(responses, "__aiter__"):
                    async for response in responses:
                        await context.write(response)
                else:
                    await responses

        return call

    def enter(self, passage: Passage) -> Caller:
        """Who comes in. Raises what a caller is turned away with."""
        if self._closing:
            raise _stopping()
        method, stream = passage.method, passage.stream
        caller = self._caller(method, passage.context)
        if not passage.open_to_all:
            permissions.check_method(caller, method)
        if method in LATER:
            raise Unimplemented(f"{method.rpartition('/')[2]} is not built yet: {LATER[method]}")
        # Counted apart, so that whoever needs no token takes nothing from those who have one.
        passage.group = method.rpartition("/")[0] if caller is permissions.NOBODY else ""
        limit = _STRANGERS if passage.group else self._limit
        if stream and self._streams[passage.group] >= limit:
            raise Exhausted(f"the box already serves {limit} streams; close idle ones", retry_after=5.0)
        self._streams[passage.group] += stream
        self._inside.add(passage)
        self._idle.clear()
        return caller

    def watch(self, caller: Caller, revoked: Callable[[], None]) -> Callable[[], None]:
        """`revoked` runs on the event loop, once, when the caller's token is revoked; returns how to stop that."""
        if not caller.token:
            return _nothing
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.call_soon_threadsafe(revoked)

        return self._tokens.on_revoked(caller, ended)

    def leave(self, passage: Passage) -> None:
        """Once for each that came in."""
        self._streams[passage.group] -= passage.stream
        self._inside.discard(passage)
        if not self._inside:
            self._idle.set()

    def _caller(self, method: str, context: Any) -> Caller:
        if self._no_auth or context.peer().startswith("unix"):
            return OWNER
        if method.startswith(permissions.OPEN):
            return permissions.NOBODY
        given = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        if len(given) > 1:
            raise Unauthenticated("authorization: it came more than once; send one token with a call")
        if given and isinstance(given[0], str) and given[0].lower().startswith(_BEARER):
            caller = self._tokens.authenticate(given[0][len(_BEARER) :].strip())
            if caller is not None:
                return caller
            raise Unauthenticated(
                "this token is unknown or was revoked; check EDGE_TOKEN if it is set, else pair again with: edge pair",
                reason="TOKEN_UNKNOWN",
            )
        raise Unauthenticated(
            "a token is needed on TCP: pair this machine with `edge pair`, set EDGE_TOKEN, talk to the unix socket on "
            "the box itself, or start the box with --no-auth on a loopback address"
        )


async def _requests(incoming: Any, passage: Passage) -> Any:
    """The messages of a stream, decoded. Raises Unavailable when the box stops while the next is waited for."""
    try:
        passage.idles()
        async for request in incoming:
            passage.works()
            yield _decoded(request)
            passage.idles()
    except asyncio.CancelledError:
        if passage.stopping:
            raise _stopping() from None
        raise
    finally:
        passage.works()


def _stopping() -> Unavailable:
    return Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0)


class Passage:
    """One call from enter to leave; turns an EdgeError into a rich status, anything else into a plain INTERNAL."""

    def __init__(self, door: Door, method: str, context: Any, *, stream: bool) -> None:
        self.method = method
        self.context = context
        self.stream = stream
        self.open_to_all = method.startswith(permissions.OPEN)
        # What its stream is counted under; the door knows once it knows who calls.
        self.group = ""
        self._door = door
        self._task: asyncio.Task[Any] | None = None
        self._unwatch = _nothing
        self._revoked = False
        # The task that only waits for the caller to say more, or for time to pass.
        self._waiting: asyncio.Task[Any] | None = None
        self.stopping = False

    def idles(self) -> None:
        """From now on this task may be broken off without harm."""
        self._waiting = asyncio.current_task()

    def works(self) -> None:
        self._waiting = None

    def end_if_idle(self) -> None:
        if self._waiting is not None:
            self.stopping = True
            self._waiting.cancel()

    def _revoke(self) -> None:
        self._revoked = True
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> Passage:
        try:
            caller = self._door.enter(self)
        except EdgeError as error:
            await _abort(self.context, error)
        else:
            self._task = asyncio.current_task()
            permissions.current.set(caller)
            self._unwatch = self._door.watch(caller, self._revoke)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if self._task is not None:
            self._unwatch()
            self._door.leave(self)
        if self._revoked and isinstance(error, asyncio.CancelledError):
            await _abort(
                self.context,
                Unauthenticated("this token was just revoked; pair again with: edge pair", reason="TOKEN_UNKNOWN"),
            )
        if self.stopping and isinstance(error, asyncio.CancelledError):
            await _abort(self.context, _stopping())
        if isinstance(error, EdgeError):
            await _abort(self.context, error)
        if isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError):
            # The text of an unforeseen error may hold a memory's words: it goes to neither the log nor the caller.
            logger.error("%s failed: %s at %s", self.method, type(error).__name__, _place(trace))
            await _abort(self.context, EdgeError(f"the box failed inside ({type(error).__name__}); see its log"))
        return False


async def _abort(context: Any, error: EdgeError) -> None:
    code, message, metadata = trailing(error)
    await context.abort(code, message, metadata)


def _place(trace: Any) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else "?"
