"""Case 17 (nmslib/hnswlib#309): searching an emptied index, adding again, and forgetting nearly everything."""

from __future__ import annotations

import numpy as np
import pytest
from stored_vectors import StoredVectors, clustered

from edge.index.flat import exact
from edge.index.live import LiveIndex, Tuning

PATIENCE = 240.0


@pytest.mark.parametrize("flat_rows", [2048, 0], ids=["as shipped", "every row in the graph"])
def test_200_are_forgotten_and_added_again(flat_rows: int) -> None:
    source = StoredVectors()
    rowids, vectors = clustered(200, 32)
    overlay_rows = 512 if flat_rows else 0
    index = LiveIndex(32, "m", source, tuning=Tuning(flat_rows=flat_rows, overlay_rows=overlay_rows))
    for _ in range(2):
        source.put(rowids, vectors)
        index.add(rowids, vectors)
        assert index.settle(PATIENCE)
        assert all(index.search(vectors[n], 1)[0].tolist() == [rowids[n]] for n in range(200))

        source.take(rowids)
        index.remove(rowids)
        assert len(index) == 0
        assert index.search(vectors[0], 10)[0].tolist() == []
    index.close()


def test_after_95_percent_of_5000_are_forgotten_recall_holds_at_once_and_after_the_clearing_up() -> None:
    source = StoredVectors()
    rowids, vectors = clustered(5000, 32)
    source.put(rowids, vectors)
    index = LiveIndex(32, "m", source)
    index.add(rowids, vectors)
    assert index.settle(PATIENCE)
    assert index.stats().overlay < 512
    index.pause()
    kept = np.random.default_rng(7).permutation(5000)[:250]
    gone = np.setdiff1d(rowids, rowids[kept])

    source.take(gone)
    index.remove(gone)

    def recall() -> float:
        hits = 0
        for query in vectors[::50]:
            expected = exact(query, rowids[kept], vectors[kept], 10)[0]
            hits += len(np.intersect1d(index.search(query, 10)[0], expected))
        return hits / (10 * len(vectors[::50]))

    assert len(index) == 250
    assert recall() >= 0.95
    index.resume()
    assert index.settle(PATIENCE)
    assert index.stats().deleted == 0
    assert recall() == 1.0
    index.close()
