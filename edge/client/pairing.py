"""Pairing, as the client does it: from a code that a person reads to a certificate and a token."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import grpc

from edge.client.address import choose, grpc_target
from edge.client.certificate import (
    digest_of,
    matches,
    read_fingerprint,
    shown_at,
    words_of,
    wrong_certificate,
)
from edge.client.failures import from_rpc
from edge.client.store import MOST_ADDRESSES, PairedBox, PairingStore, box_id
from edge.config import data_directory
from edge.errors import FailedPrecondition, InvalidArgument, Unauthenticated, Unavailable
from edge.v1 import pairing_pb2
from edge.v1.pairing_pb2_grpc import PairingServiceStub

_T = TypeVar("_T")
SCHEME = "edge-memory"
# A box on a busy Raspberry Pi does its three steps of arithmetic in a second.
_SECONDS = 20.0
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 * 1024),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A machine that says it is a box, before it has proven anything. `certificate` is PEM."""

    address: str
    certificate: bytes = field(repr=False)
    # The other addresses that it says it has.
    others: tuple[str, ...] = ()

    @property
    def digest(self) -> bytes:
        return digest_of(self.certificate)

    @property
    def id(self) -> str:
        return box_id(self.digest)

    @property
    def words(self) -> str:
        return words_of(self.digest)


@dataclass(frozen=True, slots=True)
class Code:
    """A one-time code, for the owner's eyes."""

    code: str = field(repr=False)
    # Seconds.
    lives: float
    fingerprint: str
    words: str

    @property
    def uri(self) -> str:
        """What a QR code of it holds; `edge pair` takes it in place of a name."""
        return f"{SCHEME}://pair?{urlencode({'code': self.code, 'fp': self.fingerprint})}"


def read_uri(text: str) -> tuple[str, str]:
    """Code and fingerprint of such a URI. Raises InvalidArgument, without the code in its words."""
    try:
        query = parse_qs(urlsplit(text).query)
        [code], [fingerprint] = query["code"], query["fp"]
        return code, bytes.fromhex(read_fingerprint(fingerprint)).hex()
    except (ValueError, KeyError, InvalidArgument):
        raise InvalidArgument(
            f"box: this {SCHEME} URI is not whole; copy all of it, or give the box's name and type the code",
            field="box",
        ) from None


def own_name() -> str:
    """This machine's name, as a client's name may be."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", platform.node().partition(".")[0].lower()).lstrip("_-")
    return plain[:63].rstrip("-") or "client"


async def look(addresses: Iterable[str], fingerprint: str = "") -> Seen:
    """Who answers first among the addresses of one box; with a fingerprint, who answers with that certificate.

    Raises Unavailable when nobody does, Unauthenticated when only machines with other certificates do.
    """
    every = tuple(dict.fromkeys(addresses))
    tasks = [asyncio.create_task(_look_at(address, fingerprint)) for address in every]
    left = set(tasks)
    try:
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is None:
                    seen = task.result()
                    return replace(seen, others=tuple(one for one in every if one != seen.address))
    finally:
        for task in left:
            task.cancel()
        # asyncio complains on stderr of a failure that nobody looked at, also when another address was right.
        await asyncio.gather(*tasks, return_exceptions=True)
    failures = [failure for task in tasks if (failure := task.exception())]
    if not failures:
        raise Unavailable("the box tells no address; name one, host:port", reason="UNREACHABLE")
    # That another machine answered says more than that nobody did.
    raise min(failures, key=lambda failure: not isinstance(failure, Unauthenticated))


async def _look_at(address: str, fingerprint: str) -> Seen:
    seen = Seen(address, await shown_at(address))
    # mDNS may tell the beginning of it only.
    if fingerprint and not (matches(fingerprint, seen.digest) or seen.digest.hex().startswith(fingerprint)):
        raise wrong_certificate(address, fingerprint, seen.digest)
    return seen


async def pair(seen: Seen, code: str, name: str, store: PairingStore | None = None) -> PairedBox:
    """Proves the code to the box that was seen, has it prove the same, and keeps its certificate and the token.

    Raises InvalidArgument (field "code" or "name") for what cannot be one, before an attempt is lost; PermissionDenied
    for a wrong code; FailedPrecondition when no pairing is open or the name is taken; Exhausted; Unavailable.
    """
    from edge.lan.handshake import ClientPairing

    store = store or PairingStore()
    ours = ClientPairing(code, name, seen.digest)
    store.prepare()

    async def exchange(call: Any) -> PairedBox:
        await _send(call, start=pairing_pb2.PairStart(name=name, element=ours.start()))
        element = await _receive(call, "element")
        await _send(call, confirm=pairing_pb2.PairConfirm(mac=ours.confirm(element.element)))
        grant = await _receive(call, "grant")
        granted = ours.finish(grant.mac, grant.sealed)
        if granted.box_id != seen.id:
            raise FailedPrecondition("the box calls itself by another id than its certificate says; update it")
        return PairedBox(
            id=seen.id,
            name=granted.box_name or seen.id,
            certificate=seen.certificate,
            token=granted.token,
            client=name,
            addresses=(seen.address, *seen.others)[:MOST_ADDRESSES],
            paired_at=datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    from edge.lan.tls import SERVER_NAME

    # What the box grants is worth nothing unless the certificate is the one that both ends hash.
    credentials = grpc.ssl_channel_credentials(root_certificates=seen.certificate)
    options = [*_OPTIONS, ("grpc.ssl_target_name_override", SERVER_NAME)]
    async with grpc.aio.secure_channel(grpc_target(seen.address), credentials, options=options) as channel:
        box = await _converse(channel, seen.address, exchange)
    await asyncio.to_thread(store.save, box)
    return box


async def new_code(data: Path | None = None, again: str = "") -> Code:
    """A fresh code from the box on this machine, over the socket in its data directory; the code before it is over.

    again: the client of that name may pair anew under the name it has. Raises Unavailable when no box runs there,
    FailedPrecondition when it serves no other machine.
    """
    target = choose(data=data or data_directory()).address

    async def exchange(call: Any) -> Code:
        await _send(call, start=pairing_pb2.PairStart(name=again))
        shown = await _receive(call, "code")
        return Code(shown.code, shown.lives.seconds + shown.lives.nanos / 1e9, shown.fingerprint, shown.words)

    options = [*_OPTIONS, ("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        return await _converse(channel, target, exchange)


async def _converse(channel: grpc.aio.Channel, address: str, exchange: Callable[[Any], Awaitable[_T]]) -> _T:
    """One Pair call; its failures come as edge.errors."""
    call = PairingServiceStub(channel).Pair(timeout=_SECONDS)
    try:
        return await exchange(call)
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure, address) from None
    finally:
        call.cancel()


async def _send(call: Any, **step: Any) -> None:
    # A failed write does not say why; the next read does.
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        await call.write(pairing_pb2.PairRequest(**step))


async def _receive(call: Any, name: str) -> Any:
    response = await call.read()
    if response is grpc.aio.EOF:
        raise Unavailable("the box ended the pairing early; try again", reason="PAIRING_ENDED")
    if response.WhichOneof("step") != name:
        raise FailedPrecondition(
            "the box answered something that this version does not expect; update the older of the two",
            reason="PAIRING_VERSION",
        )
    return getattr(response, name)
