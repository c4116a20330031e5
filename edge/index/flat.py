"""Exact nearness by looking at every row."""

from __future__ import annotations

import threading

import numpy as np

from edge.index.vectors import NO_ROWS, NO_SCORES, best, clean_query, clean_rowids, clean_rows, scores_of, sound_rows
from edge.types import Matrix, RowIds, Vector

_GONE = -1
_FIRST_ROWS = 256
# Rows of one einsum over a matrix that is not in the index: bounds the normalised copy to some megabytes.
_CHUNK = 4096


def exact(vector: Vector, rowids: RowIds, vectors: Matrix, k: int) -> tuple[RowIds, Vector]:
    """The k nearest of the given rows, best first, with cosines, as an index would have them.

    For selective filters, whose few vectors come straight from the ledger: shape (n, d), need not have norm 1.
    Rows that are zero, NaN or infinite are never found. Raises InvalidArgument for a query that is, or that has
    another dimension than the rows.
    """
    rows = np.asarray(vectors, np.float32)
    query = clean_query(vector, rows.shape[1] if rows.ndim == 2 else 0)
    found, scores = NO_ROWS, NO_SCORES
    for start in range(0, len(rows), _CHUNK):
        ids, part = sound_rows(np.asarray(rowids[start : start + _CHUNK], np.int64), rows[start : start + _CHUNK])
        found, scores = best(
            np.concatenate((found, ids)), np.concatenate((scores, scores_of(query, part))).astype(np.float32), k
        )
    return found, scores


class FlatIndex:
    """A growing matrix, searched whole: the overlay of the live index, and its fake in tests (ports.VectorIndex).

    A search takes the lock only to pick up the arrays. That is safe because a row, once written, never changes:
    `add` writes behind the rows handed out, `remove` marks the rowid, and growing or closing gaps makes new arrays.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._lock = threading.Lock()
        # Rows [start, end) are in use; a removed one has the rowid -1. Where each living rowid is: _places.
        self._ids: RowIds = np.empty(0, np.int64)
        self._rows: Matrix = np.empty((0, dimension), np.float32)
        self._start = self._end = 0
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, rowid: int) -> bool:
        return rowid in self._places

    def add(self, rowids: RowIds, vectors: Matrix) -> None:
        """Found by the next search; a rowid that is there gets the new vector.

        Raises InvalidArgument for a wrong shape, NaN, infinity or a zero vector, adding nothing.
        """
        ids, rows = clean_rows(rowids, vectors, self.dimension)
        self.put(ids, rows)

    def reserve(self, rows: int) -> None:
        """Makes room for that many more at once."""
        with self._lock:
            if self._end + rows > len(self._ids):
                self._rearrange(rows)

    def put(self, ids: RowIds, rows: Matrix) -> None:
        """`add` for rows that have been through `clean_rows` already."""
        if len(ids) == 0:
            return
        with self._lock:
            self._mark(ids)
            if self._end + len(ids) > len(self._ids):
                self._rearrange(len(ids))
            self._ids[self._end : self._end + len(ids)] = ids
            self._rows[self._end : self._end + len(ids)] = rows
            self._places.update(zip(ids.tolist(), range(self._end, self._end + len(ids)), strict=True))
            self._end += len(ids)

    def remove(self, rowids: RowIds) -> None:
        """Not found by the next search. Unknown rowids are ignored."""
        ids = clean_rowids(rowids)
        with self._lock:
            self._mark(ids)
            while self._start < self._end and self._ids[self._start] == _GONE:
                self._start += 1
            if self._end - self._start - len(self._places) > max(_FIRST_ROWS, len(self._places)):
                self._rearrange(0)

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        """At most k nearest, best first, with cosines; exact. Raises InvalidArgument for an unusable vector."""
        return self.nearest(clean_query(vector, self.dimension), k)

    def nearest(self, query: Vector, k: int) -> tuple[RowIds, Vector]:
        """`search` for a query that has been through `clean_query` already."""
        with self._lock:
            ids, rows = self._ids[self._start : self._end], self._rows[self._start : self._end]
        if k <= 0 or len(ids) == 0:
            return NO_ROWS, NO_SCORES
        scores = scores_of(query, rows)
        # Read after the scores: what was removed in the meantime is left out.
        ids = ids.copy()
        living = ids != _GONE
        if not living.all():
            ids, scores = ids[living], scores[living]
        return best(ids, scores, k)

    def first(self, n: int) -> tuple[RowIds, Matrix]:
        """Copies of the oldest n rows."""
        with self._lock:
            places = self._start + np.flatnonzero(self._ids[self._start : self._end] != _GONE)[:n]
            return self._ids[places], self._rows[places]

    def get(self, rowids: RowIds) -> tuple[RowIds, Matrix]:
        """Copies of those of the given rows that are here."""
        with self._lock:
            places = np.array([self._places[i] for i in rowids.tolist() if i in self._places], np.int64)
            return self._ids[places], self._rows[places]

    def rowids(self) -> RowIds:
        """All that are here, ascending."""
        with self._lock:
            return np.sort(np.fromiter(self._places, np.int64, len(self._places)))

    def _mark(self, ids: RowIds) -> None:
        places = [place for place in (self._places.pop(i, _GONE) for i in ids.tolist()) if place != _GONE]
        self._ids[places] = _GONE

    def _rearrange(self, more: int) -> None:
        living = self._start + np.flatnonzero(self._ids[self._start : self._end] != _GONE)
        size = max(_FIRST_ROWS, 2 * len(living), len(living) + more)
        ids = np.full(size, _GONE, np.int64)
        rows = np.empty((size, self.dimension), np.float32)
        ids[: len(living)] = self._ids[living]
        np.take(self._rows, living, axis=0, out=rows[: len(living)])
        self._ids, self._rows, self._start, self._end = ids, rows, 0, len(living)
        self._places = dict(zip(ids[: len(living)].tolist(), range(len(living)), strict=True))
