"""From stored rows to vectors in the index: the second half of the write path.

The backlog is a query (memories without a vector of a running model), so a crash loses none of it: this file only
remembers how far it has read, and who waits. Of several models each has a queue of its own in every space; what is not
for a model is written down as refused by it, so that it is looked at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
# Why a model refuses a text that goes to others.
NOT_ROUTED = "NOT_ROUTED"

Route = Callable[[str], Collection[str]]


class Shelf(Protocol):
    """A space as the backlog sees it; called from the backlog's thread alone."""

    @property
    def name(self) -> str: ...

    def pending(self, model: str, after: int, limit: int) -> list[tuple[int, str]]:
        """(rowid, text) of memories without a vector of this model, by rowid."""
        ...

    def keep(self, model: str, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        """Stores vectors and makes them searchable; gives the rowids that still live."""
        ...

    def refuse(self, model: str, rowids: Sequence[int], reason: str) -> Future[None]:
        """These memories get no vector of this model."""
        ...


@dataclass(eq=False)
class _Waiter:
    # (model, rowid)
    open: set[tuple[str, int]]
    # Those of which no model could make a vector so far, and why: they are found by their words only.
    refused: dict[int, VectorRefused] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    done: Future[dict[int, VectorRefused]] = field(default_factory=promise)


@dataclass(eq=False)
class _Queue:
    shelf: Shelf
    model: str
    vectorizer: Vectorizer
    # Everything up to here has been read once; what failed in passing since then lies after `again`.
    read: int = 0
    again: int | None = None
    # As `again`, for what memory had no room for; only at that time.
    later: int | None = None
    later_at: float = 0.0
    more: bool = True
    # Which feeding of all was its last.
    fed: int = 0
    in_flight: set[int] = field(default_factory=set)
    ready: list[tuple[int, Vector]] = field(default_factory=list)
    ready_since: float = 0.0
    waiters: dict[int, list[_Waiter]] = field(default_factory=dict)
    retry_at: float = 0.0
    failing: bool = False


class Backlog:
    """One thread that feeds the batcher's ingest lane and puts what comes back where recalls find it.

    `vectorizers` are the running models by id, and `route` gives those that a text goes to, at least one; without it,
    each text goes to all.
    """

    def __init__(
        self,
        vectorizers: Mapping[str, Vectorizer],
        route: Route | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vectorizers = dict(vectorizers)
        # One model has them all, without a look at the text.
        self._route = route if len(self._vectorizers) > 1 else None
        self._monotonic = monotonic
        self._lock = threading.Condition()
        # By space, then by model.
        self._spaces: dict[str, dict[str, _Queue]] = {}
        self._feeds = 0
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
            self._spaces[shelf.name] = {
                model: _Queue(shelf, model, vectorizer) for model, vectorizer in self._vectorizers.items()
            }
            self._lock.notify_all()

    def detach(self, name: str) -> None:
        with self._lock:
            queues = self._spaces.pop(name, {}).values()
            waiting = {waiter for queue in queues for waiters in queue.waiters.values() for waiter in waiters}
        for waiter in waiting:
            _settle(waiter)

    def wake(self, name: str, again: Iterable[int] = ()) -> None:
        """There are new rows in this space; and these are pending again, which it may have read past."""
        first = min(again, default=None)
        with self._lock:
            for queue in self._spaces.get(name, {}).values():
                queue.more = True
                if first is not None:
                    queue.again = _lower(queue.again, first - 1)
            self._lock.notify_all()

    def models(self, text: str) -> Collection[str]:
        """Those that this text goes to."""
        return self._vectorizers if self._route is None else self._route(text)

    def wait(self, name: str, rowids: Mapping[str, Iterable[int]]) -> Future[dict[int, VectorRefused]]:
        """Done when each of these, by model, has its vector in the index, was refused one, or is gone.

        Gives those that no model made a vector of. To be called with rows that are known to have none yet, before or
        right after `wake`.
        """
        waiter = _Waiter({(model, rowid) for model, wanted in rowids.items() for rowid in wanted})
        with self._lock:
            queues = self._spaces.get(name)
            if queues is not None and waiter.open:
                for model, rowid in waiter.open:
                    queues[model].waiters.setdefault(rowid, []).append(waiter)
                    queues[model].more = True
                self._lock.notify_all()
                return waiter.done
        _settle(waiter)
        return waiter.done

    def gone(self, name: str, rowids: Iterable[int]) -> None:
        """These need no vector any more."""
        with self._lock:
            rowids = list(rowids)
            queues = self._spaces.get(name, {}).values()
            finished = [waiter for queue in queues for waiter in _release(queue, rowids)]
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

    def _queues(self) -> Iterator[_Queue]:
        """Of all spaces. Called with the lock."""
        for queues in self._spaces.values():
            yield from queues.values()

    def _next(self) -> tuple[_Queue, list[tuple[int, Vector]]] | None:
        """What to do now: a space with vectors to flush, or one to feed from. Called with the lock."""
        now = self._monotonic()
        for queue in self._queues():
            if queue.later is not None and now >= queue.later_at:
                queue.again, queue.later = _lower(queue.again, queue.later), None
                queue.more = True
            due = len(queue.ready) >= _FLUSH_SIZE or not queue.in_flight or now - queue.ready_since >= _FLUSH_AGE
            if queue.ready and (self._closing or (due and now >= queue.retry_at)):
                ready, queue.ready = queue.ready, []
                return queue, ready
        if self._closing or now < self._paused_until:
            return None
        if sum(len(queue.in_flight) + len(queue.ready) for queue in self._queues()) > _IN_FLIGHT - _READ:
            return None
        # The one that was fed longest ago goes first, so that a large import does not starve the others, nor does a
        # long way past what is not for a model.
        hungry = [queue for queue in self._queues() if queue.more and now >= queue.retry_at]
        if not hungry:
            return None
        chosen = min(hungry, key=lambda queue: queue.fed)
        self._feeds += 1
        chosen.fed = self._feeds
        return chosen, []

    def _patience(self) -> float | None:
        now = self._monotonic()
        ready = [queue for queue in self._queues() if queue.ready]
        moments = [max(queue.ready_since + _FLUSH_AGE, queue.retry_at) for queue in ready]
        moments += [queue.retry_at for queue in self._queues() if queue.more and queue.retry_at > now]
        moments += [queue.later_at for queue in self._queues() if queue.later is not None]
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
        rows = queue.shelf.pending(queue.model, after, _READ)
        reached = rows[-1][0] if len(rows) == _READ else None
        self._settle_absent(queue, [rowid for rowid in waited_for if reached is None or rowid <= reached], rows)
        if not rows:
            return
        others = self._pass_over(queue, rows)
        with self._lock:
            # After a retry the reading starts over, and may meet what is still under way.
            under_way = queue.in_flight | {rowid for rowid, _ in queue.ready}
            rows_to_send = [row for row in rows if row[0] not in under_way and row[0] not in others]
            queue.in_flight.update(rowid for rowid, _ in rows_to_send)
        sent = 0
        try:
            for rowid, text in rows_to_send:
                (future,) = queue.vectorizer.submit([text], Lane.INGEST)
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

    def _pass_over(self, queue: _Queue, rows: Sequence[tuple[int, str]]) -> set[int]:
        """Those of the rows that are not for this model; that is written down, and nobody waits for it."""
        if self._route is None:
            return set()
        others = [rowid for rowid, text in rows if queue.model not in self._route(text)]
        if others:
            queue.shelf.refuse(queue.model, others, NOT_ROUTED).add_done_callback(
                lambda done: self._retry(queue, others) if done.exception() is not None else None
            )
            self._finish(queue, others)
        return set(others)

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
        queue.shelf.refuse(queue.model, [rowid], why.reason).add_done_callback(
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
        queue.shelf.keep(queue.model, rowids, np.stack([vector for _, vector in ready])).result()
        self._finish(queue, [rowid for rowid, _ in ready], kept=True)

    def _finish(
        self,
        queue: _Queue,
        rowids: Sequence[int],
        refused: Mapping[int, VectorRefused] | None = None,
        kept: bool = False,
    ) -> None:
        with self._lock:
            queue.in_flight.difference_update(rowids)
            finished = _release(queue, rowids, refused, kept)
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


def _release(
    queue: _Queue, rowids: Iterable[int], refused: Mapping[int, VectorRefused] | None = None, kept: bool = False
) -> list[_Waiter]:
    finished = []
    for rowid in rowids:
        for waiter in queue.waiters.pop(rowid, ()):
            waiter.open.discard((queue.model, rowid))
            if refused and rowid in refused:
                waiter.refused[rowid] = refused[rowid]
            if kept:
                waiter.kept.add(rowid)
            if not waiter.open:
                finished.append(waiter)
    return finished


def _lower(first: int | None, second: int) -> int:
    return second if first is None else min(first, second)


def _settle(waiter: _Waiter) -> None:
    if not waiter.done.done():
        waiter.done.set_result({rowid: why for rowid, why in waiter.refused.items() if rowid not in waiter.kept})
