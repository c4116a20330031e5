"""Where a box is now, wherever it was: by the addresses it had and by mDNS, believed by its certificate alone."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from edge.client.certificate import expected_at, joined
from edge.client.store import box_id
from edge.errors import EdgeError, InvalidArgument, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from edge.lan.discover import Found

# mDNS is only bothered when the addresses that worked last do not answer by then.
_HEAD_START = 0.3
# RFC 6762 has a question repeated after one second, and a device that wakes may miss the first.
SEARCH_SECONDS = 6.0
# A command is over by then; a client that lives longer wants to hear of a new address before the old one fails.
LINGER_SECONDS = 5.0
# Between looks while calls fail.
TROUBLE_SECONDS = 1.0
# How long the address in use may take to answer once another one has.
STAY_SECONDS = 1.0
_MOST_SEARCHES = 86_400.0
# Addresses tried at a time: whoever makes up thousands by mDNS must not use up this process's files.
_AT_ONCE = 128


class Sightings(Protocol):
    """What of edge.lan.discover.Browser is used here."""

    @property
    def boxes(self) -> list[Found]: ...

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    def changes(self) -> AsyncIterator[list[Found]]: ...


# (address, digest) -> None, or raises what `certificate.expected_at` raises.
Probe = Callable[[str, bytes], Awaitable[None]]


def browser() -> Sightings:
    # zeroconf takes longer to import than most commands take.
    from edge.lan.discover import Browser

    return Browser()


async def discover(seconds: float = 3.0) -> list[Found]:
    """The boxes that answer on the network within so many seconds, sorted by name; each as it describes itself.

    See edge.lan.discover.Found: name, addresses, port, id, version, fingerprint. None of it is proven before it is
    paired. Raises Unavailable when mDNS does not work here, InvalidArgument (field "seconds").
    """
    if not (math.isfinite(seconds) and 0 < seconds <= _MOST_SEARCHES):
        raise InvalidArgument("seconds: must be above 0 and at most a day", field="seconds")
    from edge.lan.discover import discover as discovering

    return await discovering(seconds)


def addresses_of(found: Iterable[Found], id_: str) -> list[str]:
    """host:port of every box that says it has this id."""
    return [joined(host, box.port) for box in found if box.id == id_ for host in box.addresses]


async def locate(
    digest: bytes,
    known: Iterable[str],
    name: str,
    *,
    seconds: float = SEARCH_SECONDS,
    probe: Probe = expected_at,
    browse: Callable[[], Sightings] = browser,
) -> str:
    """The first address that shows the certificate of this digest: of those known, or of those that mDNS finds.

    Raises Unavailable when none does in time, Unauthenticated when the only machines that answer are others.
    """
    search = _Search(digest, probe, known)
    sights = browse()
    watching = asyncio.create_task(_watch(sights, search))
    try:
        return await asyncio.wait_for(search.won, seconds)
    except asyncio.TimeoutError:
        raise search.failure(name) from None
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await search.close()


async def _watch(sights: Sightings, search: _Search) -> None:
    await asyncio.sleep(_HEAD_START)
    sights.start()
    try:
        async for boxes in sights.changes():
            for address in addresses_of(boxes, box_id(search.digest)):
                search.add(address)
    finally:
        await sights.stop()


class _Search:
    """Tries addresses side by side, each once; the first right one wins."""

    def __init__(self, digest: bytes, probe: Probe, addresses: Iterable[str]) -> None:
        self.digest = digest
        self.won: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._probe = probe
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tried: dict[str, EdgeError | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for address in addresses:
            self.add(address)

    def add(self, address: str) -> None:
        if address not in self._tried:
            self._tried[address] = None
            task = asyncio.create_task(self._try(address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _try(self, address: str) -> None:
        try:
            async with self._room:
                await self._probe(address, self.digest)
        except EdgeError as error:
            self._tried[address] = error
        else:
            if not self.won.done():
                self.won.set_result(address)

    async def settled(self) -> str:
        """The winner among those added, empty when there is none."""
        while self._tasks and not self.won.done():
            waited: list[asyncio.Future[Any]] = [*self._tasks, self.won]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        return self.won.result() if self.won.done() else ""

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def failure(self, name: str) -> EdgeError:
        """Why nothing was found; a machine that answers in the box's place is the best reason."""
        for error in self._tried.values():
            if isinstance(error, Unauthenticated):
                return error
        tried = f"not at {', '.join(self._tried)}, and " if self._tried else ""
        return Unavailable(
            f"{name} is not found: {tried}not by mDNS; is it on, with --lan, and on this network? `edge discover` "
            "lists the boxes that are",
            reason="UNREACHABLE",
        )


class Follower:
    """Follows one box to its new address, for as long as a connection to it is wanted.

    `at` tells the address in use, `move` is told another one that shows the right certificate. It looks while calls
    fail, and, of a connection that lasts, also when the box announces addresses without the one in use: a call that
    waits for an answer from an address that is no more would never fail by itself.
    """

    def __init__(
        self,
        digest: bytes,
        known: Iterable[str],
        at: Callable[[], str],
        move: Callable[[str], Awaitable[None]],
        *,
        probe: Probe = expected_at,
        browse: Callable[[], Sightings] = browser,
    ) -> None:
        self._digest = digest
        self._id = box_id(digest)
        self._known = list(known)
        self._at = at
        self._move = move
        self._probe = probe
        self._browse = browse
        self._trouble = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="edge-follow")

    def trouble(self) -> None:
        """A call failed for want of a connection."""
        self._trouble.set()

    def well(self) -> None:
        """The box answered."""
        self._trouble.clear()

    async def stop(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        await _either(self._trouble.wait(), LINGER_SECONDS)
        sights = self._browse()
        sights.start()
        changes = sights.changes()
        change: asyncio.Future[Any] = asyncio.ensure_future(anext(changes))
        try:
            while True:
                await self._look(addresses_of(sights.boxes, self._id))
                if self._trouble.is_set():
                    # It may be over before the next look: a box that restarts where it was is met by gRPC itself.
                    await asyncio.wait([change], timeout=TROUBLE_SECONDS)
                else:
                    troubled = asyncio.ensure_future(self._trouble.wait())
                    try:
                        await asyncio.wait([change, troubled], return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        troubled.cancel()
                if change.done():
                    change = asyncio.ensure_future(anext(changes))
        finally:
            change.cancel()
            await asyncio.wait([change])
            await sights.stop()

    async def _look(self, announced: list[str]) -> None:
        at = self._at()
        troubled = self._trouble.is_set()
        if not troubled and (not announced or at in announced):
            return
        others = dict.fromkeys(address for address in (*announced, *self._known) if address != at)
        here, elsewhere = (_Search(self._digest, self._probe, addresses) for addresses in ([at], others))
        try:
            winner = await elsewhere.settled()
            # Of two good addresses the one in use is kept; one that is no more would never answer at all.
            if not winner or await _either(here.settled(), STAY_SECONDS):
                return
        finally:
            await here.close()
            await elsewhere.close()
        await self._move(winner)
        if winner not in self._known:
            self._known.append(winner)


async def _either(waiting: Any, seconds: float) -> Any:
    """What it gives, None after so many seconds."""
    with contextlib.suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(waiting, seconds)
    return None
