"""A machine in the middle of a pairing: a TLS server of its own that the client takes for the box, a hundred times."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_calls import SECONDS

from edge.errors import EdgeError, PermissionDenied
from edge.lan.handshake import MAC_BYTES, BoxPairing, ClientPairing, Granted
from edge.lan.pairing import Pairings
from edge.lan.tls import SERVER_NAME, Identity, fingerprint
from edge.lan.tokens import Tokens
from edge.service.intercept import Door
from edge.service.pairing import PairingService
from edge.v1 import pairing_pb2, pairing_pb2_grpc

TIMES = 100
GUESS = "00000000"
Element, Grant, Confirm = pairing_pb2.PairElement, pairing_pb2.PairGrant, pairing_pb2.PairConfirm


class Clock:
    """A minute later at each pairing, so that no attempt is one too many."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> int:
        return 1_750_000_000_000_000 + int(self.seconds * 1e6)

    def monotonic(self) -> float:
        return self.seconds


@contextlib.asynccontextmanager
async def served(
    servicer: pairing_pb2_grpc.PairingServiceServicer, identity: Identity, *interceptors: Any
) -> AsyncIterator[str]:
    server = grpc.aio.server(interceptors=interceptors, options=[("grpc.so_reuseport", 0)])
    pairing_pb2_grpc.add_PairingServiceServicer_to_server(servicer, server)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(identity.key, identity.certificate)]))
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def connected(address: str, certificate: bytes) -> grpc.aio.Channel:
    options = [("grpc.ssl_target_name_override", SERVER_NAME), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(certificate), options)


class Conversation:
    """One Pair call, step by step; `heard` has what came back, in order."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.heard: list[str] = []
        self._call = pairing_pb2_grpc.PairingServiceStub(channel).Pair(timeout=SECONDS)

    async def ask(self, request: pairing_pb2.PairRequest) -> pairing_pb2.PairResponse:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._call.write(request)
        response = await self._call.read()
        if response is grpc.aio.EOF:
            raise PermissionDenied("it ended")
        self.heard.append(str(response.WhichOneof("step")))
        return response  # type: ignore[no-any-return]  # the stubs know no type

    async def start(self, name: str, element: bytes) -> bytes:
        request = pairing_pb2.PairRequest(start=pairing_pb2.PairStart(name=name, element=element))
        return bytes((await self.ask(request)).element.element)

    async def confirm(self, mac: bytes) -> pairing_pb2.PairGrant:
        return (await self.ask(pairing_pb2.PairRequest(confirm=Confirm(mac=mac)))).grant

    def end(self) -> None:
        self._call.cancel()


class Middle(pairing_pb2_grpc.PairingServiceServicer):
    """What the client talks to. It knows all but the code; each of its ways is one of TRICKS."""

    def __init__(self, channel: grpc.aio.Channel, box: bytes, own: bytes) -> None:
        self.channel = channel
        # Digests of the box's certificate and of its own.
        self.box, self.own = box, own
        self.trick: Callable[[Middle, Any, Any, Conversation], Awaitable[None]] = relay
        self.heard: list[str] = []
        # Guesses that were right.
        self.won = 0

    async def Pair(self, requests: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
        behind = Conversation(self.channel)
        try:
            await self.trick(self, requests, context, behind)
        except (grpc.RpcError, EdgeError):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the box said no")
        finally:
            self.heard = behind.heard
            behind.end()


async def relay(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Passes every message on as it is."""
    async for request in requests:
        await context.write(await behind.ask(request))


async def play_the_box(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Answers by itself, with a guess of the code, and grants whatever the client proves."""
    start = (await anext(requests)).start
    ours = BoxPairing(GUESS, start.name, middle.own)
    await context.write(pairing_pb2.PairResponse(element=Element(element=ours.start(start.element))))
    mac = (await anext(requests)).confirm.mac
    with contextlib.suppress(PermissionDenied):
        ours.check(mac)
        middle.won += 1
    # The best it has: the client's own proof, and any seal.
    await context.write(pairing_pb2.PairResponse(grant=Grant(mac=mac, sealed=b"s" * 120)))


async def play_the_client(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Uses the client's coming to pair for itself, with a guess of the code."""
    start = (await anext(requests)).start
    ours = ClientPairing(GUESS, start.name, middle.box)
    await behind.confirm(ours.confirm(await behind.start(start.name, ours.start())))


async def play_both(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Pairs with either side by elements of its own, and hands each the other's proof."""
    start = (await anext(requests)).start
    to_client = BoxPairing(GUESS, start.name, middle.own)
    to_box = ClientPairing(GUESS, start.name, middle.box)
    await behind.start(start.name, to_box.start())
    await context.write(pairing_pb2.PairResponse(element=Element(element=to_client.start(start.element))))
    mac = (await anext(requests)).confirm.mac
    grant = await behind.confirm(mac)
    await context.write(pairing_pb2.PairResponse(grant=grant))


async def swap_the_name(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Relays, and pairs under a name of its choice."""
    request = await anext(requests)
    request.start.name = "thief"
    await context.write(await behind.ask(request))
    await context.write(await behind.ask(await anext(requests)))


async def reflect(middle: Middle, requests: Any, context: Any, behind: Conversation) -> None:
    """Sends the client what it said itself."""
    start = (await anext(requests)).start
    await context.write(pairing_pb2.PairResponse(element=Element(element=start.element)))
    mac = (await anext(requests)).confirm.mac
    await context.write(pairing_pb2.PairResponse(grant=Grant(mac=mac, sealed=mac)))


TRICKS = (relay, play_the_box, play_the_client, play_both, swap_the_name, reflect)


class Stage:
    """The box, the machine in the middle, and a way to each."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.identity = Identity.open(folder / "box")
        self.other = Identity.open(folder / "middle")
        self.tokens = Tokens(folder / "box.sqlite", self.clock)
        self.pairings = Pairings(self.identity, self.tokens, "attic", self.clock)
        self.codes: list[str] = []

    def code(self) -> str:
        self.clock.seconds += 61
        code, _ = self.pairings.show()
        self.codes.append(code)
        return code


async def paired(address: str, certificate: bytes, code: str, name: str) -> Granted:
    """As a client that saw this certificate at this address. Raises what a client does."""
    async with connected(address, certificate) as channel:
        conversation = Conversation(channel)
        try:
            ours = ClientPairing(code, name, fingerprint(certificate))
            element = await conversation.start(name, ours.start())
            grant = await conversation.confirm(ours.confirm(element))
            return ours.finish(grant.mac, grant.sealed)
        finally:
            conversation.end()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.tokens.close()


async def test_a_machine_in_the_middle_fails_a_hundred_times_of_a_hundred_and_sees_no_grant(stage: Stage) -> None:
    heard: Counter[tuple[str, ...]] = Counter()
    with ThreadPoolExecutor(1) as pool:
        service = PairingService(stage.pairings, pool)
        door = Door(stage.tokens, no_auth=False, streams=16)
        async with (
            served(service, stage.identity, door) as box,
            connected(box, stage.identity.certificate) as channel,
        ):
            middle = Middle(channel, stage.identity.digest, stage.other.digest)
            async with served(middle, stage.other) as between:
                for number in range(TIMES):
                    middle.trick = TRICKS[number % len(TRICKS)]
                    with pytest.raises((PermissionDenied, grpc.RpcError)):
                        # The client has the right code.
                        await paired(between, stage.other.certificate, stage.code(), f"c{number}")
                    await door.drained()
                    heard[tuple(middle.heard)] += 1
            # Of the box it has heard elements, on which no code can be tested, and nothing after them.
            assert set(heard) <= {(), ("element",)}
            assert heard[("element",)] > TIMES // 2
            assert not middle.won
            assert not stage.tokens.listed()
            # With nobody in between the same client and box agree; and so they do through a relay that has the box's
            # own key, so that it was the certificate that the others failed by.
            assert (await paired(box, stage.identity.certificate, stage.code(), "desk")).box_name == "attic"
            middle.trick = relay
            async with served(middle, stage.identity) as stolen:
                assert (await paired(stolen, stage.identity.certificate, stage.code(), "shelf")).box_name == "attic"
    assert sorted(token.name for token in stage.tokens.listed()) == ["desk", "shelf"]


async def test_the_box_s_proof_never_comes_before_the_client_s(stage: Stage) -> None:
    code = stage.code()
    with ThreadPoolExecutor(1) as pool:
        async with (
            served(PairingService(stage.pairings, pool), stage.identity) as box,
            connected(box, stage.identity.certificate) as channel,
        ):
            conversation = Conversation(channel)
            ours = ClientPairing(code, "desk", stage.identity.digest)
            request = pairing_pb2.PairRequest(start=pairing_pb2.PairStart(name="desk", element=ours.start()))
            answer = await conversation.ask(request)
            # Field by field: an element, and not a byte more.
            assert answer == pairing_pb2.PairResponse(element=Element(element=answer.element.element))
            with pytest.raises((PermissionDenied, grpc.RpcError)):
                await conversation.confirm(b"m" * MAC_BYTES)
            assert conversation.heard == ["element"]
            conversation.end()


async def test_a_fake_of_a_paired_box_is_not_spoken_to(stage: Stage) -> None:
    """Same name, same TXT, another certificate: the connection fails, so that it never sees a token."""
    seen: list[Any] = []

    class Fake(pairing_pb2_grpc.PairingServiceServicer):
        async def Pair(self, requests: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
            seen.append(context.invocation_metadata())

    async with served(Fake(), stage.other) as fake, connected(fake, stage.identity.certificate) as channel:
        call = pairing_pb2_grpc.PairingServiceStub(channel).Pair(
            timeout=SECONDS, metadata=(("authorization", "Bearer edge_secret"),)
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert not seen
