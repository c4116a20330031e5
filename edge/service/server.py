"""The gRPC server: which services, on which addresses, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from edge.config import Limits
from edge.errors import EdgeError, FailedPrecondition, InvalidArgument
from edge.service.appliance import ApplianceService
from edge.service.intercept import Door, Tokens
from edge.service.memory import MemoryService
from edge.service.pairing import PairingService
from edge.service.working import WorkingService
from edge.v1 import (
    appliance_pb2,
    appliance_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    pairing_pb2,
    pairing_pb2_grpc,
    working_pb2,
    working_pb2_grpc,
)

SERVICES = (
    memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
    graph_pb2.DESCRIPTOR.services_by_name["GraphService"].full_name,
    working_pb2.DESCRIPTOR.services_by_name["WorkingService"].full_name,
    appliance_pb2.DESCRIPTOR.services_by_name["ApplianceService"].full_name,
    pairing_pb2.DESCRIPTOR.services_by_name["PairingService"].full_name,
)
_MINUTE_MS = 60_000
_LAST_WORD = 0.05
_MOST_CONNECTIONS = 4096


class Server:
    """Built on the event loop that serves; `port` of a TCP address may be 0.

    `certificate` is (key, certificate), both PEM: what other machines are served with, and only with TLS. (gRPC speaks
    1.2 and 1.3.)
    """

    def __init__(
        self, limits: Limits, tokens: Tokens, *, no_auth: bool, certificate: tuple[bytes, bytes] | None = None
    ) -> None:
        self._credentials = grpc.ssl_server_credentials([certificate]) if certificate else None
        self.door = Door(tokens, no_auth=no_auth, streams=limits.streams)
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            interceptors=[self.door],
            options=[
                ("grpc.max_receive_message_length", limits.message_bytes),
                # A second server on the same port must fail, not share it (grpc#16920).
                ("grpc.so_reuseport", 0),
                # Alike on both sides: clients may ping once a minute, also between calls.
                ("grpc.http2.min_ping_interval_without_data_ms", _MINUTE_MS // 2),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.keepalive_time_ms", 2 * _MINUTE_MS),
                ("grpc.keepalive_timeout_ms", 20_000),
                # Whoever connects and says nothing is not waited for.
                ("grpc.server_handshake_timeout_ms", 10_000),
                ("grpc.max_allowed_incoming_connections", _connections()),
            ],
        )
        self._sockets: list[Path] = []
        # Where other machines reach the box; 0 while none can.
        self.lan_port = 0

    def add(
        self, memory: MemoryService, working: WorkingService, appliance: ApplianceService, pairing: PairingService
    ) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(memory, self._server)
        working_pb2_grpc.add_WorkingServiceServicer_to_server(working, self._server)
        appliance_pb2_grpc.add_ApplianceServiceServicer_to_server(appliance, self._server)
        pairing_pb2_grpc.add_PairingServiceServicer_to_server(pairing, self._server)
        # Named in the wire, built later: the door answers for them (service/later.py).
        graph_pb2_grpc.add_GraphServiceServicer_to_server(graph_pb2_grpc.GraphServiceServicer(), self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    async def start(self, listen: Sequence[str]) -> list[str]:
        """Listens; the addresses as clients can use them. Raises FailedPrecondition when one cannot be had."""
        try:
            bound = [self._bind(address) for address in listen]
        except EdgeError:
            self._remove_sockets()
            raise
        await self._server.start()
        for path in self._sockets:
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return bound

    def _bind(self, address: str) -> str:
        if address.startswith("unix:"):
            path = Path(address.removeprefix("unix:"))
            # The data directory's lock is held, so a socket that is still there is a dead box's.
            path.unlink(missing_ok=True)
            self._sockets.append(path)
            old = os.umask(0o177)
            try:
                return self._listen(address, address)
            finally:
                os.umask(old)
        host, port = split_address(address)
        return self._listen(address, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    def _listen(self, address: str, target: str) -> str:
        try:
            if address.startswith("unix:") or is_loopback(split_address(address)[0]):
                port = self._server.add_insecure_port(target)
            elif self._credentials is not None:
                port = self.lan_port = self._server.add_secure_port(target, self._credentials)
            else:
                raise InvalidArgument(
                    f"listen: {address} is not loopback, and other machines are served with TLS and tokens only; "
                    "start the box with --lan",
                    field="listen",
                )
        except RuntimeError:
            port = 0
        if not port:
            raise FailedPrecondition(
                f"cannot listen on {address}: it is in use or not an address of this machine; "
                "stop the other program or choose another with --listen",
                reason="ADDRESS_UNUSABLE",
            )
        return target if address.startswith("unix:") else f"{target.rpartition(':')[0]}:{port}"

    async def stop(self, grace: float) -> None:
        """Health says no, new calls are turned away, running ones get `grace` seconds, then handlers are waited for."""
        await self._health.enter_graceful_shutdown()
        # For those who watch it to hear so, before their streams end.
        await asyncio.sleep(_LAST_WORD)
        self.door.close()
        await self._server.stop(grace)
        # stop() does not wait for the handlers of calls it aborted.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.door.drained(), grace)
        self._remove_sockets()

    def _remove_sockets(self) -> None:
        for path in self._sockets:
            path.unlink(missing_ok=True)


def _connections() -> int:
    """How many a listener takes: so few that, whoever floods it, files are left for the log and the databases."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(files // 2, _MOST_CONNECTIONS)


def split_address(address: str) -> tuple[str, int]:
    """host and port of host:port or [IPv6]:port. Raises InvalidArgument."""
    host, separator, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidArgument(f"listen: {address} is not host:port, [IPv6]:port or unix:PATH", field="listen")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether every address of the host is this machine's own."""
    try:
        found = socket.getaddrinfo(host, None)
    except socket.gaierror:
        return False
    return all(str(info[4][0]).startswith("127.") or info[4][0] == "::1" for info in found)
