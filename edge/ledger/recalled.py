"""How often memories were recalled: gathered in memory, off the recall's path, and written down in batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from edge.ledger.events import Accesses
from edge.ledger.log import Log
from edge.ledger.memories import Memories
from edge.ledger.queries import Queries
from edge.ports import Clock
from edge.types import Micros


class Recalled:
    """Safe from any thread."""

    def __init__(self, log: Log, memories: Memories, queries: Queries, clock: Clock) -> None:
        self._log = log
        self._memories = memories
        self._queries = queries
        self._clock = clock
        self._counts: dict[int, tuple[int, Micros]] = {}
        self._lock = threading.Lock()
        self._checkpointed: Micros = clock.now()

    def touch(self, rowids: Iterable[int]) -> None:
        """These were recalled just now."""
        now = self._clock.now()
        with self._lock:
            for rowid in rowids:
                self._counts[rowid] = (self._counts.get(rowid, (0, 0))[0] + 1, now)

    def forget(self, rowids: Iterable[int]) -> None:
        """What is gathered of these counts no more."""
        with self._lock:
            for rowid in rowids:
                self._counts.pop(rowid, None)

    def flush(self) -> bool:
        """Into the tables; blocks. Whether there was anything."""
        with self._lock:
            counts, self._counts = self._counts, {}
        if counts:
            self._memories.add_accesses(counts).result()
        return bool(counts)

    def checkpoint(self) -> None:
        """Notes what the tables have in the log, so that it outlives them; blocks."""
        since, self._checkpointed = self._checkpointed, self._clock.now()
        counts = self._queries.accessed_since(since)
        if counts:
            self._log.submit(lambda numbers: ([Accesses(numbers.next(), numbers.at, counts)], None)).result()
