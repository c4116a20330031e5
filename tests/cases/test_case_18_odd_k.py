"""Case 18 (nmslib/hnswlib#321, chroma-core/chroma#225, #919): k beyond what there is, zero, below zero; tiny filters.

At the level of the index: it clamps. The service answers INVALID_ARGUMENT to k <= 0 before it gets here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from stored_vectors import StoredVectors, clustered

from edge.index.flat import exact
from edge.index.live import LiveIndex, Tuning


@pytest.fixture(params=[Tuning(), Tuning(flat_rows=0, overlay_rows=0)], ids=["as shipped", "every row in the graph"])
def three(request: pytest.FixtureRequest) -> Iterator[LiveIndex]:
    index = LiveIndex(32, "m", StoredVectors(), tuning=request.param)
    index.add(*clustered(3, 32))
    assert index.settle(60)
    yield index
    index.close()


@pytest.mark.parametrize(("k", "found"), [(10, 3), (0, 0), (-1, 0), (10**9, 3)])
def test_three_memories_and_any_k(three: LiveIndex, k: int, found: int) -> None:
    _, vectors = clustered(3, 32)

    assert len(three.search(vectors[0], k)[0]) == found


@pytest.mark.parametrize("matches", [0, 1])
def test_a_filter_that_matches_hardly_anything_of_5000(matches: int) -> None:
    rowids, vectors = clustered(5000, 32)
    chosen = slice(4321, 4321 + matches)

    assert exact(vectors[0], rowids[chosen], vectors[chosen], 10)[0].tolist() == rowids[chosen].tolist()


def test_a_filter_that_matches_none_of_none() -> None:
    assert len(exact(np.ones(32, np.float32), np.empty(0, np.int64), np.empty((0, 32), np.float32), 10)[0]) == 0
