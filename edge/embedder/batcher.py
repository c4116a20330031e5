"""Texts of many callers to vectors, in batches, on threads of its own; recalls never wait for ingests.

Work-conserving: a batch starts as soon as a thread is free, and nothing waits for company (as in
text-embeddings-inference; Clipper, NSDI'17). One thread is the recalls' own. The ingest threads run at a lower priority
where threads have one (Linux), so that on a full machine a recall gets its core at once, and they help with recalls
when the recall thread is busy.

Several models share the lanes and the threads, which are the device's; a batch is of one of them.

Nothing of this waits for ever. A text for which memory has no room is passed over, and left to its words after a
while; a run of the model that does not come back is named in the log, and recalls go by words meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from edge.config import Embedding, Governing
from edge.embedder.answers import begin, embed, fail, left_to_words, no_room, standing_still
from edge.embedder.face import Face
from edge.embedder.governor import worker_count
from edge.embedder.lanes import Entry, LaneQueue, Served
from edge.embedder.steady import Steady, stand_back
from edge.embedder.watchdog import STANDSTILL, Run, Watchdog
from edge.errors import Exhausted, Unavailable
from edge.ports import Budget, Clock, Embedder, Governor, QueueStatus, Vectorizer
from edge.types import Lane, ModelInfo, Vector

log = logging.getLogger(__name__)

# Seconds between looks at a governor that allows no work just now: sensors are not read more often.
_PAUSE = 1.0
# The longest rest after a run, which may have slept through a night, or stood in a stopped process.
_LONGEST_REST = 60.0
_RECALL_THREAD = "embed-recall"
_PATIENCE = Governing().patience
# Seconds that a refused caller is told to wait, least and most.
_SOONEST, _LATEST = 0.05, 60.0


class Batcher:
    """ports.Vectorizer over any embedder: `start` it before the first answer is wanted, `close` it at the end.

    `beside` are models that run beside it: `of` gives each one's own Vectorizer, and the first one's too.

    `deadline` of `submit` is a time.monotonic() value, as in types.Question. The clock measures ages and batches. The
    governor is asked before each batch and told of ingest batches after; a governor that raises changes nothing.
    `patience` is how many seconds an ingest may wait for memory. Whoever wakes once a second anyway calls `check`.
    """

    def __init__(
        self,
        embedder: Embedder,
        governor: Governor,
        clock: Clock,
        config: Embedding,
        patience: float = _PATIENCE,
        beside: Sequence[Served] = (),
    ) -> None:
        self._first = Served(embedder)
        self.faces: Mapping[str, Vectorizer] = {
            served.embedder.info.id: Face(served, self._submit, self.status) for served in (self._first, *beside)
        }
        self._workers = worker_count(config)
        self._governor = Steady(
            governor, Budget(max(1, config.batch_tokens), self._workers, 1.0, True, "not asked yet")
        )
        self._clock = clock
        self._recall = LaneQueue(config.recall_drain)
        self._ingest = LaneQueue(config.ingest_drain)
        self._lock = threading.Lock()
        # Two conditions on one lock, so that a submit wakes exactly the threads it is for.
        self._recall_work = threading.Condition(self._lock)
        self._ingest_work = threading.Condition(self._lock)
        self._recall_busy = False
        self._patience = patience
        # It has every entry that is in no queue any more and not yet settled.
        self._watchdog = Watchdog(config.hang_seconds)
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._budget = self._governor.last

    @property
    def info(self) -> ModelInfo:
        return self._first.embedder.info

    def of(self, model: str) -> Vectorizer:
        """The Vectorizer of a model by its id. Raises KeyError for one that does not run."""
        return self.faces[model]

    def start(self) -> None:
        """Start the threads; a second call does nothing."""
        budget = self._governor.budget()
        with self._lock:
            if self._threads or self._closing:
                return
            self._budget = budget
            self._threads = [threading.Thread(target=self._serve_recalls, name=_RECALL_THREAD, daemon=True)] + [
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
            left = [*self._recall.clear(), *self._ingest.clear(), *self._watchdog.entries()]
            self._recall_work.notify_all()
            self._ingest_work.notify_all()
        for entry in left:
            fail(
                entry.future, Unavailable("the box stopped before this text had its vector; ask again when it is back")
            )

    def __enter__(self) -> Batcher:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        """See ports.Vectorizer. All of the texts are taken, or none; they are tokenised on the calling thread.

        A lane in which nothing waits takes whatever comes. Raises Exhausted when the lane is full; Unavailable once
        the batcher is closed, and to a recall for which memory has no room or while no thread could run it.
        """
        return self._submit(self._first, texts, lane, deadline)

    def _submit(self, served: Served, texts: Sequence[str], lane: Lane, deadline: float | None) -> list[Future[Vector]]:
        queue = self._recall if lane is Lane.RECALL else self._ingest
        if queue is self._recall:
            self._watch()
        with self._lock:
            # Here too, before the work of tokenising: a flood must cost little.
            self._admit(queue, 0)
        encoded = served.embedder.encode(texts, lane)
        now = self._clock.monotonic()
        entries = [Entry(item, deadline, now, served) for item in encoded]
        with self._lock:
            self._admit(queue, sum(entry.tokens for entry in entries))
            if queue is self._recall and any(entry.row > self._budget.row_tokens for entry in entries):
                raise no_room()
            queue.extend(entries)
            if queue is self._ingest:
                self._ingest_work.notify(len(entries))
            else:
                self._recall_work.notify()
                if self._recall_crowded():
                    self._ingest_work.notify(len(entries))
        return [entry.future for entry in entries]

    def tokens(self, text: str) -> int:
        """As the first model counts them; see Face."""
        return self.of(self.info.id).tokens(text)

    def status(self) -> QueueStatus:
        self.check()
        with self._lock:
            now = self._clock.monotonic()
            rate, tokens = self._rate(self._ingest, now), self._ingest.all_tokens
            return QueueStatus(
                recalls=len(self._recall),
                ingests=len(self._ingest) + self._ingest.aside,
                ingest_tokens=tokens,
                drain_seconds=tokens / rate if rate > 0 else float(bool(tokens)) * _LATEST,
                tokens_per_second=rate,
                stalled=self._watchdog.stalled(now),
            )

    def stuck(self) -> bool:
        """Whether every ingest thread hangs in the model, so that no ingest gets its vector. Cheap."""
        with self._lock:
            return self._hanging(self._clock.monotonic()) >= self._workers

    def check(self) -> None:
        """Names runs that hang, lets recalls go that stand still, and ingests whose patience with memory is over.

        Cheap, and safe from any thread; to be called once a second while the box runs.
        """
        budget = self._watch()
        with self._lock:
            # Its patience runs while nothing is taken, too.
            self._ingest.pass_over(budget.row_tokens, self._clock.monotonic())
            if len(self._ingest) or self._ingest.aside:
                # The budget may be another by now.
                self._ingest_work.notify()
        self._let_go(budget)

    def _watch(self) -> Budget:
        """The present budget; and what `check` does for runs."""
        with self._lock:
            now = self._clock.monotonic()
            budget = self._budget = self._governor.budget()
            unnamed = self._watchdog.unnamed(now)
            late = self._standing_still(now)
        for run in unnamed:
            log.warning(
                "the model hangs: thread %s, %s lane, %d tokens, %.0f s so far; others go on without it, recalls by "
                "words; restart the box if it stays so",
                run.thread,
                run.lane.name.lower(),
                run.tokens,
                now - run.since,
            )
        for entry in late:
            fail(entry.future, standing_still())
        return budget

    def _standing_still(self, now: float) -> list[Entry]:
        """Recalls in a run that takes far too long, and those that wait behind the recall thread's. With the lock."""
        runs = [run for run in self._watchdog.standing_still(now) if run.lane is Lane.RECALL]
        late = [entry for run in runs for entry in run.entries]
        if any(run.thread == _RECALL_THREAD for run in runs):
            behind = self._recall.older(now - STANDSTILL)
            self._recall.remove(behind)
            late += behind
        return late

    def _let_go(self, budget: Budget) -> None:
        """Ingests that have waited for memory long enough are found by their words only."""
        with self._lock:
            now = self._clock.monotonic()
            over = self._ingest.sort_aside(budget.row_tokens, now, self._patience)
            run = self._take(over, Lane.INGEST, now) if over else None
        if run is not None:
            for entry in run.entries:
                if begin(entry):
                    fail(entry.future, left_to_words())
            with self._lock:
                self._watchdog.end(run)

    def _admit(self, queue: LaneQueue, tokens: int) -> None:
        if self._closing:
            raise Unavailable("the box is stopping; ask again when it is back")
        now = self._clock.monotonic()
        if queue is self._recall and self._unattended(now):
            raise standing_still()
        rate = self._rate(queue, now)
        # What is kept aside is in the way of others only while nothing at all can run.
        waiting = queue.tokens if rate > 0 else queue.all_tokens
        excess = waiting + tokens - queue.drain * rate
        if waiting and excess > 0:
            wait = min(_LATEST, max(_SOONEST, excess / rate)) if rate > 0 else _LATEST
            raise Exhausted(
                f"{waiting:,} tokens already wait for their vectors, and the box takes on no more than "
                f"{queue.drain:g} seconds of work; try again in {wait:.2f} seconds",
                retry_after=wait,
            )

    def _rate(self, queue: LaneQueue, now: float) -> float:
        """Tokens a second that the lane gets done: all its threads that move, at the governor's pace."""
        if queue is self._recall:
            return queue.rate
        if self._budget.row_tokens <= 0:
            return 0.0
        threads = min(self._workers - self._hanging(now), self._budget.threads)
        return queue.rate * max(0, threads) * min(1.0, max(0.0, self._budget.duty))

    def _unattended(self, now: float) -> bool:
        """Whether the recall thread stands still, and every ingest thread that would help it. With the lock."""
        threads = {run.thread for run in self._watchdog.standing_still(now)}
        return _RECALL_THREAD in threads and len(threads) > self._workers

    def _hanging(self, now: float) -> int:
        """Ingest threads that hang in the model. With the lock."""
        return sum(run.thread != _RECALL_THREAD for run in self._watchdog.hanging(now))

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
                run = self._take(self._recall.pop(), Lane.RECALL, self._clock.monotonic())
            self._run(run)

    def _serve_ingests(self) -> None:
        """Recalls that the recall thread cannot take; else an ingest batch, as the governor allows."""
        stand_back()
        # Of the last batch: when it ended, and how many seconds it took.
        ended = took = 0.0
        while True:
            self._let_go(self._governor.budget())
            with self._lock:
                # Asked under the lock, so that nobody's older word replaces a newer one.
                budget = self._budget = self._governor.budget()
                now = self._clock.monotonic()
                if self._recall_crowded():
                    run = self._take(self._recall.pop(), Lane.RECALL, now)
                elif not len(self._ingest):
                    if self._closing:
                        return
                    self._ingest_work.wait(_PAUSE if self._ingest.aside else None)
                    continue
                elif (pause := self._pause(budget, took, now - ended, now)) > 0:
                    self._ingest_work.wait(pause)
                    continue
                else:
                    batch = self._ingest.take(max(1, budget.padded_tokens), budget.row_tokens, now)
                    if not batch:
                        continue
                    run = self._take(batch, Lane.INGEST, now)
            worked = time.thread_time()
            served, padded, seconds = self._run(run)
            if run.lane is Lane.RECALL:
                continue
            if padded:
                ended, took = self._clock.monotonic(), seconds
                # An accelerator's work is not this thread's.
                on_cpu = served.embedder.info.device == "cpu"
                self._governor.observe(
                    round(padded * served.cost), seconds, time.thread_time() - worked if on_cpu else seconds
                )

    def _pause(self, budget: Budget, took: float, rested: float, now: float) -> float:
        """Seconds this ingest thread has to stand still, after a batch of `took` seconds and a rest of `rested`.

        A closing box does not mind the heat, but memory it does.
        """
        running = self._watchdog.moving(Lane.INGEST, now)
        if self._closing:
            return _PAUSE if running >= max(1, budget.threads) else 0.0
        if budget.duty <= 0 or running >= budget.threads:
            return _PAUSE
        return min(_LONGEST_REST, took * (1 - budget.duty) / budget.duty) - rested

    def _take(self, entries: list[Entry], lane: Lane, now: float) -> Run:
        """Under the lock that took them out of the queue: `close` finds every entry in one place or the other."""
        rate = (self._recall if lane is Lane.RECALL else self._ingest).rate
        usual = sum(entry.tokens for entry in entries) / max(1.0, rate)
        return self._watchdog.begin(Run(threading.current_thread().name, lane, entries, now, usual))

    def _run(self, run: Run) -> tuple[Served, int, float]:
        """Settle every entry, whatever happens; (model, padded tokens, seconds) of what it had to do."""
        served = self._first
        entries: list[Entry] = []
        begun = self._clock.monotonic()
        try:
            entries = [entry for entry in run.entries if begin(entry)]
            if run.lane is Lane.RECALL:
                entries = self._fitting(entries)
            if entries:
                # Those of other models that came along were departed, and have been told so.
                served = entries[0].served
                embed(served.embedder, entries)
        except BaseException as error:  # a worker that dies leaves every later caller waiting
            log.exception("an embedding batch failed in the batcher itself")
            for entry in run.entries:
                fail(entry.future, error)
        ended = self._clock.monotonic()
        seconds = ended - begun
        with self._lock:
            self._watchdog.end(run)
            if self._watchdog.hangs(run, ended):
                # It says nothing of the device's pace.
                entries = []
            elif entries:
                queue = self._recall if run.lane is Lane.RECALL else self._ingest
                queue.measured(sum(entry.tokens for entry in entries), seconds)
            if run.lane is Lane.INGEST and len(self._ingest):
                # For one that waits because no more threads may work at once.
                self._ingest_work.notify()
        if run.named:
            log.warning("the model moves again: thread %s, after %.0f s", run.thread, seconds)
        return served, max((entry.tokens for entry in entries), default=0) * len(entries), seconds

    def _fitting(self, entries: list[Entry]) -> list[Entry]:
        """Memory may have shrunk while they waited."""
        room = self._governor.budget().row_tokens
        for entry in entries:
            if entry.row > room:
                fail(entry.future, no_room())
        return [entry for entry in entries if entry.row <= room]
