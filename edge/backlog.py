"""From stored rows to vectors in the index: the second half of the write path.

The backlog is a query (memories without a vector of the current model), so a crash loses none of it: this file only
remembers how far it has read, and who waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from edge.errors import DeadlineExceeded, EdgeError, Exhausted, VectorRefused
from edge.futures import promise
from edge.ports import Vectorizer
from edge.types import Lane, Matrix, RowIds, Vector

logger = logging.getLogger(__name__)

# Pieces given to the batcher and not yet back, over all spaces: enough to sort by length, little to hold in memory.
_IN_FLIGHT = 256
_READ = 128
# A flush is one transaction: worth gathering a few vectors for, not worth making a turn wait long.
_FLUSH_SIZE = 16
_FLUSH_AGE = 0.02
# Seconds before work that failed for a passing reason is tried again, and texts that memory had no room for.
_RETRY = 1.0
_LATER = 120.0
# The longest that a full batcher is left alone.
_FULL = 1.0
# VectorRefused.reason of what may get its vector yet; see embedder.answers.
_NO_MEMORY = "NO_MEMORY"


class Shelf(Protocol):
    """A space as the backlog sees it; called from the backlog's thread alone."""

    @property
    def name(self) -> str: ...

    def pending(self, after: int, limit: int) -> list[tuple[int, str]]:
        """(rowid, text) of memories without a vector, by rowid."""
        ...

    def keep(self, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        """Stores vectors and makes them searchable; gives the rowids that still live."""
        ...

    def refuse(self, rowid: int, reason: str) -> Future[None]:
        """This memory has no vector, and is found by its words only."""
        ...


@dataclass(eq=False)
class _Waiter:
    rowids: set[int]
    # Why some of them have no vector, and are found by their words only.
    refused: dict[int, VectorRefused] = field(default_factory=dict)
    done: Future[dict[int, VectorRefused]] = field(default_factory=promise)


@dataclass(eq=False)
class _Queue:
    shelf: Shelf
    # Everything up to here has been read once; what failed in passing since then lies after `again`.
    read: int = 0
    again: int | None = None
    # As `again`, for what memory had no room for; only at that time.
    later: int | None = None
    later_at: float = 0.0
    more: bool = True
    in_flight: set[int] = field(default_factory=set)
    ready: list[tuple[int, Vector]] = field(default_factory=list)
    ready_since: float = 0.0
    waiters: dict[int, list[_Waiter]] = field(default_factory=dict)
    retry_at: float = 0.0
    failing: bool = False


class Backlog:
    """One thread that feeds the batcher's ingest lane and puts what comes back where recalls find it."""

    def __init__(self, vectorizer: Vectorizer, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._vectorizer = vectorizer
        self._monotonic = monotonic
        self._lock = threading.Condition()
        self._queues: dict[str, _Queue] = {}
        self._paused_until = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="edge-backlog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout: float = 10.0) -> None:
        """Stops feeding; what has no vector yet gets one after the next start."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def attach(self, shelf: Shelf) -> None:
        with self._lock:
            self._queues[shelf.name] = _Queue(shelf)
            self._lock.notify_all()

    def detach(self, name: str) -> None:
        with self._lock:
            queue = self._queues.pop(name, None)
            waiting = [waiter for waiters in queue.waiters.values() for waiter in waiters] if queue else []
        for waiter in waiting:
            _settle(waiter)

    def wake(self, name: str) -> None:
        """There are new rows in this space."""
        with self._lock:
            queue = self._queues.get(name)
            if queue is not None:
                queue.more = True
                self._lock.notify_all()

    def wait(self, name: str, rowids: Iterable[int]) -> Future[dict[int, VectorRefused]]:
        """Done when each of these has its vector in the index, was refused one, or is gone; gives the refused ones.

        To be called with rows that are known to have none yet, before or right after `wake`.
        """
        waiter = _Waiter(set(rowids))
        with self._lock:
            queue = self._queues.get(name)
            if queue is not None and waiter.rowids:
                for rowid in waiter.rowids:
                    queue.waiters.setdefault(rowid, []).append(waiter)
                queue.more = True
                self._lock.notify_all()
                return waiter.done
        _settle(waiter)
        return waiter.done

    def gone(self, name: str, rowids: Iterable[int]) -> None:
        """These need no vector any more."""
        with self._lock:
            queue = self._queues.get(name)
            finished = _release(queue, rowids) if queue is not None else []
        for waiter in finished:
            _settle(waiter)

    def _run(self) -> None:
        while True:
            with self._lock:
                job = self._next()
                while job is None and not self._closing:
                    self._lock.wait(self._patience())
                    job = self._next()
                if job is None:
                    return
            queue, ready = job
            try:
                if ready:
                    self._flush(queue, ready)
                else:
                    self._feed(queue)
            except Exception as error:  # noqa: BLE001  # the thread outlives any failure of one space; it is tried again
                if not queue.failing:
                    logger.warning("space %s: embedding paused after %s", queue.shelf.name, type(error).__name__)
                with self._lock:
                    queue.failing = True
                    if not self._closing:
                        # A full disk is no reason to make them once more.
                        queue.ready[:0] = ready
                self._retry(queue, [])
            else:
                queue.failing = False

    def _next(self) -> tuple[_Queue, list[tuple[int, Vector]]] | None:
        """What to do now: a space with vectors to flush, or one to feed from. Called with the lock."""
        now = self._monotonic()
        for queue in self._queues.values():
            if queue.later is not None and now >= queue.later_at:
                queue.again, queue.later = _lower(queue.again, queue.later), None
                queue.more = True
            due = len(queue.ready) >= _FLUSH_SIZE or not queue.in_flight or now - queue.ready_since >= _FLUSH_AGE
            if queue.ready and (self._closing or (due and now >= queue.retry_at)):
                ready, queue.ready = queue.ready, []
                return queue, ready
        if self._closing or now < self._paused_until:
            return None
        if sum(len(queue.in_flight) + len(queue.ready) for queue in self._queues.values()) > _IN_FLIGHT - _READ:
            return None
        # The space with the least under way goes first, so that a large import does not starve the others.
        hungry = [queue for queue in self._queues.values() if queue.more and now >= queue.retry_at]
        return (min(hungry, key=lambda queue: len(queue.in_flight)), []) if hungry else None

    def _patience(self) -> float | None:
        now = self._monotonic()
        ready = [queue for queue in self._queues.values() if queue.ready]
        moments = [max(queue.ready_since + _FLUSH_AGE, queue.retry_at) for queue in ready]
        moments += [queue.retry_at for queue in self._queues.values() if queue.more and queue.retry_at > now]
        moments += [queue.later_at for queue in self._queues.values() if queue.later is not None]
        if self._paused_until > now:
            moments.append(self._paused_until)
        return max(0.001, min(moments) - now) if moments else None

    def _feed(self, queue: _Queue) -> None:
        with self._lock:
            queue.more = False
            if queue.again is not None:
                queue.read, queue.again = min(queue.read, queue.again), None
            after = queue.read
            waited_for = list(queue.waiters)
        rows = queue.shelf.pending(after, _READ)
        reached = rows[-1][0] if len(rows) == _READ else None
        self._settle_absent(queue, [rowid for rowid in waited_for if reached is None or rowid <= reached], rows)
        if not rows:
            return
        with self._lock:
            # After a retry the reading starts over, and may meet what is still under way.
            under_way = queue.in_flight | {rowid for rowid, _ in queue.ready}
            rows_to_send = [row for row in rows if row[0] not in under_way]
            queue.in_flight.update(rowid for rowid, _ in rows_to_send)
        sent = 0
        try:
            for rowid, text in rows_to_send:
                (future,) = self._vectorizer.submit([text], Lane.INGEST)
                future.add_done_callback(lambda done, rowid=rowid: self._came_back(queue, rowid, done))  # type: ignore[misc]  # mypy cannot type a lambda's default
                sent += 1
        except Exhausted as full:
            with self._lock:
                self._paused_until = self._monotonic() + min(full.retry_after or 0.1, _FULL)
        finally:
            with self._lock:
                queue.in_flight.difference_update(rowid for rowid, _ in rows_to_send[sent:])
                if sent == len(rows_to_send):
                    queue.read = max(queue.read, rows[-1][0])
                    queue.more = queue.more or len(rows) == _READ
                else:
                    queue.read = max(queue.read, rows_to_send[sent][0] - 1)
                    queue.more = True

    def _came_back(self, queue: _Queue, rowid: int, done: Future[Vector]) -> None:
        """On an inference thread: only notes what came."""
        error = done.exception() if not done.cancelled() else DeadlineExceeded("cancelled")
        if error is None:
            with self._lock:
                queue.in_flight.discard(rowid)
                if not queue.ready:
                    queue.ready_since = self._monotonic()
                queue.ready.append((rowid, done.result()))
                self._lock.notify_all()
            return
        if isinstance(error, VectorRefused):
            self._refuse(queue, rowid, error)
            return
        self._retry(queue, [rowid])
        if not isinstance(error, EdgeError):
            logger.warning("space %s: a memory could not be embedded (%s)", queue.shelf.name, type(error).__name__)

    def _refuse(self, queue: _Queue, rowid: int, why: VectorRefused) -> None:
        """Who waits for it is told. For want of memory is not for good: nothing is written down, so the row is still
        pending, and comes again later or after the next start."""
        if why.reason == _NO_MEMORY:
            with self._lock:
                if queue.later is None:
                    queue.later_at = self._monotonic() + _LATER
                queue.later = _lower(queue.later, rowid - 1)
            self._finish(queue, [rowid], {rowid: why})
            return
        queue.shelf.refuse(rowid, why.reason).add_done_callback(
            lambda done: (
                self._finish(queue, [rowid], {rowid: why}) if done.exception() is None else self._retry(queue, [rowid])
            )
        )

    def _retry(self, queue: _Queue, rowids: Sequence[int]) -> None:
        """These failed in passing. Feeding may be going on, so how far it has read is not touched here."""
        with self._lock:
            queue.in_flight.difference_update(rowids)
            for rowid in rowids:
                queue.again = _lower(queue.again, rowid - 1)
            queue.more = True
            queue.retry_at = self._monotonic() + _RETRY
            self._lock.notify_all()

    def _flush(self, queue: _Queue, ready: Sequence[tuple[int, Vector]]) -> None:
        rowids = np.fromiter((rowid for rowid, _ in ready), np.int64, len(ready))
        queue.shelf.keep(rowids, np.stack([vector for _, vector in ready])).result()
        self._finish(queue, [rowid for rowid, _ in ready])

    def _finish(self, queue: _Queue, rowids: Iterable[int], refused: Mapping[int, VectorRefused] | None = None) -> None:
        with self._lock:
            rowids = list(rowids)
            queue.in_flight.difference_update(rowids)
            finished = _release(queue, rowids, refused)
            self._lock.notify_all()
        for waiter in finished:
            _settle(waiter)

    def _settle_absent(self, queue: _Queue, waited_for: Sequence[int], rows: Sequence[tuple[int, str]]) -> None:
        """Who waits for a row that is neither pending nor under way waits for nothing."""
        with self._lock:
            busy = queue.in_flight.union((rowid for rowid, _ in rows), (rowid for rowid, _ in queue.ready))
            known = waited_for if queue.again is None else [rowid for rowid in waited_for if rowid <= queue.again]
            finished = _release(queue, [rowid for rowid in known if rowid not in busy])
        for waiter in finished:
            _settle(waiter)


def _release(queue: _Queue, rowids: Iterable[int], refused: Mapping[int, VectorRefused] | None = None) -> list[_Waiter]:
    finished = []
    for rowid in rowids:
        for waiter in queue.waiters.pop(rowid, ()):
            waiter.rowids.discard(rowid)
            if refused and rowid in refused:
                waiter.refused[rowid] = refused[rowid]
            if not waiter.rowids:
                finished.append(waiter)
    return finished


def _lower(first: int | None, second: int) -> int:
    return second if first is None else min(first, second)


def _settle(waiter: _Waiter) -> None:
    if not waiter.done.done():
        waiter.done.set_result(waiter.refused)
