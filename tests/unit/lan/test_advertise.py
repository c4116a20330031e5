"""How the box follows its network: with a zeroconf and interfaces of the test's own, no port and no waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from zeroconf import NonUniqueNameException, ServiceInfo

from edge.errors import InvalidArgument
from edge.lan.advertise import MOST_NAMES, Advertiser
from edge.lan.interfaces import MOST_ADDRESSES, Interface, choice, published
from edge.lan.link import Link
from edge.lan.txt import SERVICE_TYPE, Txt

TXT = Txt(id="a", version="0.1.0", api="v1", tls=True, fingerprint="ab" * 32)
ETHERNET = Interface("eth0", 2, ("192.168.1.5",), ("2001:db8::5", "fe80::5"))
WIRELESS = Interface("wlan0", 3, (), ("fe80::6",))


class FakeZeroconf:
    """As much of AsyncZeroconf as is used: it remembers what is registered, and refuses the names in `taken`."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self.taken = taken or set()
        self.registered: list[ServiceInfo] = []
        self.updated = 0
        self.goodbyes: list[str] = []
        self.closed = False
        self.listeners: list[Any] = []
        # Its zeroconf and registry are itself: both are reached through it.
        self.zeroconf = self.registry = self

    async def async_wait_for_start(self) -> None: ...

    def async_add_listener(self, listener: Any, question: object) -> None:
        self.listeners.append(listener)

    async def async_register_service(self, info: ServiceInfo, allow_name_change: bool) -> Any:
        if info.name.removesuffix(f".{SERVICE_TYPE}") in self.taken:
            raise NonUniqueNameException
        self.registered.append(info)
        return self._done()

    async def async_update_service(self, info: ServiceInfo) -> Any:
        self.updated += 1
        return self._done()

    def _done(self) -> Any:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def async_remove(self, info: ServiceInfo) -> None:
        self.registered.remove(info)

    async def async_close(self) -> None:
        self.goodbyes = [info.name for info in self.registered]
        self.closed = True

    def hear(self, server: str, name: str = "box", port: int = 7430) -> None:
        """Another host says that it has this name."""
        info = ServiceInfo(SERVICE_TYPE, f"{name}.{SERVICE_TYPE}", port=port, server=server, properties=b"")
        record = info.dns_service()
        record.created = 1e15
        update = type("Update", (), {"new": record, "old": None})
        for listener in self.listeners:
            listener.async_update_records(self, 0, [update])


async def opened(advertiser: Advertiser, taken: set[str] | None = None) -> FakeZeroconf:
    fake = FakeZeroconf(taken)
    await advertiser.opened(fake, (ETHERNET, WIRELESS))  # type: ignore[arg-type]  # a fake of it
    return fake


def names(fake: FakeZeroconf) -> list[str]:
    return [info.name.removesuffix(f".{SERVICE_TYPE}") for info in fake.registered]


async def test_a_box_is_published_with_the_addresses_of_all_its_interfaces() -> None:
    box = Advertiser("box", 7430, TXT)
    fake = await opened(box)
    [info] = fake.registered
    assert (info.port, info.decoded_properties["id"]) == (7430, "a")
    assert info.parsed_addresses() == ["192.168.1.5", "2001:db8::5", "fe80::5", "fe80::6"]
    assert (box.status().name, box.status().addresses) == ("box", tuple(info.parsed_addresses()))


async def test_a_taken_name_gets_a_number_also_when_it_has_no_room_for_one() -> None:
    fake = await opened(Advertiser("記" * 21, 7430, TXT), taken={"記" * 21, "記" * 19 + " (2)"})
    assert names(fake) == ["記" * 19 + " (3)"]


async def test_a_neighbour_that_claims_every_name_is_not_followed_for_ever() -> None:
    box = Advertiser("box", 7430, TXT)
    everything = {"box", *(f"box ({number})" for number in range(2, 1000))}
    with pytest.raises(OSError, match=rf"{MOST_NAMES} names like box are all taken"):
        await opened(box, taken=everything)
    assert names(await opened(box)) == ["box"]


@pytest.mark.parametrize(("server", "expected"), [("aaa.local.", ["box (2)"]), ("zzz.local.", ["box"])])
async def test_of_two_hosts_with_one_name_the_one_that_sorts_first_keeps_it(server: str, expected: list[str]) -> None:
    box = Advertiser("box", 7430, TXT)
    fake = await opened(box)
    fake.hear(server, name="BOX")
    await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert names(fake) == expected
    assert fake.updated == (1 if expected == ["box"] else 0)
    assert box.status().name == expected[0]
    # It is done once, not again at every round.
    await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert names(fake) == expected


async def test_a_rival_that_is_heard_while_the_name_changes_is_met_at_the_next_round() -> None:
    box = Advertiser("box", 7430, TXT)
    fake = await opened(box)
    register = fake.async_register_service

    async def register_and_hear(info: ServiceInfo, allow_name_change: bool) -> Any:
        fake.hear("aaa.local.", name="box (2)")
        return await register(info, allow_name_change)

    fake.async_register_service = register_and_hear  # type: ignore[method-assign]  # the test's neighbour
    fake.hear("aaa.local.")
    await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert names(fake) == ["box (2)"]
    await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert names(fake) == ["box (3)"]


async def test_a_box_that_yields_and_finds_no_name_is_closed_and_tried_again() -> None:
    box = Advertiser("box", 7430, TXT)
    fake = await opened(box)
    fake.taken = {f"box ({number})" for number in range(2, 100)}
    fake.hear("aaa.local.")
    with pytest.raises(OSError, match="all taken"):
        await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert box.status().name == ""
    await box.closing(fake, for_good=False)  # type: ignore[arg-type]  # a fake of it
    assert fake.registered == []


async def test_hosts_of_other_names_and_our_own_echo_are_no_rivals() -> None:
    box = Advertiser("box", 7430, TXT)
    fake = await opened(box)
    fake.hear("aaa.local.", name="another")
    fake.hear(str(fake.registered[0].server))
    await box.look_after(fake)  # type: ignore[arg-type]  # a fake of it
    assert (names(fake), fake.updated) == (["box"], 0)


async def test_a_txt_record_that_cannot_be_published_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgument):
        Advertiser("box", 7430, Txt("", "1", "v1", False, ""))


class World:
    """The interfaces and the time of a test, and the link that lives in them."""

    def __init__(self) -> None:
        self.up: tuple[Interface, ...] = (ETHERNET,)
        self.box = Advertiser("box", 7430, TXT)
        self.opened: list[FakeZeroconf] = []
        self.fails: Exception | None = None
        self.now = 0.0
        self.jump = 0.0
        self.link = Link(self.box, look=lambda: self.up, every=0.0, open_=self._open, clock=self._clock)  # type: ignore[arg-type]  # a fake of it

    def _open(self, interfaces: object) -> FakeZeroconf:
        if self.fails is not None:
            raise self.fails
        self.opened.append(FakeZeroconf())
        return self.opened[-1]

    def _clock(self) -> float:
        self.now += self.jump
        return self.now

    async def until(self, happened: Callable[[], object]) -> None:
        while not happened():  # noqa: ASYNC110  # nothing waits for real time here, and the link has no such events
            await asyncio.sleep(0)


async def test_changed_interfaces_are_joined_and_the_box_is_not_away_meanwhile() -> None:
    world = World()
    await world.link.look_once()
    await world.link.look_once()
    assert len(world.opened) == 1
    world.up = (ETHERNET, WIRELESS)
    await world.link.look_once()
    first, second = world.opened
    assert (first.closed, first.goodbyes) == (True, [])
    assert second.registered[0].parsed_addresses() == published((ETHERNET, WIRELESS))
    assert second.registered[0].name == f"box.{SERVICE_TYPE}"


async def test_a_box_that_ends_says_goodbye_once() -> None:
    world = World()
    await world.link.look_once()
    await world.link.stop()
    await world.link.stop()
    assert world.opened[0].goodbyes == [f"box.{SERVICE_TYPE}"]


async def test_after_a_sleep_of_the_device_the_box_is_announced_again() -> None:
    world = World()
    world.link.start()
    await world.until(lambda: world.opened and names(world.opened[0]))
    world.jump = 3600.0
    await world.until(lambda: len(world.opened) > 1 and names(world.opened[1]))
    world.jump = 0.0
    await world.link.stop()
    assert world.opened[0].closed


async def test_a_failure_is_told_once_and_tried_again_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "edge.lan")
    world = World()
    world.fails = OSError("Address already in use")
    tries = 0

    def count() -> tuple[Interface, ...]:
        nonlocal tries
        tries += 1
        return world.up

    world.link._look = count
    world.link.start()
    await world.until(lambda: tries > 5)
    assert "Address already in use" in world.link.error
    world.fails = None
    await world.until(lambda: world.opened and names(world.opened[0]) and not world.link.error)
    await world.link.stop()
    messages = [record.getMessage() for record in caplog.records]
    assert sum("Address already in use" in message for message in messages) == 1
    assert sum("works again" in message for message in messages) == 1


async def test_a_failure_while_publishing_closes_what_was_open() -> None:
    world = World()
    world.box.opened = fail  # type: ignore[method-assign]  # the test's fault
    world.link.start()
    await world.until(lambda: len(world.opened) > 2)
    await world.link.stop()
    assert all(fake.closed for fake in world.opened)


async def fail(*_: object) -> None:
    raise OSError("no buffer space")


async def test_stopping_what_never_started_is_quiet() -> None:
    await Advertiser("box", 7430, TXT).stop()


def test_zeroconf_is_told_one_address_a_family_and_interface() -> None:
    assert choice((ETHERNET, WIRELESS)) == ["192.168.1.5", 2, 3]


def test_a_machine_with_hundreds_of_addresses_publishes_those_that_fit() -> None:
    crowded = Interface("eth0", 2, tuple(f"10.0.0.{n}" for n in range(200)), ("fe80::1",))
    assert len(published((crowded,))) == MOST_ADDRESSES
