"""The client against TLS, pairing and boxes that move: real certificates and a real handshake, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

# The scripted box lives with the tests of the client.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "client"))

from scripted_box import ScriptedBox, abort, rich

from edge.client import AsyncClient, IngestState, turn
from edge.client.certificate import digest_of
from edge.client.finder import Follower, locate
from edge.client.pairing import look, pair
from edge.client.store import PairedBox, PairingStore
from edge.clock import SystemClock
from edge.errors import (
    DeadlineExceeded,
    EdgeError,
    FailedPrecondition,
    InvalidArgument,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from edge.lan.discover import Found
from edge.lan.handshake import Granted
from edge.lan.pairing import Attempt, Codes
from edge.lan.tls import Identity
from edge.v1 import appliance_pb2_grpc, memory_pb2_grpc, pairing_pb2, pairing_pb2_grpc

TOKEN = "edge_" + "t0ken" * 8


class Door(pairing_pb2_grpc.PairingServiceServicer):
    """A box's side of pairing, of the real pieces."""

    def __init__(self, identity: Identity) -> None:
        self.codes = Codes(SystemClock())
        self._identity = identity

    async def Pair(self, requests: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
        attempt = Attempt(self.codes, self._identity.digest, "192.0.2.1", self._issue)
        try:
            start = (await anext(requests)).start
            element = attempt.start(start.name, start.element)
            await context.write(pairing_pb2.PairResponse(element=pairing_pb2.PairElement(element=element)))
            mac, sealed = attempt.confirm((await anext(requests)).confirm.mac)
            await context.write(pairing_pb2.PairResponse(grant=pairing_pb2.PairGrant(mac=mac, sealed=sealed)))
        except EdgeError as error:
            await abort(context, rich(error.code, error.message, field=error.field, reason=error.reason))

    def _issue(self, name: str, again: bool) -> Granted:
        return Granted(TOKEN, self._identity.id, "attic")


class TlsBox:
    """A scripted box behind TLS."""

    def __init__(self, folder: Path) -> None:
        self.identity = Identity.open(folder)
        self.script = ScriptedBox()
        self.door: pairing_pb2_grpc.PairingServiceServicer = Door(self.identity)

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str]:
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(self.script, server)
        appliance_pb2_grpc.add_ApplianceServiceServicer_to_server(self.script, server)
        pairing_pb2_grpc.add_PairingServiceServicer_to_server(self.door, server)
        credentials = grpc.ssl_server_credentials([(self.identity.key, self.identity.certificate)])
        bound = server.add_secure_port(f"127.0.0.1:{port}", credentials)
        await server.start()
        try:
            yield f"127.0.0.1:{bound}"
        finally:
            await server.stop(None)

    def known(self, *addresses: str) -> PairedBox:
        identity = self.identity
        return PairedBox(identity.id, "attic", identity.certificate, TOKEN, "desk", addresses, "2026-01-01T00:00:00Z")


class Air:
    """What mDNS says, without a network: boxes announce themselves in `boxes`."""

    def __init__(self) -> None:
        self.boxes: list[Found] = []
        self.looked = 0
        self._changed = asyncio.Event()

    def announce(self, id_: str, *addresses: str) -> None:
        self.boxes = [
            Found("attic", (host,), int(port), id_, "0.1.0", "v1", True, id_, "")
            for host, _, port in (address.rpartition(":") for address in addresses)
        ]
        self._changed.set()
        self._changed = asyncio.Event()

    def start(self) -> None:
        self.looked += 1

    async def stop(self) -> None:
        pass

    async def changes(self) -> AsyncIterator[list[Found]]:
        while True:
            changed = self._changed
            yield list(self.boxes)
            await changed.wait()


@pytest.fixture(autouse=True)
def nothing_of_the_tester(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("EDGE_DATA", str(tmp_path / "data"))
    for name in ("EDGE_ADDRESS", "EDGE_TOKEN", "EDGE_TLS_FINGERPRINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def air(monkeypatch: pytest.MonkeyPatch) -> Air:
    air = Air()
    monkeypatch.setattr("edge.lan.discover.Browser", lambda: air)
    return air


@pytest.fixture
async def box(tmp_path: Path) -> TlsBox:
    return TlsBox(tmp_path / "identity")


# --- pairing


async def test_a_right_code_gives_a_token_that_later_calls_take_along(box: TlsBox, air: Air) -> None:
    async with box.serving() as address:
        seen = await look([address])
        assert seen.id == box.identity.id
        assert seen.words == " ".join(box.identity.words)
        paired = await pair(seen, box.door.codes.show().lower().replace("-", " "), "desk")  # type: ignore[attr-defined]  # Door's
        assert (paired.name, paired.client, paired.addresses) == ("attic", "desk", (address,))
        for named in ("attic", paired.id, address, None):
            async with AsyncClient.connect(named) as client:
                assert (await client.status()).ready
            assert box.script.metadata["authorization"] == f"Bearer {TOKEN}"
    assert air.looked == 0, "an address that works needs no mDNS"


async def test_a_wrong_code_costs_an_attempt_and_keeps_nothing(box: TlsBox) -> None:
    codes = box.door.codes  # type: ignore[attr-defined]  # Door's
    codes.show()
    async with box.serving() as address:
        with pytest.raises(PermissionDenied) as caught:
            await pair(await look([address]), "0000-0000", "desk")
    assert caught.value.reason == "PAIRING_FAILED"
    assert codes.left().attempts == 4
    assert PairingStore().ids() == ()


async def test_what_cannot_be_a_code_costs_no_attempt(box: TlsBox) -> None:
    codes = box.door.codes  # type: ignore[attr-defined]  # Door's
    codes.show()
    async with box.serving() as address:
        with pytest.raises(InvalidArgument):
            await pair(await look([address]), "hunter2", "desk")
    assert codes.left().attempts == 5


async def test_without_a_code_on_show_the_box_says_what_to_do(box: TlsBox) -> None:
    async with box.serving() as address:
        with pytest.raises(FailedPrecondition, match="edge pair --show"):
            await pair(await look([address]), "0000-0000", "desk")


class Middle(pairing_pb2_grpc.PairingServiceServicer):
    """Passes every message on to the box, as a machine in the middle does."""

    def __init__(self, address: str, box: TlsBox) -> None:
        self._address, self._box = address, box

    async def Pair(self, requests: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
        credentials = grpc.ssl_channel_credentials(self._box.identity.certificate)
        options = [("grpc.ssl_target_name_override", "edge-memory.box")]
        async with grpc.aio.secure_channel(self._address, credentials, options=options) as channel:
            call: Any = pairing_pb2_grpc.PairingServiceStub(channel).Pair()
            async for request in requests:
                await call.write(request)
                await context.write(await call.read())


async def test_a_machine_in_the_middle_gets_nothing_though_the_code_is_right(box: TlsBox, tmp_path: Path) -> None:
    middle = TlsBox(tmp_path / "middle")
    async with box.serving() as address:
        middle.door = Middle(address, box)
        async with middle.serving() as shown:
            code = box.door.codes.show()  # type: ignore[attr-defined]  # Door's
            with pytest.raises(EdgeError):
                await pair(await look([shown]), code, "desk")
    assert PairingStore().ids() == ()


# --- whom to trust


async def test_another_machine_at_the_boxs_address_is_refused_and_sees_no_token(
    box: TlsBox, air: Air, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.client.line.locate", functools.partial(locate, seconds=3.0))
    impostor = TlsBox(tmp_path / "impostor")
    async with impostor.serving() as address:
        PairingStore().save(box.known(address))
        air.announce(box.identity.id, address)
        async with AsyncClient.connect("attic") as client:
            with pytest.raises(Unauthenticated) as caught:
                await client.status()
    assert caught.value.reason == "WRONG_CERTIFICATE"
    assert impostor.identity.fingerprint in caught.value.message
    assert box.identity.fingerprint in caught.value.message
    assert impostor.script.calls == []


@pytest.mark.parametrize("form", ["hex", "colons", "words"])
async def test_a_fingerprint_is_as_good_as_a_pairing(box: TlsBox, form: str) -> None:
    digits = box.identity.fingerprint
    given = {
        "hex": digits,
        "colons": ":".join(digits[at : at + 2] for at in range(0, 64, 2)).upper(),
        "words": " ".join(box.identity.words),
    }[form]
    async with box.serving() as address, AsyncClient.connect(address, "s3cret", tls_fingerprint=given) as client:
        assert (await client.status()).ready
    assert box.script.metadata["authorization"] == "Bearer s3cret"


async def test_a_certificate_with_another_fingerprint_is_refused_with_both_named(
    box: TlsBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_TLS_FINGERPRINT", "ab" * 32)
    async with box.serving() as address, AsyncClient.connect(address, "s3cret") as client:
        with pytest.raises(Unauthenticated) as caught:
            await client.recall("x")
    assert "ab" * 32 in caught.value.message and box.identity.fingerprint in caught.value.message
    assert box.script.calls == []


async def test_a_box_that_is_not_paired_is_named_with_the_way_to_pair(box: TlsBox) -> None:
    # Nothing leaves this machine here, so plaintext is tried; what answers speaks TLS.
    async with box.serving() as address, AsyncClient.connect(address) as client:
        with pytest.raises(Unauthenticated, match="edge pair") as caught:
            await client.status()
    assert caught.value.reason == "NOT_PAIRED"


async def test_a_paired_machine_still_reaches_a_plain_box_on_loopback(box: TlsBox) -> None:
    PairingStore().save(box.known("192.0.2.1:7430"))
    server = grpc.aio.server()
    appliance_pb2_grpc.add_ApplianceServiceServicer_to_server(box.script, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with AsyncClient.connect(f"127.0.0.1:{port}", "") as client:
        assert (await client.status()).ready
    assert "authorization" not in box.script.metadata, "the token of a paired box is for that box alone"
    await server.stop(None)


async def test_who_listens_and_never_shakes_hands_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with AsyncClient.connect(address, tls_fingerprint="ab" * 32) as client:
        with pytest.raises(DeadlineExceeded):
            await client.status(timeout=0.2)
    server.close()


# --- boxes that move


async def test_a_box_is_found_by_mdns_when_it_left_its_addresses(box: TlsBox, air: Air) -> None:
    async with box.serving() as address:
        PairingStore().save(box.known("127.0.0.1:1"))
        air.announce(box.identity.id, address)
        async with AsyncClient.connect() as client:
            assert (await client.status()).ready
            assert client.address == address
    kept = PairingStore().get(box.identity.id)
    assert kept is not None
    assert kept.addresses == (address, "127.0.0.1:1")


async def test_an_ingest_goes_on_at_the_new_address_with_every_turn_once(box: TlsBox, air: Air) -> None:
    gate, half = asyncio.Event(), 150

    async def turns() -> AsyncIterator[Any]:
        for seq in range(300):
            if seq == half:
                await gate.wait()
            yield turn(f"sentence {seq}", source="a", session="b", seq=seq)

    results = []
    async with contextlib.AsyncExitStack() as places:
        first = contextlib.AsyncExitStack()
        PairingStore().save(box.known(await first.enter_async_context(box.serving())))
        client = await places.enter_async_context(AsyncClient.connect("attic"))
        async for result in client.ingest(turns(), batch=50):
            results.append(result)
            if result.position == half - 1:
                await first.aclose()
                second = await places.enter_async_context(box.serving())
                air.announce(box.identity.id, second)
                gate.set()
        assert client.address == second
    assert [result.position for result in results] == list(range(300))
    assert {result.state for result in results} <= {IngestState.STORED, IngestState.DUPLICATE}
    assert sorted(said.seq for said in box.script.log.values()) == list(range(300))


class Wire:
    """A cable to a box that can be cut: what is under way then is neither answered nor refused."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self.cut = False
        self._held: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            for writer in self._held:
                writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._held.append(writer)
        if self.cut:
            return
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        self._held.append(far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                if not self.cut:
                    sink.write(data)


async def test_a_call_that_waits_for_an_address_that_is_no_more_is_asked_again_at_the_new_one(
    box: TlsBox, air: Air, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.client.finder.LINGER_SECONDS", 0.0)
    monkeypatch.setattr("edge.client.finder.STAY_SECONDS", 0.3)
    async with box.serving() as address:
        wire = Wire(address)
        async with wire.laid() as old:
            PairingStore().save(box.known(old))
            air.announce(box.identity.id, old)
            async with AsyncClient.connect("attic") as client:
                assert (await client.recall("before")).context == "asked before"
                wire.cut = True
                asked = asyncio.create_task(client.recall("after"))
                await asyncio.sleep(0)
                air.announce(box.identity.id, address)
                assert (await asked).context == "asked after"
                assert client.address == address


async def test_an_announced_address_with_another_certificate_is_never_moved_to(
    box: TlsBox, air: Air, tmp_path: Path
) -> None:
    impostor = TlsBox(tmp_path / "impostor")
    at, moved = ["127.0.0.1:1"], asyncio.Event()

    async def move(address: str) -> None:
        at.append(address)
        moved.set()

    async with impostor.serving() as wrong, box.serving() as right:
        air.announce(box.identity.id, wrong, right)
        follower = Follower(digest_of(box.identity.certificate), at[:1], lambda: at[-1], move, browse=lambda: air)
        follower.start()
        follower.trouble()
        await moved.wait()
        await follower.stop()
    assert at == ["127.0.0.1:1", right]


async def test_a_box_that_is_nowhere_is_told_with_where_it_was_looked_for(
    box: TlsBox, air: Air, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.client.line.locate", functools.partial(locate, seconds=0.5))
    PairingStore().save(box.known("127.0.0.1:1"))
    async with AsyncClient.connect("attic") as client:
        with pytest.raises(Unavailable, match=r"attic is not found: not at 127\.0\.0\.1:1, and not by mDNS"):
            await client.status()
