"""One connection to one box, and when a call on it is worth repeating."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from edge.client.address import Target, grpc_target, is_local
from edge.client.backoff import Backoff
from edge.client.certificate import digest_of, matches, shown_at, words_of, wrong_certificate
from edge.client.failures import from_rpc
from edge.client.finder import Follower, locate
from edge.client.store import PairedBox, PairingStore, box_id
from edge.errors import DeadlineExceeded, EdgeError, InvalidArgument, Unauthenticated, Unavailable
from edge.v1.appliance_pb2_grpc import ApplianceServiceStub
from edge.v1.memory_pb2_grpc import MemoryServiceStub
from edge.v1.working_pb2_grpc import WorkingServiceStub

# The box must allow pings this often (grpc.http2.min_ping_interval_without_data_ms), or it answers "too many pings".
KEEPALIVE_SECONDS = 60
# A page of 1,000 memories, each with 64 KiB of attributes, is the most that a box has reason to send.
_ANSWER_BYTES = 80 * 1024 * 1024
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.max_receive_message_length", _ANSWER_BYTES),
    # Transport failures come up at once, and Backoff says when to try again; so the channel itself must be quick.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_retries", 0),
    # What another client of this process met at the address, and when, is none of this one's business.
    ("grpc.use_local_subchannel_pool", 1),
    # The box is on this machine or in this house: a proxy from the environment has no part in it.
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the box is and, unless it is on this machine, the one certificate (PEM) that is believed."""

    address: str
    certificate: bytes = b""
    box: PairedBox | None = None


class Line:
    """The channel with its stubs; opened inside the event loop that uses it.

    `was_reached` says whether the box ever answered: one that never did is reported at once, one that did is waited
    for as long as `patience` (seconds) goes. A box that is known by its certificate is followed to a new address.
    """

    def __init__(
        self, target: Target, token: str | None, timeout: float, patience: float, *, store: PairingStore | None = None
    ) -> None:
        given = (os.environ.get("EDGE_TOKEN", "") if token is None else token).strip()
        if not (given.isascii() and given.isprintable()):
            raise InvalidArgument(
                "token: has a line break or other characters that no token has; check EDGE_TOKEN", field="token"
            )
        self._target = target
        self._given = given
        self._store = store or PairingStore()
        self.address = target.described
        self.metadata = grpc.aio.Metadata()
        self.timeout = timeout
        self.patience = patience
        self.was_reached = False
        self._opening = asyncio.Lock()
        self._channel: grpc.aio.Channel | None = None
        self._certificate = b""
        self._follower: Follower | None = None
        self._calls: set[Any] = set()
        self._left_behind: set[Any] = set()

    async def ready(self, seconds: float = math.inf) -> None:
        """Finds the box the first time. Raises Unavailable, Unauthenticated when it is not one that is trusted,
        DeadlineExceeded after so many seconds.
        """
        if self._channel is not None:
            return
        try:
            await asyncio.wait_for(self._open_once(), None if math.isinf(seconds) else seconds)
        except asyncio.TimeoutError:
            raise DeadlineExceeded(
                f"{self.address} was not reached within {seconds:g} s; try again, or give it more time"
            ) from None

    async def _open_once(self) -> None:
        async with self._opening:
            if self._channel is None:
                await self._open()

    async def _open(self) -> None:
        found = await self._find()
        secret = self._given or (self._store.token(found.box) if found.box else "")
        self.metadata = grpc.aio.Metadata(*([("authorization", f"Bearer {secret}")] if secret else []))
        self._certificate = found.certificate
        self._use(found.address)
        if found.certificate:
            known = found.box.addresses if found.box else (found.address,)
            self._follower = Follower(digest_of(found.certificate), known, lambda: self.address, self._move)
            self._follower.start()
            await self._remember(found.address)

    async def _find(self) -> _Found:
        box, expected = self._target.box, self._target.fingerprint
        if box is not None:
            if expected and not matches(expected, box.digest):
                raise wrong_certificate(box.name, expected, box.digest)
            address = await locate(box.digest, box.addresses, f"the box {box.name}")
            return _Found(address, box.certificate, box)
        address = self._target.address
        if address.startswith("unix:") or (is_local(address) and not expected and not self._store.ids()):
            return _Found(address)
        try:
            certificate = await shown_at(address)
        except Unavailable:
            # A box without --lan on this machine. Whether it is there at all, the first call will tell.
            if is_local(address) and not expected:
                return _Found(address)
            raise
        digest = digest_of(certificate)
        box = self._store.get(box_id(digest))
        if box is not None and box.digest != digest:
            box = None
        if expected and not matches(expected, digest):
            raise wrong_certificate(address, expected, digest)
        if not expected and box is None:
            raise not_paired(address, digest)
        return _Found(address, certificate, box)

    def _use(self, address: str) -> None:
        options = list(_OPTIONS)
        if self._certificate:
            from edge.lan.tls import SERVER_NAME

            # The box's own certificate is the only root, so no other one is believed, whoever signed it.
            options.append(("grpc.ssl_target_name_override", SERVER_NAME))
            credentials = grpc.ssl_channel_credentials(root_certificates=self._certificate)
            channel = grpc.aio.secure_channel(grpc_target(address), credentials, options=options)
        else:
            if not is_local(address):
                raise AssertionError("nothing leaves this machine without TLS")
            if address.startswith("unix:"):
                # A socket's path is not a valid :authority, and some servers mind.
                options.append(("grpc.default_authority", "localhost"))
            channel = grpc.aio.insecure_channel(address, options=options)
        self.address = address
        self._channel = channel
        self.memory: Any = MemoryServiceStub(channel)
        self.appliance: Any = ApplianceServiceStub(channel)
        self.working: Any = WorkingServiceStub(channel)

    async def _move(self, address: str) -> None:
        """The box is there now: calls that wait for the old address are broken off, for nobody will answer them."""
        old = self._channel
        if old is None or address == self.address:
            return
        self._use(address)
        for call in list(self._calls):
            self._left_behind.add(call)
            call.cancel()
        await old.close()
        await self._remember(address)

    async def _remember(self, address: str) -> None:
        # It is only a hint for the next time.
        with contextlib.suppress(EdgeError):
            await asyncio.to_thread(self._store.moved, box_id(digest_of(self._certificate)), address)

    async def close(self) -> None:
        """Calls in flight get Unavailable."""
        async with self._opening:
            if self._follower is not None:
                follower, self._follower = self._follower, None
                await follower.stop()
            if self._channel is not None:
                channel, self._channel = self._channel, None
                await channel.close()

    def reached(self) -> None:
        """The box answered."""
        self.was_reached = True
        if self._follower is not None:
            self._follower.well()

    def convert(self, failure: grpc.aio.AioRpcError) -> EdgeError:
        return from_rpc(failure, self.address)

    @contextlib.contextmanager
    def talking(self, call: Any) -> Iterator[None]:
        """Around the waiting for a call: raises edge.errors; Unavailable (MOVED) when the box moved meanwhile."""
        self._calls.add(call)
        try:
            yield
        except grpc.aio.AioRpcError as failure:
            raise self.convert(failure) from None
        except asyncio.CancelledError:
            if call not in self._left_behind or _is_being_cancelled():
                raise
            raise Unavailable(
                f"the box moved to {self.address} in the middle of a call, which may or may not be done; try again",
                reason="MOVED",
            ) from None
        finally:
            self._calls.discard(call)
            self._left_behind.discard(call)

    async def pause(self, seconds: float, error: EdgeError) -> None:
        """Waits before another try; meanwhile the box is looked for where it may have gone."""
        if self._follower is not None and isinstance(error, Unavailable) and error.retry_after is None:
            self._follower.trouble()
        await asyncio.sleep(seconds)

    async def explained(self, error: EdgeError) -> EdgeError:
        """The error, or a better one if another machine, or TLS, is found where the box should be."""
        if error.reason != "UNREACHABLE" or self.address.startswith("unix:"):
            return error
        try:
            digest = digest_of(await shown_at(self.address))
        except EdgeError:
            return error
        if not self._certificate:
            return not_paired(self.address, digest)
        expected = digest_of(self._certificate)
        return error if digest == expected else wrong_certificate(self.address, expected.hex(), digest)

    async def call(self, service: str, method: str, request: Any, timeout: float | None, *, again: bool) -> Any:
        """One unary call of the stub `service` within `timeout` seconds.

        `again`: may be repeated though the box may have done it already.
        """
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        backoff = Backoff(min(self.patience, limit))
        await self.ready(limit)
        while True:
            left = None if math.isinf(limit) else max(0.0, deadline - time.monotonic())
            call = getattr(getattr(self, service), method)(request, timeout=left, metadata=self.metadata)
            try:
                with self.talking(call):
                    response = await call
            except EdgeError as error:
                wait = backoff.delay(error) if self._worth_another(error, again) else None
                if wait is None:
                    raise await self.explained(error) from None
                await self.pause(wait, error)
            else:
                self.reached()
                return response

    def _worth_another(self, error: EdgeError, again: bool) -> bool:
        return turned_away(error) or (again and self.was_reached and isinstance(error, Unavailable))


def turned_away(error: EdgeError) -> bool:
    """With a wait named, the box refused before doing any of it."""
    return error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED") and error.retry_after is not None


def not_paired(address: str, digest: bytes) -> Unauthenticated:
    """A box is there, and this machine has no reason to trust it."""
    return Unauthenticated(
        f"the box at {address} is not one that this machine has paired with (its certificate: {words_of(digest)}); "
        f"pair with it: edge pair {address}, or give its fingerprint by --tls-fingerprint",
        reason="NOT_PAIRED",
    )


def _is_being_cancelled() -> bool:
    """Whether the task itself is cancelled, and not only its call; Python 3.10 cannot tell."""
    task: Any = asyncio.current_task()
    return bool(getattr(task, "cancelling", int)())
