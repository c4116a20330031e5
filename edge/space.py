"""One space: its log, the views made of it, and the write path between them."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edge import views
from edge.backlog import NOT_ROUTED, Backlog
from edge.config import Storage
from edge.errors import DataLoss, DiskFull, EdgeError, ReadOnly, Unavailable, VectorRefused
from edge.futures import promise
from edge.index.live import Tuning
from edge.index.several import Indexes
from edge.ingest import Batch, Gate, Ingest
from edge.ledger import recent
from edge.ledger.cold import Cold
from edge.ledger.disk import left
from edge.ledger.events import Event, Tallied, TurnSaid
from edge.ledger.forgetting import Forgetting
from edge.ledger.log import Allocator, Log
from edge.ledger.memories import Applied, Memories
from edge.ledger.merges import Merges
from edge.ledger.queries import Queries
from edge.ledger.recalled import Recalled
from edge.ledger.revising import Revisions
from edge.ledger.rows import stored
from edge.ledger.unused import Unused
from edge.ports import Clock, Lexicon
from edge.types import Filter, Matrix, Memory, Micros, ModelInfo, Piece, Receipt, RowIds, Turn
from edge.views import SpaceFacts

logger = logging.getLogger(__name__)

# Seconds that a call may wait for the tables to follow the log.
_CATCH_UP = 5.0
# Bytes of the disk that turns leave alone, so that the views can follow and there is room to forget.
_RESERVE = 2 << 20


class Space:
    """The ledger of one directory, an index for each running model, and its place in the backlog.

    Implements ingest.Ledger, backlog.Shelf and recall's SpaceView. Opening replays what the views lack and finishes
    forgets that a crash interrupted, as far as a full disk lets it; the rest follows. On a read-only disk, views that
    are behind the log are made anew elsewhere.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        storage: Storage,
        clock: Clock,
        lexicon: Lexicon,
        backlog: Backlog,
        models: Sequence[ModelInfo],
        key: bytes,
        gate: Gate,
        cut: Callable[[str], tuple[Piece, ...]],
        read_only: bool,
        news: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.directory = directory
        self._clock = clock
        self._backlog = backlog
        self._read_only = read_only
        self._news = news
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._latest: Future[Applied] | None = None
        # Why the last vectors could not be stored; the backlog tries again until they are.
        self._unkept: EdgeError | None = None
        place, segment_bytes = directory / "log", storage.segment_bytes
        self._log = Log(place, clock=clock, segment_bytes=segment_bytes, on_durable=self._durable, read_only=read_only)
        with contextlib.ExitStack() as undo:
            undo.callback(self._log.close)
            try:
                self._open_views(storage, lexicon, models, key)
            except DataLoss as error:
                # Damage in the middle of a database shows when it is read, not when it is opened.
                if read_only:
                    raise
                logger.warning("space %s: %s; it is made anew from the log", name, error.message)
                views.discard(directory)
                self._open_views(storage, lexicon, models, key)
            undo.pop_all()
        self.ingest = Ingest(self, gate, cut)
        backlog.attach(self)

    # Opening and closing.

    def _open_views(self, storage: Storage, lexicon: Lexicon, models: Sequence[ModelInfo], key: bytes) -> None:
        """The database and the indexes, brought up to the log; what fails lets go of what it had opened."""
        with contextlib.ExitStack() as undo:
            self._database, self._scratch = views.open_database(
                self.name, self.directory, self._log.last_n, self._read_only
            )
            undo.callback(self._database.close)
            self._memories = Memories(self._database, lexicon, key)
            undo.callback(self._memories.close)
            self.queries = Queries(self._database)
            self.unused = Unused(self._database)
            self._recalled = Recalled(self._log, self._memories, self.queries, self._clock)
            self.merges = Merges(self._database)
            self.revisions = Revisions(self._database, self._log, self.queries, self._catch_up)
            self.cold = Cold(self._log, self._database, self.queries, self.revisions, self._clock)
            self._forgetting = Forgetting(
                self._log, self._database, self._memories, self.queries, self.revisions, self._drop_indexed, self.cold
            )
            behind = views.replay(self._log, self._memories)
            read_only = self._read_only and self._scratch is None
            if not read_only:
                views.keep_routing(self.name, self._memories, self.queries, models, NOT_ROUTED)
            place = (self.directory if self._scratch is None else Path(self._scratch.name)) / "index"
            identity, tuning = self.queries.generation(), Tuning(snapshot_interval=storage.snapshot_interval)
            self.indexes = Indexes.open(
                place, models, self.queries, identity=identity, read_only=read_only, tuning=tuning
            )
            undo.callback(self.indexes.close)
            for applied in behind:
                self._follow(applied)
            self._behind = behind[-1] if behind else None
            try:
                self.finish_forgets()
            except (DiskFull, ReadOnly, Unavailable) as error:
                logger.warning("space %s: a forget is not finished: %s", self.name, error.message)
            undo.pop_all()

    def discard_views(self) -> None:
        """Removes all that the log brings back; for a space that is closed."""
        views.discard(self.directory)

    def close(self) -> None:
        """Applies what the log has, saves the index, and lets go of the files."""
        self._backlog.detach(self.name)
        try:
            self.flush_accesses()
        except EdgeError as error:
            logger.warning("space %s: the last recalls are not counted: %s", self.name, error.message)
        self._log.close()
        self._memories.close()
        self.indexes.close()
        self._database.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    # The write path (ingest.Ledger).

    def append(self, decide: Callable[[], Batch]) -> Future[Future[tuple[int, ...]]]:
        answer = promise()

        def plan(numbers: Allocator) -> tuple[list[Event], None]:
            if refusal := self._refusal():
                raise refusal
            batch = decide()
            events: list[Event] = [
                TurnSaid(numbers.next(), numbers.at, draft.turn, draft.fingerprint, draft.pieces)
                for draft in batch.drafts
            ]
            if batch.tally:
                events.append(Tallied(numbers.next(), numbers.at, batch.tally))
            return events, None

        def durable(logged: Future[tuple[tuple[Event, ...], None]]) -> None:
            # On the log's thread, right after `_durable` had these events.
            error = logged.exception()
            if error is not None:
                answer.set_exception(error)
                return
            events, _ = logged.result()
            answer.set_result(self._rows([event.n for event in events if isinstance(event, TurnSaid)]))

        self._log.submit(plan).add_done_callback(durable)
        return answer

    def _durable(self, events: list[Event]) -> None:
        self._follow(self._memories.apply(events))

    def _follow(self, applied: Future[Applied]) -> None:
        self._latest = applied
        applied.add_done_callback(self._applied)

    def _applied(self, done: Future[Applied]) -> None:
        if done.exception() is None:
            applied = done.result()
            if applied.removed:
                self.indexes.remove(np.array(applied.removed, np.int64))
                self._backlog.gone(self.name, applied.removed)
            # Looking for what has no vector reads every row.
            if applied.added or applied.returned:
                self._backlog.wake(self.name, applied.returned)
            # Turns that were added have no vectors yet; of what was revised, something may have been confirmed.
            if not applied.added:
                self._news(self.name)

    def _rows(self, numbers: Sequence[int]) -> Future[tuple[int, ...]]:
        rows = promise()
        if not numbers or self._latest is None:
            rows.set_result(())
            return rows

        def told(done: Future[Applied]) -> None:
            error = done.exception()
            if error is not None:
                rows.set_exception(error)
                return
            added = done.result().added
            rows.set_result(tuple(rowid for n in numbers for rowid in added.get(n, ())))

        self._latest.add_done_callback(told)
        return rows

    def _refusal(self) -> EdgeError | None:
        """Why no turn is taken just now; it passes by itself.

        The log may have room where the views have none. But a turn that nothing can find is of no use, and one that
        the tables do not know yet cannot be told from its repeat.
        """
        if stalled := self._memories.stalled or self._unkept:
            return stalled
        if self._behind is not None and not self._behind.done():
            return Unavailable(f"space {self.name} is still being read from its log; try again", retry_after=1.0)
        if not self._read_only and left(self.directory) < _RESERVE:
            return DiskFull(
                f"less than {_RESERVE >> 20} MiB left for {self.directory}; free some space, a restart is not needed",
                retry_after=5.0,
            )
        return None

    def _catch_up(self) -> bool:
        """Waits until the tables have what the log has by now; whether there was anything to wait for.

        A turn is acknowledged once the log has it, and may be named from then on. Raises DiskFull or what else
        keeps the tables from taking it, Unavailable when it takes long.
        """
        latest = self._latest
        if latest is None or latest.done():
            return False
        if not wait([latest], timeout=0 if self._memories.stalled else _CATCH_UP).done:
            raise self._memories.stalled or Unavailable(
                f"the database of space {self.name} is far behind its log; try again", retry_after=_CATCH_UP
            )
        return True

    def known(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        return self.queries.seen(fingerprints)

    def before(self, turn: Turn) -> tuple[int, str]:
        return self.queries.said_before(turn.source, turn.session, turn.seq)

    def forgotten(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        by_mark = {self._memories.mark(fingerprint): fingerprint for fingerprint in fingerprints}
        erased = {by_mark[mark] for mark in self.queries.is_erased(list(by_mark))}
        return erased | self.queries.hidden(fingerprints)

    def searchable(self, rowids: Sequence[int]) -> Future[dict[int, VectorRefused]]:
        if len(self.indexes) == 1:
            return self._backlog.wait(self.name, dict.fromkeys(self.indexes, rowids))
        # A model that they are not for may have a long way to come to them.
        wanted: dict[str, list[int]] = {model: [] for model in self.indexes}
        try:
            memories = self.queries.fetch(rowids)
        except EdgeError:
            return self._backlog.wait(self.name, dict.fromkeys(self.indexes, rowids))
        for rowid, memory in memories.items():
            for model in self._backlog.models(memory.text):
                wanted[model].append(rowid)
        return self._backlog.wait(self.name, wanted)

    def found(self, ids: Sequence[str]) -> Future[None]:
        """Done when these memories, as far as they are of this space, are in the index."""
        answer = promise()

        def applied(_: Future[Applied] | None) -> None:
            try:
                pending = {rowid for model in self.indexes for rowid in self.queries.pending_of(model, ids)}
                waiting = self.searchable(sorted(pending))
            except EdgeError as error:
                answer.set_exception(error)
                return
            waiting.add_done_callback(lambda _: answer.set_result(None))

        # What the log has and the database not yet is neither there nor pending.
        latest = self._latest
        if latest is None:
            applied(None)
        else:
            latest.add_done_callback(applied)
        return answer

    # The second half (backlog.Shelf).

    def pending(self, model: str, after: int, limit: int) -> list[tuple[int, str]]:
        return self.queries.pending(model, after, limit)

    def keep(self, model: str, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        # The index first: whoever is forgotten between the two steps is found missing by the second and taken out.
        index = self.indexes[model]
        index.add(rowids, stored(vectors))
        kept = self._memories.put_vectors(model, rowids, vectors)

        def settle(done: Future[RowIds]) -> None:
            error = done.exception()
            self._unkept = error if isinstance(error, EdgeError) else None
            living = done.result() if error is None else np.zeros(0, np.int64)
            gone = np.setdiff1d(rowids, living)
            if len(gone):
                index.remove(gone)
            self._news(self.name)

        kept.add_done_callback(settle)
        return kept

    def refuse(self, model: str, rowids: Sequence[int], reason: str) -> Future[None]:
        refused = self._memories.refuse_vectors(model, rowids, reason)
        refused.add_done_callback(lambda _: self._news(self.name))
        return refused

    # Reading (recall's SpaceView, and the service).

    @property
    def reader(self) -> Queries:
        return self.queries

    def by_ids(self, ids: Sequence[str]) -> list[Memory]:
        """Those of the ids that name a memory here, one that was acknowledged a moment ago included."""
        found = [self.queries.by_id(id_) for id_ in ids]
        if None in found and self._catch_up():
            found = [self.queries.by_id(id_) for id_ in ids]
        return [replace(memory, space=self.name) for memory in found if memory is not None]

    def list_page(self, wanted: Filter, size: int, after: tuple[Micros, int] | None) -> list[Memory]:
        """At most `size`, newest first, behind (occurred_at, rowid)."""
        return [replace(memory, space=self.name) for memory in self.queries.list_page(wanted, size, after)[0]]

    def recent_turns(self, source: str, session: str, most: int) -> Iterator[Turn]:
        """See ledger.recent; those that were acknowledged a moment ago included."""
        self._catch_up()
        return recent.last_turns(self._database, self._log.directory, source=source, session=session, most=most)

    def drained(self) -> Future[dict[int, VectorRefused]]:
        """Done when nothing of now is without a vector, but for what it gives: found by its words only, and why."""
        pending = {model: self.queries.pending_rowids(model) for model in self.indexes}
        return self._backlog.wait(self.name, pending)

    def touch(self, rowids: Iterable[int]) -> None:
        """These were recalled; written down later, off the recall's path."""
        self._recalled.touch(rowids)

    def flush_accesses(self) -> None:
        if not self._read_only and self._recalled.flush():
            self._news(self.name)

    def checkpoint_accesses(self) -> None:
        """Notes the counts in the log, so that they outlive the database."""
        if not self._read_only:
            self._recalled.checkpoint()

    # Forgetting.

    def forget(self, ids: Sequence[str], wanted: Filter | None, dry_run: bool, **more: Any) -> Receipt:
        """Blocks until nothing of it is on the disk; see Forgetting.forget, also for what more it takes."""
        if not dry_run:
            self.ingest.forget_samples()
        return self._forgetting.forget(ids, wanted, dry_run=dry_run, **more)

    def finish_forgets(self, hidden_until: Micros | None = None) -> list[Receipt]:
        """See Forgetting.finish."""
        return [] if self._read_only else self._forgetting.finish(hidden_until)

    def _drop_indexed(self, rowids: Sequence[int]) -> int:
        self.indexes.remove(np.array(rowids, np.int64))
        self._backlog.gone(self.name, rowids)
        self._recalled.forget(rowids)
        return self.indexes.drop()

    # For the owner.

    def facts(self) -> SpaceFacts:
        index = self.indexes.stats()
        samples, revised = self.ingest.samples(), self.merges.counts()
        return views.facts(self.name, self._log, self.queries, list(self.indexes), index, samples, revised)

    def check_room(self) -> None:
        """For work that nobody waits for: raises why no turn is taken just now. What they leave, forgets need."""
        if refusal := self._refusal():
            raise refusal

    def warnings(self) -> list[str]:
        unfinished = self._forgetting.unfinished
        return views.warnings(self._log, self._memories, self.indexes.stats(), self._refusal(), unfinished)
