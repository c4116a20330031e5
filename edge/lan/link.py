"""mDNS on the interfaces there are just now: opened anew when they change or the device woke, tried again on failure.

zeroconf joins the interfaces it finds at its start and never looks again, and it gives up on the first error.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from zeroconf.asyncio import AsyncZeroconf

from edge.lan.interfaces import Interface, choice, usable

logger = logging.getLogger(__name__)

# It logs its peers' packets as they came, and one failure at each of our retries. Its failures reach us anyway.
logging.getLogger("zeroconf").setLevel(logging.CRITICAL)

Interfaces = tuple[Interface, ...]
Look = Callable[[], Interfaces]

LOOK_SECONDS = 10.0
# A round that comes this much late was slept through: the neighbours may have forgotten us, and we them.
_OVERSLEPT_SECONDS = 10.0
_FIRST_RETRY_SECONDS = 1.0
_CLOSE_SECONDS = 2.0


class User(Protocol):
    """What is done on a link. What it raises closes the link, which is then tried again."""

    # In words, for the log: "publishing the box".
    purpose: str

    async def opened(self, zeroconf: AsyncZeroconf, on: Interfaces) -> None:
        """Here is a fresh one; no other is open."""
        ...

    async def look_after(self, zeroconf: AsyncZeroconf) -> None:
        """Called every few seconds while one is open."""
        ...

    async def closing(self, zeroconf: AsyncZeroconf, *, for_good: bool) -> None:
        """It is about to be closed. What is registered then is said goodbye for."""
        ...


class Link:
    """Keeps one AsyncZeroconf open for its user, in the loop that called `start`. No failure of mDNS gets out of it."""

    def __init__(
        self,
        user: User,
        *,
        look: Look = usable,
        every: float = LOOK_SECONDS,
        open_: Callable[[Interfaces], AsyncZeroconf] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._user = user
        self._look = look
        self._every = every
        self._open = open_ or _open
        self._clock = clock or _awake_or_asleep
        self._zeroconf: AsyncZeroconf | None = None
        self._on: Interfaces = ()
        self._task: asyncio.Task[None] | None = None
        # What went wrong last, in words; empty while all is well.
        self.error = ""

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._follow(), name=f"edge-mdns: {self._user.purpose}")

    async def stop(self) -> None:
        """Says goodbye for what is published and closes; takes four seconds at most, whatever happens."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            # wait, not gather: what the task ended with is of no interest, and a cancel meant for us is heard.
            await asyncio.wait([task], timeout=_CLOSE_SECONDS)
        await self._close(for_good=True)

    async def _follow(self) -> None:
        retry = _FIRST_RETRY_SECONDS
        while True:
            try:
                await self.look_once()
            except Exception as error:  # noqa: BLE001  # whatever mDNS fails of, the box goes on and tries again
                await self._close(for_good=False)
                self._failed(error)
                wait, retry = min(retry, self._every), min(retry * 2, self._every)
            else:
                self._worked()
                wait, retry = self._every, _FIRST_RETRY_SECONDS
            before = self._clock()
            await asyncio.sleep(wait)
            if self._clock() - before > wait + _OVERSLEPT_SECONDS:
                # Opened anew even if all looks alike: its sockets may be of a network that is no more.
                self._on = ()

    async def look_once(self) -> None:
        """One round: follows what changed. Raises whatever goes wrong."""
        # The kernel is asked in a thread, because it can be slow where there are hundreds of containers.
        found = await asyncio.to_thread(self._look)
        if not found:
            raise OSError("no network interface is up")
        if self._zeroconf is None or found != self._on:
            await self._close(for_good=False)
            self._zeroconf = self._open(found)
            await self._zeroconf.zeroconf.async_wait_for_start()
            await self._user.opened(self._zeroconf, found)
            self._on = found
        await self._user.look_after(self._zeroconf)

    async def _close(self, *, for_good: bool) -> None:
        if self._zeroconf is None:
            return
        try:
            await self._user.closing(self._zeroconf, for_good=for_good)
            # wait_for of Python 3.11 and older can swallow a cancel, after which `stop` would wait in vain.
            closing = asyncio.ensure_future(self._zeroconf.async_close())
            if not (await asyncio.wait([closing], timeout=_CLOSE_SECONDS))[0]:
                closing.cancel()
            elif (error := closing.exception()) is not None:
                raise error
        except Exception as error:  # noqa: BLE001  # it is thrown away, so there is nothing to mend
            logger.debug("%s: mDNS did not close: %s", self._user.purpose, error)
        self._zeroconf = None

    def _failed(self, error: Exception) -> None:
        said = str(error) or type(error).__name__
        # Once, however long it lasts and whatever else comes of it: the owner sees the newest reason in the status.
        level = logging.DEBUG if self.error else logging.WARNING
        logger.log(level, "%s by mDNS fails and is tried again every few seconds: %s", self._user.purpose, said)
        self.error = said

    def _worked(self) -> None:
        if self.error:
            logger.warning("%s by mDNS works again", self._user.purpose)
        self.error = ""


def _awake_or_asleep() -> float:
    """Seconds that also count while the device sleeps; on macOS only the wall clock does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()


def _open(interfaces: Interfaces) -> AsyncZeroconf:
    return AsyncZeroconf(interfaces=choice(interfaces))
