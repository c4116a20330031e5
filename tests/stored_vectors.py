"""A ledger's stored vectors, in memory, and vectors that lie in clusters as those of a conversation do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edge.types import Matrix, RowIds


class StoredVectors:
    """ports.VectorSource over a dict, float16 as the ledger keeps them."""

    def __init__(self) -> None:
        self.rows: dict[int, np.ndarray] = {}

    def put(self, rowids: RowIds, vectors: Matrix) -> None:
        self.rows = {**self.rows, **dict(zip(rowids.tolist(), vectors.astype(np.float16), strict=True))}

    def take(self, rowids: RowIds) -> None:
        gone = set(rowids.tolist())
        self.rows = {rowid: row for rowid, row in self.rows.items() if rowid not in gone}

    def vector_rowids(self, model: str) -> RowIds:
        return np.array(sorted(self.rows), np.int64)

    def iter_vectors(self, model: str, rowids: RowIds, chunk: int) -> Iterator[tuple[RowIds, Matrix]]:
        for start in range(0, len(rowids), chunk):
            rows = self.rows
            part = [rowid for rowid in rowids[start : start + chunk].tolist() if rowid in rows]
            if part:
                yield np.array(part, np.int64), np.stack([rows[rowid] for rowid in part]).astype(np.float32)


def clustered(count: int, dimension: int, clusters: int = 50, seed: int = 0) -> tuple[RowIds, Matrix]:
    """Rowids 1 to count, and vectors of norm 1 around `clusters` centres, rounded as the ledger rounds them."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(clusters, dimension))
    vectors = centres[random.integers(0, clusters, count)] + 0.5 * random.normal(size=(count, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.arange(1, count + 1), vectors.astype(np.float16).astype(np.float32)
