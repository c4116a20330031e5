"""PairingService: a client with the box's one-time code gets its token. Open to everyone, so each step is bounded."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from edge.errors import DeadlineExceeded, Exhausted, FailedPrecondition, InvalidArgument
from edge.lan.interfaces import network_of
from edge.service import permissions
from edge.service.convert import duration
from edge.v1 import pairing_pb2, pairing_pb2_grpc

if TYPE_CHECKING:
    # Brings cryptography, which a box that serves nobody else need not load.
    from edge.lan.pairing import Pairings

# A client asks its person for the code before it calls, so it has its first message ready; what is left is arithmetic.
_START_SECONDS = 3.0
_STEP_SECONDS = 15.0
_AT_ONCE = 8
# From one address: one device alone does not keep all others from pairing.
_AT_ONCE_FROM_ONE = 2


class PairingService(pairing_pb2_grpc.PairingServiceServicer):
    """The owner, on the socket, starts with an empty element and gets a fresh code; anybody else starts a pairing.

    `pairings` is None where there is no certificate to bind a pairing to. On a listener without TLS there is one that
    the client cannot see: a pairing is refused there, and costs no attempt.
    """

    def __init__(self, pairings: Pairings | None, pool: ThreadPoolExecutor) -> None:
        self._pairings = pairings
        self._pool = pool
        # A pairing each, by the network it comes from.
        self._under_way: list[str] = []

    async def Pair(self, requests: AsyncIterator[pairing_pb2.PairRequest], context: Any) -> None:
        if permissions.current.get().owner:
            # Not counted: nobody keeps the owner from getting a code.
            await self._pair(requests, context)
            return
        network = network_of(host_of(context.peer()))
        if len(self._under_way) >= _AT_ONCE or self._under_way.count(network) >= _AT_ONCE_FROM_ONE:
            raise Exhausted("other clients are pairing just now; try again in a few seconds", retry_after=5.0)
        self._under_way.append(network)
        try:
            await self._pair(requests, context)
        finally:
            self._under_way.remove(network)

    async def _pair(self, requests: AsyncIterator[pairing_pb2.PairRequest], context: Any) -> None:
        start = (await _next(requests, "start", _START_SECONDS)).start
        pairings = self._pairings
        if pairings is None:
            raise FailedPrecondition(
                "this box serves no other machine, so there is nothing to pair; start it with: edge serve --lan",
                reason="NOT_ON_THE_LAN",
            )
        if not start.element and permissions.current.get().owner:
            code, seconds = pairings.show(start.name)
            shown = pairing_pb2.PairCode(
                code=code, lives=duration(seconds), fingerprint=pairings.fingerprint, words=" ".join(pairings.words)
            )
            await context.write(pairing_pb2.PairResponse(code=shown))
            return
        if not _encrypted(context):
            raise FailedPrecondition(
                "a pairing is bound to the certificate that the client sees, and without TLS it sees none; use the "
                "address that `edge discover` lists",
                reason="NO_CERTIFICATE",
            )
        attempt = pairings.attempt(host_of(context.peer()))
        element = await self._run(attempt.start, start.name, start.element)
        await context.write(pairing_pb2.PairResponse(element=pairing_pb2.PairElement(element=element)))
        confirm = (await _next(requests, "confirm", _STEP_SECONDS)).confirm
        mac, sealed = await self._run(attempt.confirm, confirm.mac)
        await context.write(pairing_pb2.PairResponse(grant=pairing_pb2.PairGrant(mac=mac, sealed=sealed)))

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


async def _next(requests: AsyncIterator[pairing_pb2.PairRequest], step: str, seconds: float) -> pairing_pb2.PairRequest:
    """The message of this step. Raises InvalidArgument for another or none, DeadlineExceeded for one that is late."""
    try:
        request = await asyncio.wait_for(_following(requests), seconds)
    except asyncio.TimeoutError:
        raise DeadlineExceeded("pairing: no message came in time; begin anew with: edge pair") from None
    except StopAsyncIteration:
        raise InvalidArgument(f"{step}: the stream ended before it; begin anew with: edge pair", field=step) from None
    if request.WhichOneof("step") != step:
        raise InvalidArgument(f"{step}: expected now, and another message came; begin anew", field=step)
    return request


async def _following(requests: AsyncIterator[pairing_pb2.PairRequest]) -> pairing_pb2.PairRequest:
    # wait_for wants a coroutine; __anext__ of grpc's iterator is only awaitable.
    return await requests.__anext__()


def _encrypted(context: Any) -> bool:
    return b"ssl" in context.auth_context().get("transport_security_type", ())


def host_of(peer: str) -> str:
    """The address in a gRPC peer such as `ipv4:192.0.2.7:5000` or `ipv6:%5Bfe80::1%25eth0%5D:5000`."""
    _, _, place = urllib.parse.unquote(peer).partition(":")
    return place.rpartition(":")[0].strip("[]")
