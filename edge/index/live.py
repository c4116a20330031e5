"""The index that a box searches: a graph for the many, an exact overlay for the newest and the few."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge.errors import Unavailable
from edge.index.hnsw import HnswGraph
from edge.index.pair import GraphAndOverlay
from edge.index.rebuild import CLOSED, rebuild
from edge.index.snapshot import AbortedError, Snapshots, UnusableError
from edge.index.vectors import clean_query, clean_rowids, clean_rows, scores_of, sound_rows
from edge.ports import VectorSource
from edge.types import Matrix, RowIds, Vector

log = logging.getLogger(__name__)

_READ_ROWS = 4096
_SAMPLE_ROWS = 32


@dataclass(frozen=True, slots=True)
class Tuning:
    """Rows and seconds; the defaults were measured at 512 dimensions."""

    # Up to here there is no graph at all: looking at 2,048 rows takes 0.3 ms and is exact.
    flat_rows: int = 2048
    # The overlay of a graph moves into it from here, down to half of it.
    overlay_rows: int = 512
    # A recall waits for one slice of moving at most: one insertion of about 1 ms, or a few when they are quicker.
    slice_seconds: float = 0.001
    # Share of tombstones that is worth a rebuild: searches pass through each of them for nothing.
    deleted_share: float = 0.2
    # Rows of one bulk insertion; closing waits for one at most.
    bulk_rows: int = 1024
    # Threads of a rebuild; 0: every core.
    threads: int = 0
    # Seconds between snapshots of a changed index, and before another try after a failure.
    snapshot_interval: float = 300.0
    retry_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class IndexStats:
    size: int
    overlay: int
    deleted: int
    rebuilding: bool
    # Why the snapshot was not used at the start; empty when it was, or when there was none.
    discarded: str
    # What the last snapshot failed with; empty when it did not.
    snapshot_error: str


class LiveIndex:
    """Nearness over the living memories of one model (ports.VectorIndex); safe from any thread.

    One worker thread moves, rebuilds and saves. It keeps its normal priority, because it holds the lock that recalls
    wait for; the bulk insertions of a rebuild, which hold none, run on a thread of low priority.

    The index is a cache: the ledger forgets first, then `remove`, then `drop` for what is on disk.
    """

    def __init__(
        self,
        dimension: int,
        model: str,
        source: VectorSource,
        *,
        snapshots: Snapshots | None = None,
        graph: HnswGraph | None = None,
        discarded: str = "",
        tuning: Tuning = Tuning(),
    ) -> None:
        self.dimension = dimension
        self.model = model
        self._source = source
        self._snapshots = snapshots
        self._writable = snapshots is not None and not snapshots.read_only
        self._tuning = tuning
        self._pair = GraphAndOverlay(dimension, graph)
        self._discarded = discarded
        self._snapshot_error = ""
        # The version of the graph that is on disk; -1: something else is.
        self._saved = -1 if discarded else 0
        self._drops = 0
        self._saving = threading.Lock()
        # Guards what follows; a leaf: nothing else is taken while it is held.
        self._wake = threading.Condition()
        self._request: Future[int] | None = None
        self._busy = ""
        self._moving = False
        self._paused = False
        self._closing = False
        self._next_rebuild = 0.0
        self._next_save = time.monotonic() + tuning.snapshot_interval
        self._worker = threading.Thread(target=self._work, name=f"edge-index-{model}", daemon=True)
        self._worker.start()

    @classmethod
    def open(
        cls,
        directory: Path,
        model: str,
        dimension: int,
        source: VectorSource,
        *,
        identity: str = "",
        read_only: bool = False,
        tuning: Tuning = Tuning(),
        neighbours: Sequence[str] = (),
    ) -> LiveIndex:
        """The newest valid snapshot in `directory`, brought up to what `source` has now.

        Everything is found from the first search on. What the snapshot lacks goes to the overlay and is searched
        exactly until the worker has moved it; with no snapshot that is all of it, and the worker builds the graph
        anew. `identity` names the database whose rowids these are: without it, a database made anew, with other
        rowids, is told apart by a sample only. `read_only` never writes. `neighbours` are the models whose indexes are
        open on the same directory. Raises what the source raises.
        """
        snapshots = Snapshots(directory, model, dimension, identity, read_only, tuple(neighbours))
        wanted = source.vector_rowids(model)
        graph, discarded = _load(snapshots, source, wanted)
        have = graph.rowids() if graph else np.empty(0, np.int64)
        index = cls(dimension, model, source, snapshots=snapshots, graph=graph, discarded=discarded, tuning=tuning)
        try:
            index.remove(np.setdiff1d(have, wanted, assume_unique=True))
            missing = np.setdiff1d(wanted, have, assume_unique=True)
            index._pair.reserve(len(missing))
            for rowids, vectors in source.iter_vectors(model, missing, _READ_ROWS):
                index._pair.put(*sound_rows(rowids, vectors))
        except BaseException:
            index.close()
            raise
        index._nudge()
        return index

    def __len__(self) -> int:
        counts = self._pair.counts()
        return counts.overlay + counts.graph

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        """At most k nearest, best first, with cosines; none for k <= 0. Raises InvalidArgument for a bad vector."""
        return self._pair.search(clean_query(vector, self.dimension), k)

    def add(self, rowids: RowIds, vectors: Matrix) -> None:
        """Found by the next search; a rowid that is there gets the new vector.

        Raises InvalidArgument for a wrong shape, NaN, infinity or a zero vector, adding nothing.
        """
        self._pair.put(*clean_rows(rowids, vectors, self.dimension))
        if self._pair.glance().overlay > self._tuning.overlay_rows:
            self._nudge()

    def remove(self, rowids: RowIds) -> None:
        """Not found by the next search. Unknown rowids are ignored."""
        self._pair.remove(clean_rowids(rowids))
        self._nudge()

    def rebuild(self) -> Future[int]:
        """Builds the graph anew from the source, in the background; the future gives the number of rows.

        Searches, additions and removals go on. While one that was asked for is not done, its future comes back.
        It fails with what the source failed with, or Unavailable when the index is closed meanwhile.
        """
        with self._wake:
            if self._closing:
                raise Unavailable("the index is closed; open it again")
            if self._request is None or self._request.cancelled():
                self._request = Future()
            self._wake.notify_all()
            return self._request

    def pause(self) -> None:
        """Nothing of its own accord until `resume` (for heat): additions stay in the overlay, and no snapshot is made.

        A rebuild that is asked for is done, and `close` saves.
        """
        with self._wake:
            self._paused = True

    def resume(self) -> None:
        with self._wake:
            if self._paused:
                self._paused = False
                self._wake.notify_all()

    def settle(self, timeout: float) -> bool:
        """Waits until nothing is left to move or rebuild, `timeout` seconds at most; whether that is so."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._busy and self._due()[0] in ("", "save", "close"), timeout)

    def stats(self) -> IndexStats:
        counts = self._pair.counts()
        return IndexStats(
            counts.overlay + counts.graph,
            counts.overlay,
            counts.deleted,
            self._pair.rebuilding,
            self._discarded,
            self._snapshot_error,
        )

    def save(self) -> bool:
        """A snapshot of the graph, if it has changed; whether what is on disk is current.

        Searches and additions go on; moving waits for the copy (some 0.15 s for 100,000 rows), not for the disk.
        A failure (a full disk) is logged, leaves the older snapshot, and is tried again after the interval.
        The overlay is not in it: the ledger has its vectors. So there is none while there are few rows.
        """
        with self._saving:
            drops = self._drops
            version, image = self._pair.image(unless=self._saved)
            if version == self._saved:
                return True
            if self._snapshots is None or not self._writable:
                return False
            try:
                if image is None:
                    self._snapshots.drop(others=False)
                else:
                    self._snapshots.write(image, aborted=lambda: self._drops != drops)
            except AbortedError:
                return False
            except OSError as error:
                self._snapshot_error = error.strerror or str(error)
                log.error(
                    "The snapshot of the index was not written (%s); the older one stays, the next try is in %.0f s",
                    self._snapshot_error,
                    self._tuning.snapshot_interval,
                )
                return False
            self._snapshot_error, self._saved = "", version
            return True

    def drop(self) -> int:
        """Deletes every snapshot in the directory but the neighbours', and says how many; call it after `remove`, to
        forget.

        A snapshot that is being written is given up. The next one is made after the interval, or by `save`.
        Raises OSError when the directory cannot be written.
        """
        # Without the lock, on purpose: the one who writes holds it, and looks at this.
        self._drops += 1
        with self._saving:
            dropped = self._snapshots.drop() if self._snapshots is not None else 0
            self._saved = -1
        return dropped

    def close(self) -> None:
        """Ends the worker, then saves what changed. May be called twice; searches still work after it."""
        with self._wake:
            closed, self._closing = self._closing, True
            self._wake.notify_all()
        self._worker.join()
        if not closed:
            self.save()

    def _nudge(self) -> None:
        with self._wake:
            self._wake.notify_all()

    def _due(self) -> tuple[str, float | None]:
        """What the worker should do now, or else in how many seconds to look again. Call it with `_wake` held."""
        now, tuning = time.monotonic(), self._tuning
        overlay, living, deleted = self._pair.glance()
        waits = []
        if self._closing:
            return "close", None
        if self._request is not None:
            return "rebuild", None
        if not self._paused:
            if living <= tuning.flat_rows // 2 and deleted > tuning.deleted_share * living:
                return "flatten", None
            # Without a snapshot everything is in the overlay: all cores are quicker than slices.
            heavy = overlay > max(4 * tuning.flat_rows, living)
            if heavy or deleted > tuning.deleted_share * (living + deleted):
                if now >= self._next_rebuild:
                    return "rebuild", None
                waits.append(self._next_rebuild - now)
            high = tuning.overlay_rows if living + deleted else tuning.flat_rows
            if overlay > (tuning.overlay_rows // 2 if self._moving else high):
                return "move", None
        if self._writable and not self._paused and self._pair.version != self._saved:
            if now >= self._next_save:
                return "save", None
            waits.append(self._next_save - now)
        return "", min(waits, default=None)

    def _work(self) -> None:
        while (task := self._next_task()) != "close":
            self._do(task)
        self._answer(self._request, 0, Unavailable(CLOSED))

    def _do(self, task: str) -> None:
        try:
            if task == "rebuild":
                self._rebuild()
            elif task == "flatten":
                self._pair.flatten()
            elif task == "move":
                self._pair.move_slice(self._tuning.slice_seconds)
            else:
                self._next_save = time.monotonic() + self._tuning.snapshot_interval
                self.save()
        except Exception:
            # The worker outlives whatever one piece of work failed with (a full memory, say).
            log.exception("The index could not %s; it goes on, and tries again later", task)
            with self._wake:
                self._wake.wait_for(lambda: self._closing, self._tuning.retry_seconds)

    def _next_task(self) -> str:
        with self._wake:
            self._busy = ""
            while not (due := self._due())[0]:
                self._moving = False
                self._wake.notify_all()
                self._wake.wait(due[1])
            self._busy = due[0] if due[0] != "close" else ""
            self._moving = self._busy == "move"
            self._wake.notify_all()
            return due[0]

    def _rebuild(self) -> None:
        # None for one of its own accord: what is asked for meanwhile begins after it, with what the source has then.
        request, rows, failure = self._request, 0, None
        try:
            rows = rebuild(
                self._pair,
                self._source,
                self.model,
                rows_at_once=self._tuning.bulk_rows,
                threads=self._tuning.threads,
                closing=lambda: self._closing,
                between=self._move_overflow,
            )
        except Exception as error:  # noqa: BLE001  # whatever the source raises belongs to the one who asked
            failure = error
            if not self._closing:
                log.error("The index could not be rebuilt (%s); the present one serves on", type(error).__name__)
        self._next_rebuild = time.monotonic() + self._tuning.retry_seconds
        self._answer(request, rows, failure)

    def _move_overflow(self) -> None:
        while not self._paused and self._tuning.flat_rows < self._pair.glance().overlay < self._pair.glance().graph:
            self._pair.move_slice(self._tuning.slice_seconds)

    def _answer(self, request: Future[int] | None, rows: int, failure: Exception | None) -> None:
        with self._wake:
            if self._request is request:
                self._request = None
        # False for a future that its owner has cancelled.
        if request is None or not request.set_running_or_notify_cancel():
            return
        if failure is None:
            request.set_result(rows)
        else:
            request.set_exception(failure)


def _load(snapshots: Snapshots, source: VectorSource, wanted: RowIds) -> tuple[HnswGraph | None, str]:
    try:
        snapshots.tidy()
    except OSError as error:
        log.warning("Left-over snapshot files could not be deleted (%s)", error.strerror)
    try:
        graph = snapshots.load()
        if graph is not None:
            _compare(graph, snapshots.model, source, wanted)
    except UnusableError as error:
        log.warning("The snapshot of the index is not used: %s. The index is rebuilt from the stored vectors", error)
        return None, str(error)
    return graph, ""


def _compare(graph: HnswGraph, model: str, source: VectorSource, wanted: RowIds) -> None:
    """A database made anew gives its rowids to other vectors: a sample tells. Raises UnusableError."""
    common = np.intersect1d(graph.rowids(), wanted, assume_unique=True)
    sample = common[np.linspace(0, len(common) - 1, min(_SAMPLE_ROWS, len(common))).astype(np.int64)]
    for rowids, vectors in source.iter_vectors(model, sample, _SAMPLE_ROWS):
        for rowid, row in zip(*sound_rows(rowids, vectors), strict=True):
            _, stored = graph.get(np.array([rowid]))
            if scores_of(row, stored) < 0.9999:
                raise UnusableError("its vectors are not those of this database")
