"""Case 30: no call gets in by a token that is none, none is in the log, and no browser's page may read an answer."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_calls import SECONDS
from lan_box import LanBox, lan_box

from edge.service.permissions import NEEDS
from edge.v1 import appliance_pb2, graph_pb2, memory_pb2, pairing_pb2, working_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

PROBE = "probe-7f3a"
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for file in (memory_pb2, graph_pb2, working_pb2, appliance_pb2, pairing_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
ORIGIN = "https://example.org"


@pytest.fixture(scope="module")
def lan(start_lasting_box: BoxFactory) -> LanBox:
    return lan_box(start_lasting_box, environment={"EDGE_LOG": "DEBUG"})


def code_of(channel: grpc.Channel, path: str, metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
    method = METHODS[path]
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    with pytest.raises(grpc.RpcError) as caught:
        answer = getattr(channel, kind)(path)(
            iter([b""]) if method.client_streaming else b"", timeout=SECONDS, metadata=metadata
        )
        list(answer)
    code: grpc.StatusCode = caught.value.code()
    return code


def test_every_method_turns_away_who_has_no_token_or_a_made_up_one(lan: LanBox) -> None:
    assert len(NEEDS) == len(METHODS) - 1
    with lan.channel() as secure, grpc.insecure_channel(lan.plain) as plain:
        for path in NEEDS:
            for channel in (secure, plain):
                for metadata in ((), (("authorization", f"Bearer {PROBE}"),)):
                    assert code_of(channel, path, metadata) is grpc.StatusCode.UNAUTHENTICATED, path
    assert PROBE not in lan.box.log


@pytest.mark.parametrize("request_line", ["OPTIONS /edge.v1.MemoryService/Recall HTTP/1.1", "GET / HTTP/1.1"])
@pytest.mark.parametrize("secure", [True, False])
def test_a_browser_is_given_no_leave_to_read(lan: LanBox, request_line: str, secure: bool) -> None:
    asked = (
        f"{request_line}\r\nHost: box\r\nOrigin: {ORIGIN}\r\nAccess-Control-Request-Method: POST\r\n"
        f"Authorization: Bearer {PROBE}\r\n\r\n"
    ).encode()
    host, _, port = (lan.tls if secure else lan.plain).rpartition(":")
    said = b""
    with contextlib.ExitStack() as stack:
        connection: socket.socket = stack.enter_context(socket.create_connection((host, int(port)), timeout=SECONDS))
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            connection = stack.enter_context(context.wrap_socket(connection))
        # Whatever it says before it hangs up.
        with contextlib.suppress(OSError):
            connection.sendall(asked)
            while received := connection.recv(65536):
                said += received
    assert b"access-control" not in said.lower()
    assert ORIGIN.encode() not in said
    assert PROBE not in lan.box.log
