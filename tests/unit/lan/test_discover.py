"""What is found is described safely and listed once; no network is touched."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zeroconf import ServiceStateChange

from edge.errors import Unavailable
from edge.lan.discover import MOST_BOXES, Browser, Found, described, discover, listed
from edge.lan.interfaces import MOST_ADDRESSES
from edge.lan.txt import SERVICE_TYPE, Txt, encode

TEXT = encode(Txt(id="a", version="0.1.0", api="v1", tls=True, fingerprint="ab" * 32))
BOX = Found("box", ("10.0.0.1",), 7430, "a", "0.1.0", "v1", True, "ab" * 32, "")

found = st.builds(
    replace,
    st.just(BOX),
    name=st.sampled_from(["box", "box (2)", "other"]),
    id=st.sampled_from(["", "a", "b"]),
    port=st.sampled_from([7430, 7431]),
    addresses=st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "2001:db8::1"]), min_size=1, unique=True).map(tuple),
)


def test_a_box_is_described_with_its_addresses_in_the_order_to_try_them() -> None:
    index, name = socket.if_nameindex()[0]
    addresses = [f"fe80::1%{index}", "2001:db8::1", "10.0.0.1"]
    assert described(f"box.{SERVICE_TYPE}", addresses, 7430, TEXT) == replace(
        BOX, addresses=("10.0.0.1", "2001:db8::1", f"fe80::1%{name}")
    )


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "::",
        "224.0.0.251",
        "ff02::fb",
        "fe80::1",
        "fe80::1%0",
        "fe80::1%99999",
        "host",
        "",
    ],
)
def test_an_address_that_leads_nowhere_is_no_way_to_a_box(address: str) -> None:
    assert described(f"box.{SERVICE_TYPE}", [address], 7430, TEXT) is None


def test_a_box_without_a_port_is_none() -> None:
    assert described(f"box.{SERVICE_TYPE}", ["10.0.0.1"], 0, TEXT) is None


@given(
    st.text(max_size=300),
    st.lists(st.text(max_size=40) | st.ip_addresses().map(str)),
    st.integers(0, 65535),
    st.binary(),
)
def test_no_records_are_too_bad_to_be_described(instance: str, addresses: list[str], port: int, text: bytes) -> None:
    box = described(instance, addresses, port, text)
    assert box is None or (len(box.name) <= 63 and 1 <= len(box.addresses) <= MOST_ADDRESSES)


@given(st.lists(found, max_size=12))
def test_the_list_is_the_same_in_whatever_order_the_boxes_were_heard(boxes: list[Found]) -> None:
    once = listed(boxes)
    assert listed(reversed(boxes)) == once
    assert [box.name for box in once] == sorted(box.name for box in once)
    # Nobody is lost: every way to every box is still there.
    ways = {(box.id, box.port, address) for box in boxes for address in box.addresses}
    assert {(box.id, box.port, address) for box in once for address in box.addresses} == ways


def test_a_box_that_avahi_publishes_too_is_listed_once() -> None:
    twin = replace(BOX, name="box on avahi", addresses=("10.0.0.1", "10.0.0.9"))
    assert listed([twin, BOX]) == [replace(BOX, addresses=("10.0.0.1", "10.0.0.9"))]


def test_a_copy_at_another_address_does_not_hide_the_box_it_copies() -> None:
    copy = replace(BOX, addresses=("10.0.0.66",))
    assert listed([copy, BOX]) == [BOX, copy]


def test_two_boxes_of_one_name_are_both_listed() -> None:
    other = replace(BOX, id="b", addresses=("10.0.0.2",))
    assert listed([other, BOX]) == [BOX, other]


def test_a_network_that_makes_up_boxes_does_not_fill_the_memory() -> None:
    assert len(listed(replace(BOX, id=f"id-{number}") for number in range(MOST_BOXES * 2))) == MOST_BOXES


async def test_a_machine_without_a_network_says_so_instead_of_listing_nothing() -> None:
    looking = Browser(look=lambda: ())
    looking.start()
    while not looking.error:  # noqa: ASYNC110  # it has no event: nobody else waits for a failure
        await asyncio.sleep(0)
    assert "no network interface is up" in looking.error
    await looking.stop()


async def test_finding_nothing_for_want_of_a_network_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Browser, "start", lambda self: None)
    monkeypatch.setattr(Browser, "error", "no network interface is up")
    with pytest.raises(Unavailable, match=r"no network interface is up.*host:port"):
        await discover(seconds=0)
    monkeypatch.setattr(Browser, "error", "")
    assert await discover(seconds=0) == []


class FakeInfo:
    """zeroconf's view of one name: what is in the cache, and how often the network was asked."""

    cached: ClassVar[dict[str, list[str]]] = {}
    asked: ClassVar[list[str]] = []
    port = 7430
    text = TEXT

    def __init__(self, service_type: str, name: str) -> None:
        self.name = name

    def load_from_cache(self, zeroconf: object) -> bool:
        return bool(self.cached.get(self.name))

    def parsed_scoped_addresses(self) -> list[str]:
        return self.cached.get(self.name, [])

    async def async_request(self, zeroconf: object, timeout: float, question_type: object) -> bool:
        self.asked.append(self.name)
        return self.load_from_cache(zeroconf)


class Net:
    """A browser over such names, at a time of the test's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.zeroconf: Any = SimpleNamespace(zeroconf=None)
        FakeInfo.cached, FakeInfo.asked = {}, []
        monkeypatch.setattr("edge.lan.discover.AsyncServiceInfo", FakeInfo)
        monkeypatch.setattr("edge.lan.discover.time", SimpleNamespace(monotonic=lambda: self.now))
        self.told: list[list[Found]] = []
        self.browser = Browser(self.told.append)

    async def hear(self, change: ServiceStateChange, name: str = "box") -> None:
        self.browser._heard(self.zeroconf.zeroconf, SERVICE_TYPE, f"{name}.{SERVICE_TYPE}", change)
        await self.look()

    async def look(self) -> None:
        await self.browser.look_after(self.zeroconf)
        while self.browser._asking:  # noqa: ASYNC110  # the questions of a fake are answered at the loop's next turn
            await asyncio.sleep(0)

    def at(self, *addresses: str, name: str = "box") -> None:
        FakeInfo.cached[f"{name}.{SERVICE_TYPE}"] = list(addresses)


async def test_what_the_cache_forgets_is_asked_for_and_the_box_stays_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(monkeypatch)
    net.at("10.0.0.1")
    await net.hear(ServiceStateChange.Added)
    assert net.browser.boxes == [BOX]
    net.at()
    net.now += 60
    FakeInfo.asked.clear()
    await net.look()
    assert FakeInfo.asked == [f"box.{SERVICE_TYPE}"]
    assert net.browser.boxes == [BOX]
    net.at("10.0.0.1")
    net.now += 119
    await net.look()
    assert net.told == [[BOX]]
    await net.browser.closing(net.zeroconf, for_good=True)


async def test_a_box_that_does_not_answer_for_two_minutes_is_gone_and_comes_back_when_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Net(monkeypatch)
    net.at("10.0.0.1")
    await net.hear(ServiceStateChange.Added)
    net.at()
    net.now += 121
    await net.look()
    net.at("10.0.0.2")
    await net.hear(ServiceStateChange.Updated)
    moved = replace(BOX, addresses=("10.0.0.2",))
    assert net.told == [[BOX], [], [moved]]
    await net.browser.closing(net.zeroconf, for_good=True)


async def test_names_without_end_are_neither_kept_nor_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(monkeypatch)
    for number in range(MOST_BOXES * 2):
        net.browser._heard(net.zeroconf.zeroconf, SERVICE_TYPE, f"{number}.{SERVICE_TYPE}", ServiceStateChange.Added)
    await net.look()
    assert len(set(FakeInfo.asked)) == MOST_BOXES
    await net.browser.closing(net.zeroconf, for_good=True)


async def test_a_goodbye_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(monkeypatch)
    net.at("10.0.0.1")
    await net.hear(ServiceStateChange.Added)
    await net.hear(ServiceStateChange.Removed)
    assert net.told == [[BOX], []]
    await net.browser.closing(net.zeroconf, for_good=True)


async def test_the_changes_begin_with_what_is_known() -> None:
    changes = Browser().changes()
    assert await anext(changes) == []
    await changes.aclose()
