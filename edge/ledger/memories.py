"""Writing the view: events become rows, words and vectors, in the order of the log."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import numpy as np

from edge.errors import DiskFull, EdgeError, ReadOnly, Unavailable
from edge.ledger import writes
from edge.ledger.batch import Batch
from edge.ledger.database import Database
from edge.ledger.events import Accesses, Erased, Event, Forgotten, Revised, Tallied, TurnSaid, mark
from edge.ledger.reindex import renew
from edge.ledger.revisions import Alike, Change
from edge.ledger.rows import UNFOUND_STATES, clean, pack
from edge.ports import Lexicon
from edge.types import Matrix, Micros, RowIds

_logger = logging.getLogger(__name__)
# What one transaction may hold, in characters to be indexed: some 10 ms of the writer thread on a slow core.
_SLICE = 6_000
# What dropping one memory costs, in the same coin.
_DROP = 150
# And what changing some fields of one costs.
_CHANGE = 10
# Where it is the same change of many.
_ALIKE = 3
_MERGE_PAGES = 64
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Applied:
    """What events changed. A rowid in both `added` and `removed` is gone: a later event of the same call took it."""

    last_n: int
    # Event number of each new turn to the rowids of its memories, in the order of its pieces.
    added: Mapping[int, tuple[int, ...]]
    # Superseded and forgotten: to be taken out of every index.
    removed: tuple[int, ...]
    # They are to be found again, and have no vectors any more.
    returned: tuple[int, ...] = ()


class Memories:
    """The one writer of the ledger's tables. Its thread cuts and segments; the database's thread only inserts.

    `key` is the box's secret for marks of forgotten turns.
    """

    def __init__(self, database: Database, lexicon: Lexicon, key: bytes) -> None:
        self._database = database
        self._lexicon = lexicon
        self._key = key
        with database.reader() as connection:
            self._applied = int(connection.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()[0])
        self._failure: EdgeError | None = None
        self._stalled: EdgeError | None = None
        self._queue: SimpleQueue[tuple[list[Event], Future[Applied]] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-memories", daemon=True)
        self._thread.start()

    @property
    def applied(self) -> int:
        """The number of the last event whose rows are all there."""
        return self._applied

    @property
    def failure(self) -> EdgeError | None:
        """Why no event can be applied any more; None while all is well. The way out is a rebuild from the log."""
        return self._failure

    @property
    def stalled(self) -> EdgeError | None:
        """Why events wait just now (DiskFull, ReadOnly, Unavailable); None while they do not. It passes by itself."""
        return self._stalled

    def mark(self, fingerprint: bytes) -> str:
        return mark(self._key, fingerprint)

    def apply(self, events: Sequence[Event]) -> Future[Applied]:
        """Takes events in the order of their numbers; those that are in the tables already are skipped.

        Call it from one thread, with every event of the log. While the disk is full or read-only the future waits:
        going on would leave a hole. It fails with DataLoss when the database is damaged, and all later ones with it.
        """
        future: Future[Applied] = Future()
        with self._gate:
            if self._closed:
                raise Unavailable("the space is closed: the box is stopping, or it was deleted", retry_after=5.0)
            self._queue.put((list(events), future))
        return future

    def put_vectors(self, model: str, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        """Stores vectors, shape (n, dimension), rounded to float16. Gives the rowids that are still living, which
        are those it stored."""
        blobs = [row.tobytes() for row in pack(vectors)]
        wanted = [int(rowid) for rowid in rowids]

        def put(connection: sqlite3.Connection) -> RowIds:
            alive = writes.living(connection, wanted)
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (model, memory, vector) VALUES (?, ?, ?)",
                ((model, rowid, blob) for rowid, blob in zip(wanted, blobs, strict=True) if rowid in alive),
            )
            return np.array([rowid for rowid in wanted if rowid in alive], dtype=np.int64)

        return self._database.submit(put)

    def refuse_vectors(self, model: str, rowids: Sequence[int], reason: str) -> Future[None]:
        """Records that these memories get no vector of the model, so that they are pending no more."""

        def refuse(connection: sqlite3.Connection) -> None:
            alive = writes.living(connection, rowids)
            connection.executemany(
                "INSERT OR REPLACE INTO refused VALUES (?, ?, ?)",
                ((model, rowid, reason) for rowid in rowids if rowid in alive),
            )

        return self._database.submit(refuse)

    def keep_routing(self, routing: str, reason: str) -> Future[None]:
        """Records how texts are given to models. What was refused for that `reason` under another way is pending."""

        def keep(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM refused WHERE reason = ?", (reason,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('routing', ?)", (routing,))

        return self._database.submit(keep)

    def add_accesses(self, counts: Mapping[int, tuple[int, Micros]]) -> Future[None]:
        """Adds recalls: {rowid: (how many more, when last)}."""
        rows = [(more, last, rowid) for rowid, (more, last) in counts.items()]

        def add(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE memories SET access_count = access_count + ?, accessed_at = max(accessed_at, ?) "
                "WHERE rowid = ?",
                rows,
            )

        return self._database.submit(add)

    def compact(self) -> None:
        """Merges the word index until no forgotten term is left in it; blocks, in slices that let others write.

        A deletion in FTS5 only adds a tombstone; the terms go when their segments are merged (the secure-delete
        option is younger than the oldest SQLite that we serve).
        """
        pages = -_MERGE_PAGES
        while True:

            def merge(connection: sqlite3.Connection, pages: int = pages) -> int:
                before = connection.total_changes
                connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (pages,))
                return connection.total_changes - before

            # Less than two changes: nothing was left to do (SQLite's documentation of FTS5, "merge").
            if self._database.submit(merge).result() < 2:
                return
            pages = _MERGE_PAGES

    def finish_forgets(self, ids: Sequence[str]) -> Future[None]:
        """Records that nothing of these forgets' turns is left in log and database."""

        def finish(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE forgets SET done = 1 WHERE id = ?", ((id,) for id in ids))

        return self._database.submit(finish)

    def close(self) -> None:
        """Applies what was submitted, unless the disk does not let it: the log has it. May be called again."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._stop.set()
        self._thread.join()

    # The thread of this class.

    def _run(self) -> None:
        renew(self._database, self._terms, self._lexicon.version, self._stop.is_set)
        while True:
            job = self._queue.get()
            if job is None:
                return
            events, future = job
            if not future.set_running_or_notify_cancel():
                # Cancelling a wait does not cancel what is in the log.
                future = Future()
            try:
                if self._failure:
                    raise self._failure
                applied = self._apply(events)
            except EdgeError as error:
                if not self._stop.is_set():
                    self._failure = error
                future.set_exception(error)
            except BaseException as error:
                # A hole must not open: later events fail too.
                self._failure = EdgeError(f"the ledger could not take an event ({type(error).__name__}); see the log")
                _logger.exception("the ledger could not take an event")
                future.set_exception(error)
            else:
                future.set_result(applied)

    def _apply(self, events: Iterable[Event]) -> Applied:
        batch = Batch()
        for event in events:
            if event.n <= (batch.whole_n or self._applied):
                continue
            if isinstance(event, TurnSaid):
                self._turn(event, batch)
            elif isinstance(event, Forgotten):
                self._forget(event, batch)
            elif isinstance(event, Erased):
                batch.actions.append(partial(writes.remember_erased, event=event))
            elif isinstance(event, Accesses):
                batch.actions.append(partial(writes.count, event=event))
                batch.cost += _CHANGE * len(event.counts)
            elif isinstance(event, Revised):
                self._revise(event, batch)
            elif isinstance(event, Tallied):
                batch.actions.append(partial(writes.tally, event=event))
                batch.cost += _CHANGE * len(event.counts)
            batch.whole_n = event.n
            if batch.cost > _SLICE:
                self._commit(batch)
        self._commit(batch)
        added = {n: tuple(rowids) for n, rowids in batch.added.items()}
        return Applied(self._applied, added, tuple(batch.removed), tuple(batch.returned))

    def _turn(self, said: TurnSaid, batch: Batch) -> None:
        turn = said.turn
        name = (turn.source, turn.session, turn.seq)
        if name in batch.names or batch.revises:
            # The older version has to be in the tables before it can be superseded.
            self._commit(batch)
        with self._database.reader() as connection:
            older = [n for n in writes.versions_of(connection, name) if n < said.n]
            gone = writes.memories_of(connection, older, superseded=False)
            # A crash may have left the first pieces of this very turn.
            leftovers = writes.memories_of(connection, [said.n], superseded=True)
        self._in_slices(writes.delete, leftovers, batch)
        self._in_slices(writes.supersede, gone, batch)
        batch.remove(leftovers + gone)
        batch.added[said.n] = []
        batch.actions.append(partial(writes.say, said=said))
        first = 0
        terms: list[str] = []
        for piece in said.pieces:
            terms.append(self._terms(turn.text[piece.start : piece.end]))
            batch.cost += 50 + piece.end - piece.start
            if batch.cost > _SLICE:
                batch.actions.append(partial(_insert, said=said, first=first, terms=terms))
                first, terms = first + len(terms), []
                self._commit(batch)
        batch.actions.append(partial(_insert, said=said, first=first, terms=terms))
        # Last, for each commit on the way has cleared the names, and the last pieces are not in the tables yet.
        batch.names.add(name)

    def _forget(self, event: Forgotten, batch: Batch) -> None:
        # The marks go in first: from here on the sources cannot bring the turns back.
        batch.actions.append(partial(writes.forget, event=event))
        self._commit(batch)
        with self._database.reader() as connection:
            gone = writes.memories_of(connection, event.turns, superseded=True)
        self._in_slices(writes.delete, gone, batch)
        batch.actions.append(partial(writes.unsay, turns=event.turns))
        batch.remove(gone)

    def _revise(self, event: Revised, batch: Batch) -> None:
        batch.actions.append(partial(writes.note_revision, event=event))
        batch.revises = True
        if isinstance(event.changes, Alike) and "state" not in event.changes.after:
            batch.actions.append(partial(writes.revise, n=event.n, changes=event.changes, terms={}))
            batch.cost += _ALIKE * len(event.changes)
            return
        returning = {
            one.id
            for one in event.changes
            if one.before.get("state") in UNFOUND_STATES and one.after.get("state") not in UNFOUND_STATES
        }
        if returning:
            # What they say may be among what is not in the tables yet.
            self._commit(batch)
        some: list[Change] = []
        cost = 0
        for one in event.changes:
            some.append(one)
            cost += _CHANGE
            moves = one.after.get("state") in UNFOUND_STATES or one.id in returning
            cost += _DROP if moves else 0
            if cost > _SLICE or one is event.changes[-1]:
                self._revise_part(event.n, some, returning, batch)
                batch.cost += cost
                some, cost = [], 0
                if batch.cost > _SLICE:
                    self._commit(batch)

    def _revise_part(self, n: int, part: Sequence[Change], returning: set[str], batch: Batch) -> None:
        with self._database.reader() as connection:
            texts = writes.texts_of(connection, [one.id for one in part if one.id in returning])
        terms = {id: self._terms(text) for id, text in texts.items()}
        batch.actions.append(partial(writes.revise, n=n, changes=part, terms=terms))
        batch.cost += sum(map(len, texts.values()))
        batch.revises = True

    def _in_slices(
        self, write: Callable[[sqlite3.Connection, Sequence[int]], None], rowids: Sequence[int], batch: Batch
    ) -> None:
        size = _SLICE // _DROP
        for start in range(0, len(rowids), size):
            part = rowids[start : start + size]
            batch.actions.append(partial(_over, write, part))
            batch.cost += _DROP * len(part)
            if batch.cost > _SLICE:
                self._commit(batch)

    def _terms(self, text: str) -> str:
        try:
            return " ".join(clean(self._lexicon.index_terms(text)))
        except Exception as error:  # noqa: BLE001  # one text without words is better than no turn after it
            _logger.error("the lexicon failed on a text of %d characters with %s", len(text), type(error).__name__)
            return ""

    def _commit(self, batch: Batch) -> None:
        """Runs the batch's actions in one transaction, again and again while the disk is full."""
        if not batch.actions and batch.whole_n is None:
            return
        actions, whole_n = batch.actions, batch.whole_n

        def run(connection: sqlite3.Connection) -> list[object]:
            results = [action(connection) for action in actions]
            if whole_n is not None:
                writes.set_applied(connection, whole_n)
            return results

        wait = _FIRST_WAIT
        while True:
            try:
                results = self._database.submit(run, urgent=True).result()
                break
            except (DiskFull, ReadOnly, Unavailable) as error:
                self._stalled = error
                if wait == _FIRST_WAIT:
                    _logger.warning("%s; what was said meanwhile is in the log and follows", error.message)
                if self._stop.wait(wait):
                    raise
                wait = min(2 * wait, _LONGEST_WAIT)
        self._stalled = None
        for result in results:
            if isinstance(result, _Inserted):
                batch.added[result.n] += result.rowids
            elif isinstance(result, writes.Revisited):
                batch.remove(result.unfound)
                batch.bring_back(result.found)
        if whole_n is not None:
            self._applied = whole_n
        batch.actions, batch.cost, batch.whole_n, batch.revises = [], 0, None, False
        batch.names.clear()


@dataclass(frozen=True, slots=True)
class _Inserted:
    n: int
    rowids: list[int]


def _insert(connection: sqlite3.Connection, said: TurnSaid, first: int, terms: Sequence[str]) -> _Inserted:
    return _Inserted(said.n, writes.insert(connection, said, first, terms))


def _over(
    write: Callable[[sqlite3.Connection, Sequence[int]], None], rowids: Sequence[int], connection: sqlite3.Connection
) -> None:
    write(connection, rowids)
