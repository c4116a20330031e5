"""A thousand connections that say nothing, or little: the box answers others, stays small, and lets go of them."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import psutil
import pytest
from grpc_calls import SECONDS, refused
from grpc_health.v1 import health_pb2, health_pb2_grpc
from lan_box import LanBox, bearer, lan_box, memory_stub, secure_channel

from edge.v1 import memory_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's open files for sure")

MANY = 1000
# More than a listener takes.
FLOOD = 5000
# Seconds: a recall takes some hundredths of one, and the silent are given up after ten.
SOON = 8.0
# Bytes that a connection may cost: its buffers and, for one that speaks TLS, OpenSSL's.
A_CONNECTION = 150_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def lan(start_lasting_box: BoxFactory) -> LanBox:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * FLOOD:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * FLOOD), hard))
    found = lan_box(start_lasting_box)
    found.owner.say("备用钥匙在第三个花盆下面", space="public")
    return found


class Good:
    """A client that pays its way: recalls over a connection it has, and over a new one."""

    def __init__(self, lan: LanBox, name: str) -> None:
        self._lan = lan
        self._metadata = bearer(lan.token(name))
        self._channel = lan.channel()
        self._recall(self._channel)

    def _recall(self, channel: grpc.Channel) -> None:
        request = memory_pb2.RecallRequest(query="备用钥匙")
        answer = memory_stub(channel).Recall(request, metadata=self._metadata, timeout=SOON)
        assert [hit.memory.text for hit in answer.hits] == ["备用钥匙在第三个花盆下面"]

    def is_served(self, anew: bool = True) -> None:
        self._recall(self._channel)
        if anew:
            with self._lan.channel() as fresh:
                self._recall(fresh)

    def close(self) -> None:
        self._channel.close()


@pytest.fixture
def good(lan: LanBox) -> Iterator[Good]:
    client = Good(lan, f"good-{uuid.uuid4().hex[:8]}")
    yield client
    client.close()


def files(lan: LanBox) -> int:
    return len(list(Path(f"/proc/{lan.box.pid}/fd").iterdir()))


def resident(lan: LanBox) -> int:
    return int(psutil.Process(lan.box.pid).memory_info().rss)


def connect(lan: LanBox) -> socket.socket:
    return socket.create_connection(("127.0.0.1", lan.port), timeout=SECONDS)


def handshake(lan: LanBox) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(connect(lan))


def is_let_go(connection: socket.socket) -> None:
    """Returns when the box has ended it; what it says until then is passed over."""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while connection.recv(65536):
            pass


def settled(lan: LanBox, at_most: int) -> None:
    """Returns when the box has no more files open; the test's own time limit is how long that may take."""
    while files(lan) > at_most:
        time.sleep(0.01)


def test_a_thousand_that_connect_and_say_nothing(lan: LanBox, good: Good) -> None:
    before, small = files(lan), resident(lan)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(lan)) for _ in range(MANY)]
        good.is_served()
        assert resident(lan) - small < MANY * A_CONNECTION
        for connection in silent:
            is_let_go(connection)
    settled(lan, before + 8)
    good.is_served()


def test_a_hundred_that_stop_amid_the_handshake_or_after_it(lan: LanBox, good: Good) -> None:
    before = files(lan)
    with contextlib.ExitStack() as stack:
        # A record of 16 KiB is announced, and comes byte by byte.
        slow = [stack.enter_context(connect(lan)) for _ in range(100)]
        for connection in slow:
            connection.sendall(b"\x16\x03\x01\x40\x00\x01")
        # Through TLS, and then never a word of HTTP/2, or half of the first.
        through = [stack.enter_context(handshake(lan)) for _ in range(100)]
        for connection in through[::2]:
            connection.sendall(PREFACE[:12])
        good.is_served()
        for connection in slow:
            connection.sendall(b"\x00")
        good.is_served()
        for connection in (*slow, *through):
            is_let_go(connection)
    settled(lan, before + 8)
    good.is_served()


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nhost: box\r\n\r\n", b"\0" * 4096, PREFACE + b"\xff" * 100])
def test_what_speaks_another_language_is_let_go_at_once(lan: LanBox, said: bytes) -> None:
    with connect(lan) as plain, handshake(lan) as secret:
        for connection in (plain, secret):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(said)
            is_let_go(connection)


def test_hundreds_of_idle_clients_cost_little_and_hold_nobody_up(lan: LanBox, good: Good) -> None:
    small, before = resident(lan), files(lan)
    channels = [secure_channel(lan.tls, lan.certificate) for _ in range(200)]
    for ready in [grpc.channel_ready_future(channel) for channel in channels]:
        ready.result(SECONDS)
    good.is_served()
    assert resident(lan) - small < len(channels) * 4 * A_CONNECTION
    for channel in channels:
        channel.close()
    settled(lan, before + 8)
    good.is_served()


def test_streams_that_need_no_token_are_few_and_take_nothing_from_those_that_do(lan: LanBox, good: Good) -> None:
    with lan.channel() as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS) for _ in range(64)]
        for watch in watches:
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
            next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS))
        # Asking once is no stream, and a stream with a token is another matter.
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS).status
        good.is_served()
        request = memory_pb2.RecallRequest(query="备用钥匙")
        assert next(lan.owner.memory.RecallStream(iter([request]), timeout=SECONDS)).hits
        for watch in watches:
            watch.cancel()
    while lan.owner.status().streams:
        time.sleep(0.01)


def test_a_flood_of_connections_leaves_files_for_what_the_box_keeps(lan: LanBox, good: Good) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < FLOOD + 100:
        pytest.skip("this machine lets no process open so many files")
    before = files(lan)
    with contextlib.ExitStack() as stack:
        for _ in range(FLOOD):
            stack.enter_context(connect(lan))
        good.is_served(anew=False)
        lan.owner.say("也写得下", space="private/after-the-flood")
        assert files(lan) < before + FLOOD - 500
    settled(lan, before + 64)
    good.is_served()
