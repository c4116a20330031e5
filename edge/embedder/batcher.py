"""Texts of many callers to vectors, in batches, on threads of its own; recalls never wait for ingests.

Work-conserving: a batch starts as soon as a thread is free, and nothing waits for company (as in
text-embeddings-inference; Clipper, NSDI'17). One thread is the recalls' own. The ingest threads run at a lower priority
where threads have one (Linux), so that on a full machine a recall gets its core at once, and they help with recalls
when the recall thread is busy.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from types import TracebackType

import numpy as np

from edge.config import Embedding
from edge.embedder.governor import worker_count
from edge.embedder.lanes import Entry, LaneQueue, answer, fail
from edge.errors import DeadlineExceeded, Exhausted, ModelError, Unavailable, VectorRefused
from edge.ports import Budget, Clock, Embedder, Governor, QueueStatus
from edge.types import Lane, Matrix, ModelInfo, Vector

log = logging.getLogger(__name__)

# Seconds between looks at a governor that allows no work just now.
_PAUSE = 0.25
# Nice levels by which ingest threads stand back.
_STAND_BACK = 10
# Seconds that a refused caller is told to wait, least and most.
_SOONEST, _LATEST = 0.05, 60.0


class Batcher:
    """ports.Vectorizer over any embedder: `start` it before the first answer is wanted, `close` it at the end.

    `deadline` of `submit` is a time.monotonic() value, as in types.Question. The clock measures ages and batches. The
    governor is asked before each ingest batch and told of it after; a governor that raises changes nothing.
    """

    def __init__(self, embedder: Embedder, governor: Governor, clock: Clock, config: Embedding) -> None:
        self._embedder = embedder
        self._governor = governor
        self._clock = clock
        self._workers = worker_count(config)
        self._recall = LaneQueue(config.recall_drain)
        self._ingest = LaneQueue(config.ingest_drain)
        self._lock = threading.Lock()
        # Two conditions on one lock, so that a submit wakes exactly the threads it is for.
        self._recall_work = threading.Condition(self._lock)
        self._ingest_work = threading.Condition(self._lock)
        self._recall_busy = False
        self._ingest_batches = 0
        self._taken: set[Entry] = set()
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._budget = Budget(max(1, config.batch_tokens), self._workers, 1.0, True, "the governor was not asked yet")

    @property
    def info(self) -> ModelInfo:
        return self._embedder.info

    def start(self) -> None:
        """Start the threads; a second call does nothing."""
        budget = self._ask_governor()
        with self._lock:
            if self._threads or self._closing:
                return
            self._budget = budget
            self._threads = [threading.Thread(target=self._serve_recalls, name="embed-recall", daemon=True)] + [
                threading.Thread(target=self._serve_ingests, name=f"embed-ingest-{number}", daemon=True)
                for number in range(self._workers)
            ]
            for thread in self._threads:
                thread.start()

    def close(self, timeout: float = 10.0) -> None:
        """Refuse new texts, finish those that wait, and answer Unavailable to all that `timeout` seconds leave over.

        Every future is settled on return. A run of the model cannot be broken off: its thread ends after it, but
        nobody waits for that. The embedder is the caller's to close.
        """
        ends = time.monotonic() + timeout
        with self._lock:
            self._closing = True
            self._recall_work.notify_all()
            self._ingest_work.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, ends - time.monotonic()))
        with self._lock:
            left = [*self._recall.clear(), *self._ingest.clear(), *self._taken]
            self._recall_work.notify_all()
            self._ingest_work.notify_all()
        for entry in left:
            fail(
                entry.future, Unavailable("the box stopped before this text had its vector; ask again when it is back")
            )

    def __enter__(self) -> Batcher:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        """See ports.Vectorizer. All of the texts are taken, or none; they are tokenised on the calling thread.

        A lane in which nothing waits takes whatever comes. Raises Exhausted when the lane is full, Unavailable once
        the batcher is closed.
        """
        queue = self._recall if lane is Lane.RECALL else self._ingest
        with self._lock:
            # Here too, before the work of tokenising: a flood must cost little.
            self._admit(queue, 0)
        encoded = self._embedder.encode(texts, lane)
        now = self._clock.monotonic()
        entries = [Entry(item, max(1, item.tokens), deadline, now, Future()) for item in encoded]
        with self._lock:
            self._admit(queue, sum(entry.tokens for entry in entries))
            queue.extend(entries)
            if queue is self._ingest:
                self._ingest_work.notify(len(entries))
            else:
                self._recall_work.notify()
                if self._recall_crowded():
                    self._ingest_work.notify(len(entries))
        return [entry.future for entry in entries]

    def tokens(self, text: str) -> int:
        """See ports.Vectorizer; the two that frame a window are counted."""
        return self._embedder.encode([text], Lane.INGEST)[0].tokens

    def status(self) -> QueueStatus:
        with self._lock:
            rate = self._rate(self._ingest)
            return QueueStatus(
                recalls=len(self._recall),
                ingests=len(self._ingest),
                ingest_tokens=self._ingest.tokens,
                drain_seconds=self._ingest.tokens / rate if rate > 0 else float(bool(self._ingest.tokens)) * _LATEST,
                tokens_per_second=rate,
            )

    def _admit(self, queue: LaneQueue, tokens: int) -> None:
        if self._closing:
            raise Unavailable("the box is stopping; ask again when it is back")
        rate = self._rate(queue)
        excess = queue.tokens + tokens - queue.drain * rate
        if len(queue) and excess > 0:
            wait = min(_LATEST, max(_SOONEST, excess / rate)) if rate > 0 else _LATEST
            raise Exhausted(
                f"{queue.tokens:,} tokens already wait for their vectors, and the box takes on no more than "
                f"{queue.drain:g} seconds of work; try again in {wait:.2f} seconds",
                retry_after=wait,
            )

    def _rate(self, queue: LaneQueue) -> float:
        """Tokens a second that the lane gets done: all its threads, at the governor's pace."""
        if queue is self._recall:
            return queue.rate
        threads = min(self._workers, max(0, self._budget.threads))
        return queue.rate * threads * min(1.0, max(0.0, self._budget.duty))

    def _recall_crowded(self) -> bool:
        """Whether recalls wait that the recall thread cannot take right now."""
        return len(self._recall) > (0 if self._recall_busy else 1)

    def _serve_recalls(self) -> None:
        """One text a run, in order of asking: the first is not held up by the second."""
        while True:
            with self._lock:
                self._recall_busy = False
                while not len(self._recall):
                    if self._closing:
                        return
                    self._recall_work.wait()
                self._recall_busy = True
                batch = self._take(self._recall.pop())
            self._run(batch, self._recall)

    def _serve_ingests(self) -> None:
        """Recalls that the recall thread cannot take; else an ingest batch, as the governor allows."""
        _stand_back()
        rest_until = 0.0
        while True:
            budget = self._ask_governor()
            with self._lock:
                self._budget = budget
                queue = self._recall if self._recall_crowded() else self._ingest
                if queue is self._recall:
                    batch = self._take(queue.pop())
                elif not len(queue):
                    if self._closing:
                        return
                    self._ingest_work.wait()
                    continue
                elif (pause := self._pause(budget, rest_until)) > 0:
                    self._ingest_work.wait(pause)
                    continue
                else:
                    batch = self._take(queue.take(max(1, budget.padded_tokens), self._clock.monotonic()))
                    self._ingest_batches += 1
            padded, seconds = self._run(batch, queue)
            if queue is self._recall:
                continue
            with self._lock:
                self._ingest_batches -= 1
                # For one that waits because no more threads may work at once.
                self._ingest_work.notify()
            if padded:
                self._tell_governor(padded, seconds)
            if 0 < budget.duty < 1:
                rest_until = self._clock.monotonic() + seconds * (1 - budget.duty) / budget.duty

    def _pause(self, budget: Budget, rest_until: float) -> float:
        """Seconds this ingest thread has to stand still; a closing box finishes at full speed."""
        if self._closing:
            return 0.0
        if budget.duty <= 0 or self._ingest_batches >= budget.threads:
            return _PAUSE
        return rest_until - self._clock.monotonic()

    def _take(self, entries: list[Entry]) -> list[Entry]:
        """Under the lock that took them out of the queue: `close` finds every entry in one place or the other."""
        self._taken.update(entries)
        return entries

    def _run(self, taken: list[Entry], queue: LaneQueue) -> tuple[int, float]:
        """Settle every entry, whatever happens; (padded tokens, seconds) of what the model had to do."""
        entries: list[Entry] = []
        begun = self._clock.monotonic()
        try:
            entries = [entry for entry in taken if _begin(entry)]
            if entries:
                self._embed(entries)
        except BaseException as error:  # a worker that dies leaves every later caller waiting
            log.exception("an embedding batch failed in the batcher itself")
            for entry in taken:
                fail(entry.future, error)
        seconds = self._clock.monotonic() - begun
        with self._lock:
            self._taken.difference_update(taken)
            queue.measured(sum(entry.tokens for entry in entries), seconds)
        return max((entry.tokens for entry in entries), default=0) * len(entries), seconds

    def _embed(self, entries: list[Entry]) -> None:
        try:
            rows = self._rows(entries)
        except BaseException as error:  # noqa: BLE001  # whatever the model raises, its callers get an answer
            if len(entries) == 1:
                fail(entries[0].future, error)
                return
            log.warning("a batch of %d failed (%s); its texts are tried one by one", len(entries), type(error).__name__)
            for entry in entries:
                self._embed([entry])
            return
        for entry, row in zip(entries, rows, strict=True):
            if np.isfinite(row).all():
                # A copy: a row would keep its whole batch alive.
                answer(entry.future, row.copy())
            else:
                refusal = "the model has no vector for this text; it can still be found by its words"
                fail(entry.future, VectorRefused(refusal))

    def _rows(self, entries: list[Entry]) -> Matrix:
        rows = self._embedder.embed([entry.encoded for entry in entries])
        shape = (len(entries), self._embedder.info.dimension)
        if rows.shape != shape:
            raise ModelError(f"the model gave vectors of shape {rows.shape}, not {shape}; pull it again", field="model")
        return rows

    def _ask_governor(self) -> Budget:
        try:
            return self._governor.budget()
        except Exception:
            log.exception("the governor failed; its last budget stands")
            return self._budget

    def _tell_governor(self, padded: int, seconds: float) -> None:
        try:
            self._governor.observe(padded, seconds)
        except Exception:
            log.exception("the governor failed on a measurement; it goes without")


def _begin(entry: Entry) -> bool:
    """Whether somebody still waits for it; if its time is up, it is told so."""
    if entry.expired:
        fail(entry.future, DeadlineExceeded("the time allowed was over before the text had its vector; allow more"))
        return False
    try:
        return entry.future.set_running_or_notify_cancel()
    except InvalidStateError:
        # `close` has answered it.
        return False


def _stand_back() -> None:
    """Lower the calling thread's priority: on Linux a nice value is a thread's."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _STAND_BACK)
        except OSError as error:
            log.debug("ingest threads keep their priority: %s", error)
