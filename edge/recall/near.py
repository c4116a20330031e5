"""The candidates of one space that are near in meaning: by the index, or exactly where a filter leaves few."""

from __future__ import annotations

import numpy as np

from edge.recall.view import SpaceView
from edge.types import Filter, Matrix, Memory, MemoryState, RowIds, Vector

# Up to so many memories of a filter may be compared one by one; their vectors come from disk, so more would take long.
EXACT_LIMIT = 20_000
_GROWTH = 4
# Answers of the index that are looked through for those that are at hand, before these are compared one by one.
_FAR = 2048


def near(view: SpaceView, model: str, vector: Vector, wanted: int, filter: Filter) -> dict[int, float]:
    """Rowids with cosines: the `wanted` nearest, fewer where fewer match. Rows that are archived or gone may be among
    them.
    """
    index = view.indexes[model]
    if not filter.selective:
        return _as_dict(*index.search(vector, wanted))
    chosen = view.reader.select(filter, EXACT_LIMIT)
    if chosen is None:
        return near_living(view, model, vector, wanted, filter)
    if len(chosen) == 0:
        return {}
    size = len(index)
    # A filter that lets much through is met by the index's first few answers; then a few times `wanted` will do.
    if len(chosen) * _GROWTH >= size and size > wanted * _GROWTH:
        found = _among(chosen, *index.search(vector, wanted * _GROWTH * 2))
        if len(found) >= wanted:
            return dict(list(found.items())[:wanted])
    return exact(*view.reader.vectors(model, chosen), vector, wanted)


def exact(rowids: RowIds, vectors: Matrix, vector: Vector, wanted: int) -> dict[int, float]:
    """The `wanted` nearest of these rows (vectors of norm 1, one a row), best first; of equals the later row."""
    if len(rowids) == 0:
        return {}
    cosines = cosines_of(vectors, vector)
    if wanted < len(rowids):
        best = np.argpartition(-cosines, wanted - 1)[:wanted]
        rowids, cosines = rowids[best], cosines[best]
    order = np.lexsort((-rowids, -cosines))
    return _as_dict(rowids[order], cosines[order])


def cosines_of(rows: Matrix, vector: Vector) -> Vector:
    """Of rows and a vector of norm 1; shape (n,).

    By einsum, not by `@`: BLAS splits even a small product over threads, which then wait for cores that inference
    keeps busy.
    """
    cosines: Vector = np.einsum("ij,j->i", rows, vector)
    return cosines


def matches(memory: Memory, filter: Filter) -> bool:
    """Whether a living memory is among those of the filter; superseded ones never are."""
    return (
        memory.state != MemoryState.SUPERSEDED
        and (not filter.states or memory.state in filter.states)
        and (filter.include_archived or not memory.archived or _named_rejected(memory, filter))
        and (filter.since is None or memory.occurred_at >= filter.since)
        and (filter.until is None or memory.occurred_at < filter.until)
        and (not filter.tags or set(filter.tags) <= set(memory.tags))
        and (not filter.kinds or memory.kind in filter.kinds)
        and (not filter.sources or memory.source in filter.sources)
        and (not filter.sessions or memory.session in filter.sessions)
    )


def _named_rejected(memory: Memory, filter: Filter) -> bool:
    return memory.state == MemoryState.REJECTED and MemoryState.REJECTED in filter.states


def near_living(view: SpaceView, model: str, vector: Vector, wanted: int, filter: Filter) -> dict[int, float]:
    """The same by looking at each row, further and further out: right whatever the index still holds, and slower."""
    index = view.indexes[model]
    size = len(index)
    # Where most are archived, few are at hand, and it may be far to each.
    chosen = view.reader.select(filter, EXACT_LIMIT)
    if chosen is not None:
        reach = _GROWTH * wanted * size // max(1, len(chosen))
        found = _among(chosen, *index.search(vector, min(size, reach))) if 0 < reach <= _FAR else {}
        if len(found) >= min(wanted, len(chosen)):
            return dict(list(found.items())[:wanted])
        return exact(*view.reader.vectors(model, chosen), vector, wanted)
    asked = wanted * _GROWTH
    seen: dict[int, bool] = {}
    while True:
        found = _as_dict(*index.search(vector, min(asked, size)))
        fresh = [rowid for rowid in found if rowid not in seen]
        rows = view.reader.fetch(fresh)
        seen.update((rowid, rowid in rows and matches(rows[rowid], filter)) for rowid in fresh)
        kept = {rowid: cosine for rowid, cosine in found.items() if seen[rowid]}
        if len(kept) >= wanted or asked >= size or not fresh:
            return dict(list(kept.items())[:wanted])
        asked *= _GROWTH


def _among(chosen: RowIds, rowids: RowIds, cosines: Vector) -> dict[int, float]:
    kept = np.isin(rowids, chosen)
    return _as_dict(rowids[kept], cosines[kept])


def _as_dict(rowids: RowIds, cosines: Vector) -> dict[int, float]:
    return dict(zip(rowids.tolist(), cosines.tolist(), strict=True))
