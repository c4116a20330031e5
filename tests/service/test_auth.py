"""Who may: the owner on the socket, everyone on the loopback under --no-auth, nobody else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_calls import SECONDS, Wire, reason_of
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from test_wire import METHODS, call

if TYPE_CHECKING:
    from conftest import Box, BoxFactory

GUARDED = sorted(path for path in METHODS if not path.startswith("/edge.v1.PairingService/"))


@pytest.fixture(scope="module")
def locked(start_lasting_box: BoxFactory) -> Box:
    return start_lasting_box("--listen", "127.0.0.1:0")


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer probe-7f3a"),)], ids=["no token", "a wrong token"])
def test_tcp_without_a_good_token_is_turned_away(locked: Box, path: str, metadata: tuple[tuple[str, str], ...]) -> None:
    with grpc.insecure_channel(locked.address) as channel:
        channel = grpc.intercept_channel(channel, _With(metadata))
        with pytest.raises(grpc.RpcError) as caught:
            call(channel, path, METHODS[path], b"")
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    status = rpc_status.from_call(caught.value)
    assert status is not None
    assert reason_of(status) == ("TOKEN_UNKNOWN" if metadata else "TOKEN_NEEDED")
    assert "probe-7f3a" not in locked.log


class _With(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[type-arg]  # the stubs' parameters say nothing here
    grpc.UnaryStreamClientInterceptor,  # type: ignore[type-arg]  # as above
    grpc.StreamUnaryClientInterceptor,  # type: ignore[type-arg]  # as above
    grpc.StreamStreamClientInterceptor,  # type: ignore[type-arg]  # as above
):
    """Sends this metadata with every call."""

    def __init__(self, metadata: tuple[tuple[str, str], ...]) -> None:
        self._metadata = metadata

    def _call(self, go_on, details, request):  # type: ignore[no-untyped-def]  # grpc's four signatures in one
        return go_on(details._replace(metadata=self._metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = intercept_stream_stream = _call


def test_pairing_is_open_without_a_token(locked: Box) -> None:
    path = "/edge.v1.PairingService/Pair"
    with grpc.insecure_channel(locked.address) as channel, pytest.raises(grpc.RpcError) as caught:
        call(channel, path, METHODS[path], b"")
    # Not who calls is wrong, but that the call says nothing.
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_health_and_reflection_are_open_without_a_token(locked: Box) -> None:
    with grpc.insecure_channel(locked.address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        assert next(stub.ServerReflectionInfo(iter([request]), timeout=SECONDS)).list_services_response.service


def test_the_owner_on_the_socket_needs_no_token(locked: Box) -> None:
    with Wire(locked.unix) as wire:
        wire.say("只有主人能说", space="public")
        assert wire.texts("主人") == ["只有主人能说"]


def test_the_socket_is_the_owner_s_alone(locked: Box) -> None:
    path = Path(locked.unix.removeprefix("unix:"))
    assert path == locked.data / "edge.sock"
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(locked.data.stat().st_mode) == 0o700


def test_the_socket_goes_with_the_box_and_a_dead_one_s_is_taken_over(start_box: BoxFactory) -> None:
    box = start_box("--listen", "127.0.0.1:0")
    path = box.data / "edge.sock"
    box.kill()
    assert path.exists()
    box.restart()
    with Wire(box.unix) as wire:
        assert wire.status().ready
    assert box.stop() == 0
    assert not path.exists()


def serve(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """For starts that are refused."""
    return subprocess.run(
        [sys.executable, "-m", "edge.cli", "serve", "--data", str(data), *arguments],
        capture_output=True, text=True, timeout=SECONDS, check=False, env={**os.environ, "EDGE_DEBUG": ""},
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-auth", "--listen", "0.0.0.0:0"),
        ("--no-auth", "--listen", "[::]:0"),
        ("--no-auth", "--listen", "192.0.2.1:0"),
        ("--no-auth", "--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0"),
        ("--listen", "0.0.0.0:0"),
        ("--listen", "127.0.0.1"),
        ("--listen", "127.0.0.1:70000"),
        ("--listen", "127.0.0.1:-1"),
        ("--listen", ":7430"),
        ("--listen", ""),
        ("--no-auth", "--lan"),
    ],
)
def test_an_address_that_others_can_reach_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = serve(*arguments, data=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("edge: ")
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.iterdir())
