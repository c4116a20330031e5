"""What may enter an index, and the order in which things leave it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edge.errors import InvalidArgument
from edge.types import Matrix, RowIds, Vector

NO_ROWS: RowIds = np.empty(0, np.int64)
NO_SCORES: Vector = np.empty(0, np.float32)


def clean_rowids(rowids: RowIds) -> RowIds:
    """The rowids as one row of int64, each once, ascending. Raises InvalidArgument for what is none."""
    ids = np.asarray(rowids)
    if ids.size == 0:
        return NO_ROWS
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() > np.iinfo(np.int64).max:
        raise InvalidArgument("rowids: give one row of integers, 0 or more", field="rowids")
    return np.unique(ids.astype(np.int64))


def clean_rows(rowids: RowIds, vectors: Matrix, dimension: int) -> tuple[RowIds, Matrix]:
    """Rows ready for an index: each rowid once (its last vector counts), each vector float32 of norm 1.

    Vectors are first rounded to float16, because that is what the ledger keeps: so a row added while the box runs
    and the same row read back in a rebuild are equal to the last bit, and give equal answers. Rounding leaves the
    norm up to 1e-3 off, hence the normalisation after it; then inner product is cosine for every part of the index.

    Raises InvalidArgument for a wrong shape, and for NaN, infinity or a zero vector (hnswlib would take them).
    """
    ids = np.asarray(rowids)
    rows = np.asarray(vectors, np.float32)
    if ids.ndim != 1 or rows.ndim != 2 or rows.shape != (len(ids), dimension):
        raise InvalidArgument(
            f"vectors: expected {ids.size} rows of dimension {dimension}, got shape {rows.shape}; "
            "use vectors of the model that the index was made for",
            field="vectors",
        )
    if len(ids) == 0:
        return NO_ROWS, rows
    unique = clean_rowids(ids)
    rows, sound = _unit_rows(_rounded(rows))
    if not sound.all():
        raise InvalidArgument(
            f"vectors: row {int(np.argmin(sound))} is zero, NaN or infinite; leave it out", field="vectors"
        )
    if len(unique) == len(ids):
        return ids.astype(np.int64), rows
    last = {rowid: place for place, rowid in enumerate(ids.tolist())}
    return np.fromiter(last, np.int64, len(last)), rows[np.fromiter(last.values(), np.int64, len(last))]


def sound_rows(rowids: RowIds, vectors: Matrix) -> tuple[RowIds, Matrix]:
    """Rows of the ledger, which are float16 in value, as `clean_rows` would have them, without the unusable ones."""
    rows, sound = _unit_rows(np.asarray(vectors, np.float32))
    return (rowids, rows) if sound.all() else (rowids[sound], rows[sound])


def _rounded(rows: Matrix) -> Matrix:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        return rows.astype(np.float16).astype(np.float32)


def _unit_rows(rows: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        sound = np.isfinite(norms) & (norms > 0)
        return rows / np.where(sound, norms, np.float32(1))[:, None], sound


def clean_query(vector: Vector, dimension: int) -> Vector:
    """The query as float32 of norm 1. Raises InvalidArgument for a wrong dimension, NaN, infinity or zero."""
    query = np.asarray(vector, np.float32)
    if query.shape != (dimension,):
        raise InvalidArgument(
            f"vector: expected dimension {dimension}, got shape {query.shape}; "
            "use a vector of the model that the index was made for",
            field="vector",
        )
    norm = float(np.sqrt(np.dot(query.astype(np.float64), query.astype(np.float64))))
    if not np.isfinite(norm) or norm == 0:
        raise InvalidArgument("vector: it is zero, NaN or infinite; ask with another text", field="vector")
    return (query / norm).astype(np.float32)


def scores_of(query: Vector, rows: Matrix) -> Vector:
    """Inner products, shape (n,).

    By einsum, not by `@`: BLAS splits even this small product over threads, and was seen to take 6 ms instead of 0.8
    for 2,048 rows while other work kept both cores busy. einsum stays on the calling thread, lets go of the GIL, and
    sums each row the same way wherever it lies, so that equal vectors get equal scores.
    """
    scores: Vector = np.einsum("ij,j->i", rows, query)
    return scores


def best(rowids: RowIds, scores: Vector, k: int) -> tuple[RowIds, Vector]:
    """The k highest scores, best first, equal ones by rowid: the same answer in whatever order they came."""
    if k <= 0 or len(rowids) == 0:
        return NO_ROWS, NO_SCORES
    if k < len(rowids):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        chosen = scores >= threshold
        rowids, scores = rowids[chosen], scores[chosen]
    order = np.lexsort((rowids, -scores))[:k]
    return rowids[order], np.clip(scores[order], -1.0, 1.0)
