"""hnswlib 0.8.0 with its sharp edges covered."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np

from edge.index.image import GraphImage
from edge.index.vectors import NO_ROWS, NO_SCORES, best, clean_query, clean_rowids, clean_rows, scores_of
from edge.types import Matrix, RowIds, Vector

# Links a node (Malkov and Yashunin, 2018). Measured at 512 dimensions, 20,000 vectors in 200 clusters: recall@10 is
# .995 at ef 32, .9995 at 64, 1.000 at 128; a search takes some 80, 120 and 220 µs (one run, on a shared machine). ef 96
# lies between, as a margin for larger and less even sets. ef_construction 100, 150 and 200 did not differ in recall.
M = 16
EF_CONSTRUCTION = 128
EF = 96

_FIRST_CAPACITY = 1024
# get_items goes through Python lists, some 30 µs a row with the GIL held: few at a time, so that others get their turn.
_ROWS_A_READ = 128


class HnswGraph:
    """A hnswlib index whose label is the rowid. Not thread-safe: the caller keeps changes and searches apart.

    The space is `ip`: rows and queries come with norm 1 from `vectors`, where inner product is cosine; hnswlib's own
    `cosine` would only normalise a second time.

    A removed row stays in the graph as a tombstone that searches pass through and never return. Its vector is not
    overwritten in place: hnswlib can do that only by linking the node anew (15 ms), and the paths through it would go
    astray. `image()`, hence every file, carries a living neighbour's vector instead of a removed one.
    """

    def __init__(self, dimension: int, capacity: int = _FIRST_CAPACITY, *, index: Any = None) -> None:
        self.dimension = dimension
        self._living: set[int] = set()
        self._deleted: set[int] = set()
        if index is None:
            index = hnswlib.Index("ip", dimension)
            # A fixed seed: the same rows in the same order give the same graph.
            index.init_index(max(capacity, 1), M=M, ef_construction=EF_CONSTRUCTION, random_seed=1)
        index.set_ef(EF)  # a loaded index has 10
        self._index = index

    @classmethod
    def load(cls, path: Path, dimension: int, deleted: Iterable[int], count: int) -> HnswGraph:
        """A graph from a file whose checksum has been verified: hnswlib crashes or hangs on a damaged one.

        Raises RuntimeError when it is not the file of `count` rows of `dimension`.
        """
        index = hnswlib.Index("ip", dimension)
        index.load_index(str(path), max_elements=count + max(_FIRST_CAPACITY, count // 8))
        graph = cls(dimension, index=index)
        graph._deleted = set(deleted)
        labels = set(index.get_ids_list())
        if index.get_current_count() != count or len(labels) != count or not graph._deleted <= labels:
            raise RuntimeError(f"expected {count} rows, found {index.get_current_count()}")
        graph._living = labels - graph._deleted
        return graph

    def __len__(self) -> int:
        """Living rows."""
        return len(self._living)

    def __contains__(self, rowid: int) -> bool:
        return rowid in self._living

    @property
    def deleted(self) -> int:
        return len(self._deleted)

    def holds_any(self, ids: RowIds) -> bool:
        return bool(self._living) and not self._living.isdisjoint(ids.tolist())

    def rowids(self) -> RowIds:
        """Living rows, ascending."""
        return np.sort(np.fromiter(self._living, np.int64, len(self._living)))

    def add(self, rowids: RowIds, vectors: Matrix, threads: int = 1) -> None:
        """Adds or overwrites rows; `threads` 0 uses every core. Raises InvalidArgument, adding nothing."""
        self.put(*clean_rows(rowids, vectors, self.dimension), threads)

    def put(self, ids: RowIds, rows: Matrix, threads: int = 1) -> None:
        """`add` for rows that have been through `clean_rows` already."""
        if len(ids) == 0:
            return
        new = ids.tolist()
        count = len(self._living) + len(self._deleted)
        needed = count + len(set(new) - self._living - self._deleted)
        if needed > self._index.get_max_elements():
            # Pages that nothing was written to take no memory, so half as much again costs nothing yet.
            self._index.resize_index(max(needed, count + count // 2))
        # A label that stands deleted comes back to life with its new vector.
        self._index.add_items(rows, ids, num_threads=threads or os.cpu_count() or 1)
        self._deleted.difference_update(new)
        self._living.update(new)

    def remove(self, rowids: RowIds) -> int:
        """Marks rows as deleted and says how many. Unknown rowids are ignored."""
        gone = self._living.intersection(clean_rowids(rowids).tolist())
        for rowid in gone:
            self._index.mark_deleted(rowid)
        self._living -= gone
        self._deleted |= gone
        return len(gone)

    def get(self, rowids: RowIds) -> tuple[RowIds, Matrix]:
        """Those of the rows that live here, with their vectors. Some 30 µs a row."""
        ids = np.array([rowid for rowid in rowids.tolist() if rowid in self._living], np.int64)
        if len(ids) == 0:
            return NO_ROWS, np.empty((0, self.dimension), np.float32)
        parts = [self._index.get_items(ids[at : at + _ROWS_A_READ]) for at in range(0, len(ids), _ROWS_A_READ)]
        return ids, np.concatenate(parts).astype(np.float32, copy=False)

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        """At most k nearest, best first, with cosines. Raises InvalidArgument for an unusable vector."""
        return self.nearest(clean_query(vector, self.dimension), k)

    def nearest(self, query: Vector, k: int) -> tuple[RowIds, Vector]:
        """`search` for a query that has been through `clean_query` already."""
        k = min(k, len(self._living))
        if k <= 0:
            return NO_ROWS, NO_SCORES
        # Nearly everything is asked for: a graph may have corners that no path leads to, and hnswlib raises
        # (and leaks its result) when it finds fewer than k.
        if 2 * k >= len(self._living):
            return self._look_at_all(query, k)
        try:
            labels, distances = self._index.knn_query(query, k=k, num_threads=1)
        except RuntimeError:
            return self._look_at_all(query, k)
        return best(labels[0].astype(np.int64), 1.0 - distances[0], k)

    def _look_at_all(self, query: Vector, k: int) -> tuple[RowIds, Vector]:
        ids = self.rowids()
        found, scores = NO_ROWS, NO_SCORES
        for start in range(0, len(ids), _ROWS_A_READ):
            part, rows = self.get(ids[start : start + _ROWS_A_READ])
            found, scores = best(
                np.concatenate((found, part)), np.concatenate((scores, scores_of(query, rows))).astype(np.float32), k
            )
        return found, scores

    def image(self) -> GraphImage:
        """A copy to write to a file while this graph goes on changing. Takes about 1.3 ms a megabyte."""
        # save_index holds the GIL while it writes, in place, and is silent about a full disk; the pickling protocol
        # copies the same bytes in a quarter of the time.
        return GraphImage(self._index.__getstate__()[0], sorted(self._deleted))
