"""The one thread that merges, over all spaces: a slice at a time, and only while nobody needs the device for more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from edge.errors import EdgeError
from edge.types import Memory, MemoryState
from edge.upkeep import merging

logger = logging.getLogger(__name__)

# Seconds that vectors are let gather after the first, so that an ingest is over, or well under way.
_GATHER = 0.25
# Seconds after which a slice ends, and how many memories one reads at most.
_SLICE = 0.02
_READ = 32
# Of each slice's time that the thread rests after it: a quarter of one core is what it takes at most.
_REST = 3.0


class History(merging.History, Protocol):
    """See ledger.merges."""

    def unlooked(self, models: Sequence[str], limit: int) -> list[Memory]: ...
    def note(self, looked: Mapping[int, MemoryState]) -> Future[None]: ...


class Kept(merging.Kept, Protocol):
    """An open space."""

    @property
    def name(self) -> str: ...
    @property
    def merges(self) -> History: ...
    def flush_accesses(self) -> None: ...
    def check_room(self) -> None: ...


class Merger:
    """Looks at the kept memories of the open spaces once they have their vectors; sleeps while there are none.

    What is still to be looked at is in each space's tables, so nothing is lost when it ends, at any moment. `allowed`
    says whether background work may run just now; `tick` is to be called now and then, for what waits until it may.
    """

    def __init__(
        self,
        spaces: Callable[[], Sequence[Kept]],
        allowed: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spaces = spaces
        self._allowed = allowed
        self._monotonic = monotonic
        self._lock = threading.Condition()
        # Names of spaces with news, in the order in which they get their turn; and those that have to wait for a tick.
        self._due: dict[str, None] = {}
        self._later: dict[str, None] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="edge-merging", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Waits for the slice under way; the rest is looked at after the next start."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self, name: str) -> None:
        """There may be something to look at in this space."""
        with self._lock:
            if name not in self._due:
                self._due[name] = None
                self._lock.notify_all()

    def tick(self) -> None:
        """What has had to wait is tried again."""
        with self._lock:
            if self._later:
                self._due |= self._later
                self._later.clear()
                self._lock.notify_all()

    def _run(self) -> None:
        while (name := self._next()) is not None:
            begun = self._monotonic()
            again = self._turn(name)
            with self._lock:
                if again is not None:
                    (self._due if again else self._later)[name] = None
                self._lock.wait_for(lambda: self._closing, _REST * (self._monotonic() - begun))

    def _next(self) -> str | None:
        """The space whose turn it is, waited for; None at the end."""
        with self._lock:
            if not self._due:
                self._lock.wait_for(lambda: bool(self._due) or self._closing)
                self._lock.wait_for(lambda: self._closing, _GATHER)
            if self._closing:
                return None
            name = next(iter(self._due))
            del self._due[name]
            return name

    def _turn(self, name: str) -> bool | None:
        """One slice of a space: whether there is more to do at once, or at the next tick; None for nothing."""
        space = next((one for one in self._spaces() if one.name == name), None)
        if space is None:
            return None
        if not self._allowed():
            return False
        try:
            return True if self.slice(space) else None
        except EdgeError as error:
            # A full disk, say, or the space is being closed.
            logger.info("space %s: merging waits: %s", name, error.message)
            return False

    def slice(self, space: Kept) -> bool:
        """Looks at some memories of a space, for 20 ms or one of them; whether there may be more. Blocks."""
        end = self._monotonic() + _SLICE
        found = space.merges.unlooked(tuple(space.indexes), _READ)
        if not found:
            # Its words may be said by nobody any more.
            return space.revisions.bring_back() is not None
        space.check_room()
        # What was recalled a moment ago goes with the memory when another takes its place.
        space.flush_accesses()
        looked: dict[int, MemoryState] = {}
        for memory in found:
            try:
                changed = merging.look(space, memory)
            except EdgeError:
                raise
            except Exception as error:  # noqa: BLE001  # one text that cannot be read must not keep all others waiting
                logger.warning("space %s: a memory could not be compared (%s)", space.name, type(error).__name__)
                changed = False
            if not changed:
                looked[memory.rowid] = memory.state
            if self._monotonic() >= end:
                break
        space.merges.note(looked).result()
        return True
