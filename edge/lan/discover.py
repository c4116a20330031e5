"""Finds the boxes of the house by mDNS, once or for as long as somebody wants to know where they are."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace

from zeroconf import DNSQuestionType, Error, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from edge.errors import Unavailable
from edge.lan.interfaces import MOST_ADDRESSES, rank, usable
from edge.lan.link import LOOK_SECONDS, Interfaces, Link, Look
from edge.lan.txt import NAME_BYTES, SERVICE_TYPE, decode, visible

# A network with more is making them up.
MOST_BOXES = 256
_ASK_MILLISECONDS = 3000
# What comes in one breath is taken stock of together, however many boxes somebody makes up.
_GATHER_SECONDS = 0.05
# Replaced records live on for a second (RFC 6762, 10.2), after which the old addresses are gone.
_SETTLED_SECONDS = 1.2
# How long a box is listed that does not answer, which is also how long records of a host live (RFC 6762, 10). It keeps
# both of two boxes that claim one name, which take turns in zeroconf's cache.
_REMEMBER_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Found:
    """One box, as it describes itself: nothing here is proven before it is paired. All of it is fit to be shown.

    `addresses` are in the order to try them; link-local IPv6 has its interface (fe80::1%eth0). `problem` says what is
    wrong with its TXT record, in words; the fields it should have held are empty then.
    """

    name: str
    addresses: tuple[str, ...]
    port: int
    id: str
    version: str
    api: str
    tls: bool
    fingerprint: str
    problem: str


def described(instance: str, addresses: Iterable[str], port: int, text: bytes) -> Found | None:
    """What a box's records say; None when there is no way to reach it. Never raises, whatever the records hold."""
    reachable = sorted(
        {good for address in addresses if (good := _reachable(address))}, key=lambda one: (rank(one), one)
    )
    if not port or not reachable:
        return None
    txt, problem = decode(text)
    return Found(
        name=visible(instance.removesuffix(f".{SERVICE_TYPE}"), NAME_BYTES),
        addresses=tuple(reachable[:MOST_ADDRESSES]),
        port=port,
        id=txt.id,
        version=txt.version,
        api=txt.api,
        tls=txt.tls,
        fingerprint=txt.fingerprint,
        problem=problem,
    )


def _reachable(text: str) -> str:
    """The address as sockets want it; empty for one that cannot be another machine's, or lacks its interface."""
    bare, _, scope = text.partition("%")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return ""
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return ""
    if address.version == 4 or not address.is_link_local:
        return bare
    if not scope.isdecimal() or scope == "0":
        return ""
    with contextlib.suppress(OSError, OverflowError):
        return f"{bare}%{socket.if_indextoname(int(scope))}"
    return ""


def listed(found: Iterable[Found]) -> list[Found]:
    """Sorted, and each box once, also when it is published under two names or by avahi too.

    Two that say the same id are one box only if they share an address: a copy must not hide the one it copies.
    """
    boxes: list[Found] = []
    for one in sorted(found, key=lambda box: (box.name, box.id, box.fingerprint, box.port, box.addresses)):
        for at, other in enumerate(boxes):
            same = one.id and (one.id, one.fingerprint, one.port) == (other.id, other.fingerprint, other.port)
            if same and set(one.addresses) & set(other.addresses):
                addresses = sorted({*one.addresses, *other.addresses}, key=lambda text: (rank(text), text))
                boxes[at] = replace(other, addresses=tuple(addresses[:MOST_ADDRESSES]))
                break
        else:
            boxes.append(one)
    return boxes[:MOST_BOXES]


class Browser:
    """Knows at every moment which boxes there are, in one event loop that it never blocks.

    `on_change` is called in that loop with the new list whenever it changes, and must not raise; `changes` is the same
    as an iterator. A box that says goodbye leaves the list, one with a new address is listed with that.
    """

    purpose = "looking for boxes"

    def __init__(
        self,
        on_change: Callable[[list[Found]], None] | None = None,
        *,
        look: Look = usable,
        every: float = LOOK_SECONDS,
    ) -> None:
        self._on_change = on_change
        self._link = Link(self, look=look, every=every)
        self._browser: AsyncServiceBrowser | None = None
        # Full names, and when each was last known to be somewhere.
        self._names: dict[str, float] = {}
        # By name, id and fingerprint: the box, and when it was last seen.
        self._seen: dict[tuple[str, str, str], tuple[Found, float]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._soon: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._boxes: list[Found] = []
        self._changed = asyncio.Event()

    @property
    def boxes(self) -> list[Found]:
        """Those known now, sorted by name."""
        return list(self._boxes)

    @property
    def error(self) -> str:
        """Why nothing can be found at present; empty while all is well."""
        return self._link.error

    def start(self) -> None:
        """Begins to look, in the running event loop, and returns at once."""
        self._link.start()

    async def stop(self) -> None:
        await self._link.stop()

    async def changes(self) -> AsyncIterator[list[Found]]:
        """The boxes known now, and the list anew each time it changes; without end. Lists in between may be skipped."""
        told: list[Found] | None = None
        while True:
            changed = self._changed
            if self._boxes != told:
                told = self._boxes
                yield list(told)
            else:
                await changed.wait()

    async def opened(self, zeroconf: AsyncZeroconf, on: Interfaces) -> None:  # noqa: ARG002  # the link's face
        # By multicast: a unicast answer to port 5353 reaches only one of the programs that listen on it.
        self._browser = AsyncServiceBrowser(
            zeroconf.zeroconf, SERVICE_TYPE, handlers=[self._heard], question_type=DNSQuestionType.QM
        )

    async def look_after(self, zeroconf: AsyncZeroconf) -> None:
        # zeroconf asks again for names alone; where they are it forgets after two minutes.
        for name in self._names:
            self._ask(zeroconf.zeroconf, name)
        self._take_stock(zeroconf.zeroconf)

    async def closing(self, zeroconf: AsyncZeroconf, *, for_good: bool) -> None:  # noqa: ARG002  # the link's face
        for task in self._asking.values():
            task.cancel()
        for timer in (self._soon, self._later):
            if timer is not None:
                timer.cancel()
        browser, self._browser, self._soon, self._later = self._browser, None, None, None
        self._names.clear()
        self._take_stock(zeroconf.zeroconf)
        if browser is not None:
            await browser.async_cancel()

    def _heard(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:  # noqa: ARG002  # zeroconf's names
        if state_change is ServiceStateChange.Removed:
            self._names.pop(name, None)
        elif name in self._names or len(self._names) < MOST_BOXES:
            self._names.setdefault(name, time.monotonic())
            self._ask(zeroconf, name)
        self._gather(zeroconf)

    def _gather(self, zeroconf: Zeroconf) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._gathered, zeroconf)

    def _gathered(self, zeroconf: Zeroconf) -> None:
        self._soon = None
        self._take_stock(zeroconf)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_SETTLED_SECONDS, self._settled, zeroconf)

    def _settled(self, zeroconf: Zeroconf) -> None:
        self._later = None
        self._take_stock(zeroconf)

    def _ask(self, zeroconf: Zeroconf, name: str) -> None:
        if name not in self._asking:
            task = asyncio.ensure_future(self._answer(zeroconf, name))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))

    async def _answer(self, zeroconf: Zeroconf, name: str) -> None:
        """Gets what is not known of a name into zeroconf's cache; asks nobody when all is."""
        with contextlib.suppress(Error, OSError):
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            await info.async_request(zeroconf, _ASK_MILLISECONDS, DNSQuestionType.QM)
            self._gather(zeroconf)

    def _take_stock(self, zeroconf: Zeroconf) -> None:
        now = time.monotonic()
        for name in self._names:
            # A name that zeroconf does not accept is not one of ours.
            with contextlib.suppress(Error):
                info = AsyncServiceInfo(SERVICE_TYPE, name)
                info.load_from_cache(zeroconf)
                box = described(name, info.parsed_scoped_addresses(), info.port or 0, info.text)
                if box is not None:
                    self._names[name] = now
                    self._seen[name, box.id, box.fingerprint] = (box, now)
        self._names = {name: known for name, known in self._names.items() if now - known < _REMEMBER_SECONDS}
        self._seen = {
            key: (box, seen)
            for key, (box, seen) in self._seen.items()
            if key[0] in self._names and now - seen < _REMEMBER_SECONDS
        }
        boxes = listed(box for box, _ in self._seen.values())
        if boxes != self._boxes:
            self._boxes = boxes
            self._changed.set()
            self._changed = asyncio.Event()
            if self._on_change is not None:
                self._on_change(list(boxes))


async def discover(
    seconds: float = 3.0,
    *,
    until: Callable[[list[Found]], bool] | None = None,
    look: Look = usable,
) -> list[Found]:
    """The boxes that answer within so many seconds, sorted by name; earlier when `until` says it has seen enough.

    Raises Unavailable when nothing was found because mDNS does not work here.
    """
    browser = Browser(look=look)
    browser.start()
    try:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_enough(browser, until), seconds)
        boxes, error = browser.boxes, browser.error
    finally:
        await browser.stop()
    if not boxes and error:
        raise Unavailable(f"cannot look for boxes ({error}); name the box's address instead, host:port")
    return boxes


async def _enough(browser: Browser, until: Callable[[list[Found]], bool] | None) -> None:
    async for boxes in browser.changes():
        if until is not None and until(boxes):
            return
