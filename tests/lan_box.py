"""A box as other machines on the network meet it: TLS by its certificate, a token a client, codes from its owner."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
from grpc_calls import SECONDS, Wire

from edge.lan.handshake import ClientPairing, Granted
from edge.lan.tls import SERVER_NAME, fingerprint
from edge.types import Scope
from edge.v1 import appliance_pb2, memory_pb2_grpc, pairing_pb2, pairing_pb2_grpc

if TYPE_CHECKING:
    from conftest import Box, BoxFactory

READ, WRITE, DELETE, ADMIN = Scope.READ, Scope.WRITE, Scope.DELETE, Scope.ADMIN
Metadata = tuple[tuple[str, str | bytes], ...]
# A channel without its own pool would share a connection with every other channel to the same place.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))


class LanBox:
    """`box` with --lan: `tls` is where other machines reach it, `plain` a loopback address without TLS."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.owner = Wire(box.unix)
        ready = next(line for line in reversed(box.log.splitlines()) if line.startswith("ready ")).split()
        lan = next(word for word in ready if word.startswith("[::]:"))
        self.tls = f"127.0.0.1:{lan.rpartition(':')[2]}"
        self.plain = next(word for word in ready if word.startswith("127.0.0.1:"))
        self.certificate = (box.data / "identity" / "certificate.pem").read_bytes()

    @property
    def port(self) -> int:
        return int(self.tls.rpartition(":")[2])

    def channel(self, certificate: bytes = b"", address: str = "") -> grpc.Channel:
        return secure_channel(address or self.tls, certificate or self.certificate)

    def token(self, name: str, grants: Iterable[tuple[str, Iterable[Scope]]] = ()) -> str:
        """The secret of a new token; without grants it has those of a client that pairs."""
        wire = [appliance_pb2.Grant(space_pattern=pattern, scopes=list(map(int, scopes))) for pattern, scopes in grants]  # type: ignore[arg-type]  # the enums share their numbers
        request = appliance_pb2.CreateTokenRequest(name=name, grants=wire)
        secret: str = self.owner.appliance.CreateToken(request, timeout=SECONDS).secret
        return secret

    def revoke(self, name: str) -> None:
        self.owner.appliance.RevokeToken(appliance_pb2.RevokeTokenRequest(id=name), timeout=SECONDS)

    def new_code(self, again: str = "") -> str:
        """As `edge pair --show` gets it."""
        stub = pairing_pb2_grpc.PairingServiceStub(self.owner.channel)
        start = pairing_pb2.PairRequest(start=pairing_pb2.PairStart(name=again))
        code: str = next(stub.Pair(iter([start]), timeout=SECONDS)).code.code
        return code


def lan_box(start: BoxFactory, **more: Any) -> LanBox:
    return LanBox(start("--lan", "--listen", "[::]:0", "--listen", "127.0.0.1:0", **more))


def secure_channel(address: str, certificate: bytes) -> grpc.Channel:
    credentials = grpc.ssl_channel_credentials(root_certificates=certificate)
    return grpc.secure_channel(address, credentials, [*_OPTIONS, ("grpc.ssl_target_name_override", SERVER_NAME)])


def bearer(secret: str) -> Metadata:
    return (("authorization", f"Bearer {secret}"),)


class Talk:
    """A stream that is written to step by step."""

    def __init__(self, method: Callable[..., Any], metadata: Metadata = (), timeout: float = SECONDS) -> None:
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.call = method(self._requests(), metadata=metadata, timeout=timeout)

    def _requests(self) -> Iterator[Any]:
        while (request := self._said.get()) is not None:
            yield request

    def say(self, request: Any) -> None:
        self._said.put(request)

    def ask(self, request: Any) -> Any:
        self.say(request)
        return next(self.call)

    def end(self) -> None:
        self._said.put(None)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.call.cancel()


class Pairer:
    """A client's side of one pairing, message by message. `digest` is of the certificate that it believes to see."""

    def __init__(self, channel: grpc.Channel, code: str, name: str, digest: bytes) -> None:
        self.talk = Talk(pairing_pb2_grpc.PairingServiceStub(channel).Pair)
        self.name = name
        self.ours = ClientPairing(code, name, digest)

    def start(self) -> bytes:
        """The box's element."""
        request = pairing_pb2.PairStart(name=self.name, element=self.ours.start())
        element: bytes = self.talk.ask(pairing_pb2.PairRequest(start=request)).element.element
        return element

    def confirm(self, element: bytes) -> Granted:
        request = pairing_pb2.PairConfirm(mac=self.ours.confirm(element))
        grant = self.talk.ask(pairing_pb2.PairRequest(confirm=request)).grant
        return self.ours.finish(grant.mac, grant.sealed)


def pair(channel: grpc.Channel, code: str, name: str, certificate: bytes) -> Granted:
    """All of a pairing over this channel; grpc.RpcError where the box refuses."""
    pairer = Pairer(channel, code, name, fingerprint(certificate))
    with pairer.talk:
        return pairer.confirm(pairer.start())


def memory_stub(channel: grpc.Channel) -> memory_pb2_grpc.MemoryServiceStub:
    return memory_pb2_grpc.MemoryServiceStub(channel)


def bytes_below(box: Box) -> bytes:
    """All that the box has on its disk."""
    found = []
    for path in box.data.rglob("*"):
        # A running box may replace a file meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                found.append(path.read_bytes())
    return b"\0".join(found)
