"""A graph and its overlay, seen as one."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

import numpy as np

from edge.index.flat import FlatIndex
from edge.index.hnsw import HnswGraph
from edge.index.image import GraphImage
from edge.index.rwlock import ReadWriteLock
from edge.index.vectors import best
from edge.types import Matrix, RowIds, Vector

_REMOVE_ROWS = 2048
# Rows of one look into the graph (some 30 µs each) while additions wait.
LOOK_ROWS = 128


class Counts(NamedTuple):
    overlay: int
    graph: int
    deleted: int


class GraphAndOverlay:
    """Every row is in the overlay or in the graph, never in both; safe from any thread.

    `_lock` keeps searches apart from changes of the graph and from moves between the two (hnswlib does not search and
    insert at once). `_mutate`, always taken after it, makes one change at a time. An addition takes `_mutate` alone,
    for the overlay may grow during a search.

    `move_slice`, `flatten` and what belongs to a rebuild are for one thread, the worker of the live index.
    """

    def __init__(self, dimension: int, graph: HnswGraph | None) -> None:
        self.dimension = dimension
        self._overlay = FlatIndex(dimension)
        self._graph = graph or HnswGraph(dimension)
        self._lock = ReadWriteLock()
        self._mutate = threading.Lock()
        # What was added or removed since the rebuild that is under way took note last; None when there is none.
        self._touched: set[int] | None = None
        # Counts changes of the graph.
        self.version = 0

    @property
    def rebuilding(self) -> bool:
        return self._touched is not None

    def counts(self) -> Counts:
        """Exact: no row is counted twice or missed while it moves."""
        with self._mutate:
            return self.glance()

    def glance(self) -> Counts:
        """`counts` without waiting for a move; may be off by one slice."""
        return Counts(len(self._overlay), len(self._graph), self._graph.deleted)

    def search(self, query: Vector, k: int) -> tuple[RowIds, Vector]:
        with self._lock.read():
            far, far_scores = self._graph.nearest(query, k)
            near, near_scores = self._overlay.nearest(query, k)
        return best(np.concatenate((far, near)), np.concatenate((far_scores, near_scores)).astype(np.float32), k)

    def reserve(self, rows: int) -> None:
        """Makes room in the overlay for that many more."""
        with self._mutate:
            self._overlay.reserve(rows)

    def put(self, ids: RowIds, rows: Matrix) -> None:
        """Adds rows that have been through `clean_rows`."""
        with self._mutate:
            if not self._graph.holds_any(ids):
                self._overlay.put(ids, rows)
                self._note(ids)
                return
        with self._lock.write(), self._mutate:
            self.version += self._graph.remove(ids) > 0
            self._overlay.put(ids, rows)
            self._note(ids)

    def remove(self, ids: RowIds) -> None:
        for start in range(0, len(ids), _REMOVE_ROWS):
            part = ids[start : start + _REMOVE_ROWS]
            with self._lock.write(), self._mutate:
                self._overlay.remove(part)
                self.version += self._graph.remove(part) > 0
                self._note(part)

    def image(self, unless: int) -> tuple[int, GraphImage | None]:
        """The version, and a copy of the graph; no copy when the version is `unless`, or nothing lives in the graph."""
        with self._lock.read():
            wanted = self.version != unless and len(self._graph) > 0
            return self.version, self._graph.image() if wanted else None

    def move_slice(self, seconds: float) -> None:
        """Moves the oldest rows of the overlay into the graph: one, and more while `seconds` last."""
        with self._lock.write(), self._mutate:
            end = time.monotonic() + seconds
            ids, rows = self._overlay.first(32)
            done = 0
            while done < len(ids) and (done == 0 or time.monotonic() < end):
                self._graph.put(ids[done : done + 1], rows[done : done + 1])
                done += 1
            self._overlay.remove(ids[:done])
            self.version += done > 0

    def flatten(self) -> None:
        """Few are left of many: back to the exact overlay, and no graph at all."""
        ids, parts = self._graph.rowids(), []
        for start in range(0, len(ids), LOOK_ROWS):
            # Removals may come between two of these; additions to the graph cannot, they are this thread's own.
            with self._mutate:
                parts.append(self._graph.get(ids[start : start + LOOK_ROWS]))
        with self._lock.write(), self._mutate:
            for found, rows in parts:
                left = np.array([rowid in self._graph for rowid in found.tolist()], bool)
                self._overlay.put(found[left], rows[left])
            self._graph = HnswGraph(self.dimension)
            self.version += 1

    def begin_rebuild(self) -> None:
        """From now on takes note of what is added or removed."""
        with self._mutate:
            self._touched = set()

    def end_rebuild(self) -> None:
        with self._mutate:
            self._touched = None

    def take_touched(self) -> RowIds:
        """What was added or removed since the last call; the notes begin anew."""
        with self._mutate:
            touched, self._touched = self._touched or set(), set()
        return np.sort(np.fromiter(touched, np.int64, len(touched)))

    def give_back(self, touched: RowIds) -> None:
        """Puts what was taken back into the notes."""
        with self._mutate:
            self._note(touched)

    def get(self, ids: RowIds) -> tuple[RowIds, Matrix]:
        """Those of the rows that live, with their vectors; at most LOOK_ROWS a call keeps additions from waiting."""
        with self._mutate:
            (near, near_rows), (far, far_rows) = self._overlay.get(ids), self._graph.get(ids)
        return np.concatenate((near, far)), np.concatenate((near_rows, far_rows))

    def swap(self, fresh: HnswGraph) -> None:
        """Puts a rebuilt graph in the place of the old one; what is in the notes counts for more than what it holds."""
        waiting = self._overlay.rowids()
        inside = waiting[np.isin(waiting, fresh.rowids(), assume_unique=True)]
        with self._lock.write(), self._mutate:
            touched = np.fromiter(self._touched or (), np.int64, len(self._touched or ()))
            fresh.remove(touched)
            moved = self._graph.get(touched)
            self._overlay.remove(np.setdiff1d(inside, touched))
            self._overlay.put(*moved)
            self._graph = fresh
            self.version += 1

    def _note(self, ids: RowIds) -> None:
        if self._touched is not None:
            self._touched.update(ids.tolist())
