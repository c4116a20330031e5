"""Lets the machines of the house find the box: publishes it by mDNS for as long as it runs (RFC 6762, RFC 6763)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass

from zeroconf import NonUniqueNameException, RecordUpdate, RecordUpdateListener, ServiceInfo, Zeroconf
from zeroconf.asyncio import AsyncZeroconf

from edge.lan.interfaces import published, usable
from edge.lan.link import LOOK_SECONDS, Interfaces, Link, Look
from edge.lan.txt import SERVICE_TYPE, Txt, encode, instance_name, renamed

# Names that are tried before waiting a while and beginning again: a neighbour may claim every one of them.
MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Published:
    """What the network is told, for the owner. Without a name nothing is published at present, and `error` says why."""

    name: str
    addresses: tuple[str, ...]
    port: int
    error: str


class Advertiser:
    """Publishes one box, in one event loop that it never blocks. No failure of mDNS is raised: `status` tells it.

    `name` may be in any script; it is cut to fit, and gets a number when another box has it. `every` is the seconds
    between looks at the interfaces. Raises InvalidArgument when `txt` cannot be published.
    """

    purpose = "publishing the box"

    def __init__(self, name: str, port: int, txt: Txt, *, look: Look = usable, every: float = LOOK_SECONDS) -> None:
        self._wanted = instance_name(name)
        self._number = 1
        self._port = port
        self._text = encode(txt)
        # Another host name at each start, so that two boxes copied with their id do not share their addresses.
        self._server = f"edge-{txt.id[:12].lower()}-{secrets.token_hex(4)}.local."
        self._info: ServiceInfo | None = None
        self._rivals: _Rivals | None = None
        self._announcing: asyncio.Future[None] | None = None
        self._link = Link(self, look=look, every=every)

    def start(self) -> None:
        """Begins to publish, in the running event loop, and returns at once."""
        self._link.start()

    async def stop(self) -> None:
        """Says goodbye, so that the box leaves others' lists at once. Takes four seconds at most, a third as a rule."""
        await self._link.stop()

    def status(self) -> Published:
        if self._info is None:
            return Published("", (), self._port, self._link.error or "not published yet")
        return Published(self._name, tuple(self._info.parsed_addresses()), self._port, self._link.error)

    @property
    def _name(self) -> str:
        return self._wanted if self._number == 1 else renamed(self._wanted, self._number)

    async def opened(self, zeroconf: AsyncZeroconf, on: Interfaces) -> None:
        self._rivals = _Rivals(self._server, self._port)
        zeroconf.zeroconf.async_add_listener(self._rivals, None)
        await self._register(zeroconf, published(on))

    async def look_after(self, zeroconf: AsyncZeroconf) -> None:
        rivals, info = self._rivals, self._info
        if rivals is None or info is None:
            return
        must_yield, must_insist = rivals.must_yield, rivals.must_insist
        # Before anything is awaited: what is heard meanwhile is for the next round.
        rivals.must_yield = rivals.must_insist = False
        if must_yield:
            # Without a goodbye: it would take the other box's entry off the lists, which is the same name.
            zeroconf.zeroconf.registry.async_remove(info)
            self._info = None
            self._number += 1
            await self._register(zeroconf, info.parsed_addresses())
        elif must_insist:
            self._keep(await zeroconf.async_update_service(info))

    async def closing(self, zeroconf: AsyncZeroconf, *, for_good: bool) -> None:
        info, self._info, self._rivals = self._info, None, None
        if info is not None and not for_good:
            # It comes back in a moment, so others need not take it off their lists.
            zeroconf.zeroconf.registry.async_remove(info)

    async def _register(self, zeroconf: AsyncZeroconf, addresses: list[str]) -> None:
        while self._number <= MOST_NAMES:
            info = ServiceInfo(
                SERVICE_TYPE,
                f"{self._name}.{SERVICE_TYPE}",
                port=self._port,
                properties=self._text,
                server=self._server,
                parsed_addresses=addresses,
            )
            if self._rivals is not None:
                self._rivals.watch(info.name)
            try:
                # zeroconf's own renaming outgrows the 63 bytes, so the names come from here.
                self._keep(await zeroconf.async_register_service(info, allow_name_change=False))
            except NonUniqueNameException:
                self._number += 1
                continue
            self._info = info
            return
        self._number = 1
        raise OSError(f"{MOST_NAMES} names like {self._wanted} are all taken by others; give the box another name")

    def _keep(self, announcing: Awaitable[None]) -> None:
        """Holds on to announcements that go on for two seconds; one that fails is made up for at the next change."""
        self._announcing = asyncio.ensure_future(announcing)
        self._announcing.add_done_callback(lambda done: done.cancelled() or done.exception())


class _Rivals(RecordUpdateListener):
    """Notices another host with our name: two that start at once do not see each other's probes in zeroconf.

    The one whose (host, port) sorts first keeps the name and says so again, the other takes another.
    """

    def __init__(self, server: str, port: int) -> None:
        self._ours = (server, port)
        self._name = ""
        # Set by what is heard, and done by the advertiser at its next round.
        self.must_yield = False
        self.must_insist = False

    def watch(self, name: str) -> None:
        self._name = name.lower()
        self.must_yield = self.must_insist = False

    def async_update_records(self, zc: Zeroconf, now: float, records: list[RecordUpdate]) -> None:  # noqa: ARG002  # zeroconf's names
        for update in records:
            record = update.new
            # Only an SRV record has a server.
            server = getattr(record, "server", "").lower()
            if server and record.name.lower() == self._name and not record.is_expired(now):
                theirs = (server, getattr(record, "port", 0))
                self.must_yield |= theirs < self._ours
                self.must_insist |= theirs > self._ours
