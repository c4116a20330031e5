"""Which box is meant, whom to believe, and where to look."""

from __future__ import annotations

import asyncio
import contextlib
import socket as sockets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.client import AsyncClient
from edge.client.address import Target, choose, grpc_target, is_local
from edge.client.certificate import expected_at, joined, matches, parts, read_fingerprint, words_of
from edge.client.finder import Follower, addresses_of, locate
from edge.client.pairing import Code, own_name, read_uri
from edge.client.store import PairedBox, PairingStore, box_id
from edge.errors import EdgeError, InvalidArgument, Unauthenticated, Unavailable
from edge.lan.discover import Found
from edge.lan.handshake import check_name
from edge.lan.tls import Identity

DIGEST = bytes(range(32))
ID = box_id(DIGEST)


@pytest.fixture
def store(tmp_path: Path) -> PairingStore:
    return PairingStore(tmp_path / "boxes")


def pair_with(store: PairingStore, folder: Path, name: str) -> PairedBox:
    identity = Identity.open(folder)
    box = PairedBox(identity.id, name, identity.certificate, "edge_x", "desk", ("192.0.2.7:7430",), "2026-01-01")
    store.save(box)
    return box


# --- which box


def test_a_paired_box_goes_by_its_name_or_id(store: PairingStore, tmp_path: Path) -> None:
    box = pair_with(store, tmp_path / "a", "attic")
    environ = {"EDGE_DATA": str(tmp_path)}
    assert choose("attic", store=store, environ=environ) == Target(box=box)
    assert choose(box.id, store=store, environ=environ) == Target(box=box)
    assert choose(environ={**environ, "EDGE_ADDRESS": "attic"}, store=store) == Target(box=box)
    assert choose("cellar", store=store, environ=environ) == Target("cellar:7430")


@pytest.mark.parametrize("address", ["192.0.2.9", "nas.home", "localhost", "fe80::1", "192.0.2.9:7430"])
def test_no_box_draws_another_s_calls_to_itself_by_calling_itself_its_address(
    store: PairingStore, tmp_path: Path, address: str
) -> None:
    box = pair_with(store, tmp_path / "a", address)
    assert choose(address, store=store, environ={}).box is None
    assert choose(box.id, store=store, environ={}).box == box


def test_the_only_paired_box_is_meant_when_none_is_on_this_machine(
    store: PairingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.client.address._answers", lambda address: False)
    environ = {"EDGE_DATA": str(tmp_path)}
    assert choose(environ=environ, store=store) == Target("127.0.0.1:7430")
    first = pair_with(store, tmp_path / "a", "attic")
    assert choose(environ=environ, store=store) == Target(box=first)
    (tmp_path / "edge.sock").touch()
    assert choose(environ=environ, store=store) == Target(box=first), "a dead box's socket is no box"
    second = pair_with(store, tmp_path / "b", "cellar")
    with pytest.raises(InvalidArgument) as caught:
        choose(environ=environ, store=store)
    assert caught.value.field == "address"
    assert all(text in caught.value.message for text in ("attic", first.id, "cellar", second.id))


def test_a_box_on_this_machine_is_meant_before_a_paired_one(store: PairingStore, tmp_path: Path, socket: Path) -> None:
    pair_with(store, tmp_path / "a", "attic")
    with contextlib.closing(sockets.socket(sockets.AF_UNIX)) as listening:
        listening.bind(str(socket))
        listening.listen()
        found = choose(environ={"EDGE_DATA": str(socket.parent)}, store=store)
    assert found.address == f"unix:{socket}"


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("unix:/run/edge.sock", True),
        ("127.0.0.1:7430", True),
        ("127.9.9.9:7430", True),
        ("[::1]:7430", True),
        ("[::ffff:127.0.0.1]:7430", True),
        ("localhost:7430", True),
        ("192.168.1.5:7430", False),
        ("0.0.0.0:7430", False),
        ("[fe80::1%eth0]:7430", False),
        ("[::ffff:192.168.1.5]:7430", False),
        ("127.0.0.1.example:7430", False),
        ("localhost.example:7430", False),
        ("box:7430", False),
    ],
)
def test_only_this_machines_own_addresses_are_local(address: str, local: bool) -> None:
    assert is_local(address) is local


@pytest.mark.parametrize("address", ["192.0.2.5:7430", "box.lan", "[fe80::1%eth0]:7430"])
async def test_no_other_machine_is_talked_to_without_a_certificate_that_is_known(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = Identity.open(tmp_path / "a").certificate

    async def shown(address: str) -> bytes:
        return certificate

    monkeypatch.setattr("edge.client.line.shown_at", shown)
    async with AsyncClient.connect(address, "s3cret") as client:
        with pytest.raises(Unauthenticated, match="edge pair") as caught:
            await client.status()
    assert caught.value.reason == "NOT_PAIRED"
    assert "s3cret" not in caught.value.message


def test_the_interface_of_an_address_is_written_as_grpc_reads_it() -> None:
    assert grpc_target("[fe80::1%eth0]:7430") == "ipv6:[fe80::1%25eth0]:7430"
    assert grpc_target("box.lan:7430") == "box.lan:7430"


@given(st.ip_addresses().map(str) | st.just("fe80::1%eth0") | st.just("box.lan"), st.integers(1, 65535))
def test_host_and_port_come_apart_as_they_were_joined(host: str, port: int) -> None:
    assert parts(joined(host, port)) == (host, port)


# --- whom to believe


@given(st.binary(min_size=32, max_size=32))
def test_a_fingerprint_is_read_in_every_form_that_people_copy(digest: bytes) -> None:
    digits = digest.hex()
    colons = ":".join(digits[at : at + 2] for at in range(0, 64, 2)).upper()
    for form in (digits, colons, f"SHA256:{colons}", f"  {digits.upper()} \n"):
        assert read_fingerprint(form) == digits
        assert matches(read_fingerprint(form), digest)
    words = words_of(digest)
    for form in (words, words.upper(), words.replace(" ", "-")):
        assert matches(read_fingerprint(form), digest)


@pytest.mark.parametrize("text", ["ab" * 31, "ab" * 33, "xy" * 32, "one two three", "ab:cd", "", "ä b c d e f"])
def test_a_part_of_a_fingerprint_is_not_enough(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_fingerprint(text)
    assert caught.value.field == "tls_fingerprint"


def test_a_code_is_in_its_uri_and_in_nothing_else() -> None:
    code = Code("7K2M-9QXD", 600.0, DIGEST.hex(), "one two")
    assert "7K2M" not in repr(code)
    assert read_uri(code.uri) == ("7K2M-9QXD", DIGEST.hex())


@pytest.mark.parametrize("query", ["", "code=7K2M-9QXD", "code=7K2M-9QXD&fp=ab", "code=7K2M-9QXD&fp=a&fp=b"])
def test_a_uri_that_is_not_whole_is_refused_without_its_code(query: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_uri(f"edge-memory://pair?{query}")
    assert "7K2M" not in caught.value.message


@pytest.mark.parametrize("host", ["Küche", "---", "", "a" * 100, "MacBook-Pro.local", "_x", "日本"])
def test_every_host_name_makes_a_clients_name(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: host)
    assert check_name(own_name())


# --- where to look


class Air:
    def __init__(self, *lists: list[Found]) -> None:
        self.boxes: list[Found] = []
        self.stopped = False
        self._changes: asyncio.Queue[list[Found]] = asyncio.Queue()
        for boxes in lists:
            self.say(boxes)

    def say(self, boxes: list[Found]) -> None:
        self.boxes = boxes
        self._changes.put_nowait(boxes)

    def start(self) -> None:
        pass

    async def stop(self) -> None:
        self.stopped = True

    async def changes(self) -> AsyncIterator[list[Found]]:
        while True:
            yield await self._changes.get()


class House:
    """Which certificate each address shows."""

    def __init__(self, **digests: bytes) -> None:
        self.digests = digests
        self.asked: list[str] = []
        self._asked = asyncio.Event()

    async def times(self, address: str, count: int) -> None:
        """Returns once the address was tried so often."""
        while self.asked.count(address) < count:
            self._asked.clear()
            await self._asked.wait()

    async def probe(self, address: str, digest: bytes) -> None:
        self.asked.append(address)
        self._asked.set()
        host = parts(address)[0]
        if host not in self.digests:
            raise Unavailable(f"nobody at {address}")
        if self.digests[host] != digest:
            raise Unauthenticated(f"another at {address}", reason="WRONG_CERTIFICATE")


def found(*hosts: str, id_: str = ID) -> Found:
    return Found("attic", hosts, 7430, id_, "0.1.0", "v1", True, id_, "")


def test_a_boxs_addresses_are_those_under_its_id() -> None:
    assert addresses_of([found("a", "fe80::1%eth0"), found("b", id_="0" * 16)], ID) == ["a:7430", "[fe80::1%eth0]:7430"]


async def test_an_address_that_still_works_is_enough() -> None:
    house, air = House(old=DIGEST), Air()
    assert await locate(DIGEST, ["gone:1", "old:1"], "attic", probe=house.probe, browse=lambda: air) == "old:1"
    assert not air.stopped, "it was never started"


async def test_whoever_makes_up_thousands_of_addresses_does_not_have_them_all_tried_at_once() -> None:
    trying: set[str] = set()
    most = 0

    async def probe(address: str, digest: bytes) -> None:
        nonlocal most
        trying.add(address)
        most = max(most, len(trying))
        await asyncio.sleep(0)
        trying.remove(address)
        if address != "new:7430":
            raise Unavailable(f"nobody at {address}")

    air = Air()
    air.say([found(*(f"10.7.{host // 256}.{host % 256}" for host in range(4000)), "new")])
    assert await locate(DIGEST, (), "attic", probe=probe, browse=lambda: air) == "new:7430"
    assert 1 < most <= 200


@pytest.mark.parametrize("address", ["attic", "unix:/x", "127.0.0.1:99999", "127.0.0.1:-1", "\0:1", ":", "[::1:1", ""])
async def test_an_address_that_is_none_is_one_where_nobody_answers(address: str) -> None:
    with pytest.raises(Unavailable) as caught:
        await expected_at(address, DIGEST)
    assert caught.value.reason == "UNREACHABLE"


async def test_mdns_finds_what_moved_and_passes_by_who_only_says_so() -> None:
    house, air = House(thief=b"x" * 32, new=DIGEST), Air([found("thief")], [found("thief", "new")])
    assert await locate(DIGEST, ["gone:1"], "attic", probe=house.probe, browse=lambda: air) == "new:7430"
    assert house.asked.count("thief:7430") == 1
    assert air.stopped


@pytest.mark.parametrize(("digests", "kind"), [({}, Unavailable), ({"thief": b"x" * 32}, Unauthenticated)])
async def test_a_search_in_vain_tells_the_best_reason(digests: dict[str, bytes], kind: type[EdgeError]) -> None:
    house, air = House(**digests), Air([found("thief")])
    with pytest.raises(kind):
        await locate(DIGEST, ["gone:1"], "attic", seconds=0.5, probe=house.probe, browse=lambda: air)


class Followed:
    """A follower at work, and where it moved to."""

    def __init__(self, house: House, air: Air, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("LINGER_SECONDS", "TROUBLE_SECONDS", "STAY_SECONDS"):
            monkeypatch.setattr(f"edge.client.finder.{name}", 0.02)
        self.at = ["old:7430"]
        self.moved = asyncio.Event()
        self.follower = Follower(
            DIGEST, self.at[:1], lambda: self.at[-1], self._move, probe=house.probe, browse=lambda: air
        )
        self.follower.start()

    async def _move(self, address: str) -> None:
        self.at.append(address)
        self.moved.set()


async def test_a_box_that_announces_a_new_address_is_followed_before_any_call_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house, air = House(new=DIGEST), Air([found("old")])
    followed = Followed(house, air, monkeypatch)
    air.say([found("new")])
    await followed.moved.wait()
    await followed.follower.stop()
    assert followed.at == ["old:7430", "new:7430"]
    assert air.stopped


async def test_an_address_that_works_is_kept_though_another_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    house, air = House(old=DIGEST, new=DIGEST), Air([found("new")])
    followed = Followed(house, air, monkeypatch)
    await house.times("new:7430", 1)
    air.say([found("old", "new")])
    await followed.follower.stop()
    assert followed.at == ["old:7430"]


async def test_while_calls_fail_it_looks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    house, air = House(), Air([found("old", "new")])
    followed = Followed(house, air, monkeypatch)
    followed.follower.trouble()
    await house.times("new:7430", 3)
    house.digests["new"] = DIGEST
    await followed.moved.wait()
    await followed.follower.stop()
    assert followed.at == ["old:7430", "new:7430"]


async def test_who_stops_following_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    house, air = House(old=DIGEST), Air([found("old")])
    before = asyncio.all_tasks()
    followed = Followed(house, air, monkeypatch)
    # It follows, waits for a change, and waits for trouble.
    while len(asyncio.all_tasks() - before) < 3:  # noqa: ASYNC110  # tasks tell nobody that they have begun
        await asyncio.sleep(0)
    await followed.follower.stop()
    assert asyncio.all_tasks() == before
