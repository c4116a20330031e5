"""One connection to one box, and when a call on it is worth repeating."""

from __future__ import annotations

import asyncio
import math
import os
import time
from typing import Any

import grpc

from edge.client.backoff import Backoff
from edge.client.failures import from_rpc
from edge.errors import EdgeError, InvalidArgument, Unavailable
from edge.v1.appliance_pb2_grpc import ApplianceServiceStub
from edge.v1.memory_pb2_grpc import MemoryServiceStub

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


class Line:
    """The channel with its stubs; opened inside the event loop that uses it.

    `was_reached` says whether the box ever answered: one that never did is reported at once, one that did is waited
    for as long as `patience` (seconds) goes.
    """

    def __init__(self, address: str, token: str | None, timeout: float, patience: float) -> None:
        secret = os.environ.get("EDGE_TOKEN", "") if token is None else token
        if not (secret.isascii() and secret.isprintable()):
            raise InvalidArgument("token: has characters that no token has; check EDGE_TOKEN", field="token")
        self.address = address
        self.metadata = grpc.aio.Metadata(*([("authorization", f"Bearer {secret}")] if secret else []))
        self.timeout = timeout
        self.patience = patience
        self.was_reached = False
        self._channel: grpc.aio.Channel | None = None

    def open(self) -> bool:
        """Whether it was closed before. Connects with the first call."""
        if self._channel is not None:
            return False
        options = list(_OPTIONS)
        if self.address.startswith("unix:"):
            # A socket's path is not a valid :authority, and some servers mind.
            options.append(("grpc.default_authority", "localhost"))
        self._channel = grpc.aio.insecure_channel(self.address, options=options)
        self.memory: Any = MemoryServiceStub(self._channel)
        self.appliance: Any = ApplianceServiceStub(self._channel)
        return True

    async def close(self) -> None:
        """Calls in flight get Unavailable."""
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close()

    def reached(self) -> None:
        """The box answered."""
        self.was_reached = True

    def convert(self, failure: grpc.aio.AioRpcError) -> EdgeError:
        return from_rpc(failure, self.address)

    async def call(self, method: Any, request: Any, timeout: float | None, *, again: bool) -> Any:
        """One unary call within `timeout` seconds. `again`: may be repeated though the box may have done it already."""
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        backoff = Backoff(min(self.patience, limit))
        while True:
            left = None if math.isinf(limit) else max(0.0, deadline - time.monotonic())
            try:
                response = await method(request, timeout=left, metadata=self.metadata)
            except grpc.aio.AioRpcError as failure:
                error = self.convert(failure)
                wait = backoff.delay(error) if self._worth_another(error, again) else None
                if wait is None:
                    raise error from None
                await asyncio.sleep(wait)
            else:
                self.reached()
                return response

    def _worth_another(self, error: EdgeError, again: bool) -> bool:
        return turned_away(error) or (again and self.was_reached and isinstance(error, Unavailable))


def turned_away(error: EdgeError) -> bool:
    """With a wait named, the box refused before doing any of it."""
    return error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED") and error.retry_after is not None
