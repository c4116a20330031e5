"""Every ports.VectorIndex: the real one in each of its states, and the flat one that stands in for it in tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from stored_vectors import StoredVectors, clustered

from edge.errors import InvalidArgument
from edge.index.flat import FlatIndex, exact
from edge.index.live import LiveIndex, Tuning
from edge.ports import VectorIndex

DIMENSION = 8


@pytest.fixture(params=["flat", "live", "live with every row in the graph"])
def index(request: pytest.FixtureRequest) -> Iterator[VectorIndex]:
    if request.param == "flat":
        yield FlatIndex(DIMENSION)
        return
    tuning = Tuning() if request.param == "live" else Tuning(flat_rows=0, overlay_rows=0)
    live = LiveIndex(DIMENSION, "m", StoredVectors(), tuning=tuning)
    if request.param != "live":
        add = live.add

        def add_and_move(rowids: np.ndarray, vectors: np.ndarray) -> None:
            add(rowids, vectors)
            assert live.settle(60)

        live.add = add_and_move  # type: ignore[method-assign]  # so that each addition ends up in the graph
    yield live
    live.close()


def unit(*places: int) -> np.ndarray:
    return np.eye(DIMENSION, dtype=np.float32)[list(places)]


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    rowids, cosines = index.search(unit(0)[0], 10)

    assert len(index) == len(rowids) == len(cosines) == 0
    assert rowids.dtype == np.int64
    assert cosines.dtype == np.float32


def test_what_is_added_is_found_by_the_next_search_best_first_with_cosines(index: VectorIndex) -> None:
    index.add(np.array([7, 9]), np.stack([unit(0)[0], (unit(0) + unit(1))[0] / np.sqrt(2)]).astype(np.float32))

    rowids, cosines = index.search(unit(0)[0], 10)

    assert rowids.tolist() == [7, 9]
    assert cosines == pytest.approx([1.0, np.sqrt(0.5)], abs=1e-3)


@pytest.mark.parametrize(("k", "found"), [(10, 3), (3, 3), (2, 2), (1, 1), (0, 0), (-1, 0), (10**9, 3)])
def test_k_is_clamped_to_what_there_is(index: VectorIndex, k: int, found: int) -> None:
    index.add(np.array([1, 2, 3]), unit(0, 1, 2))

    assert len(index.search(unit(0)[0], k)[0]) == found


def test_what_is_removed_is_not_found_by_the_next_search_and_unknown_rowids_are_ignored(index: VectorIndex) -> None:
    index.add(np.array([1, 2]), unit(0, 1))

    index.remove(np.array([1, 99]))

    assert index.search(unit(0)[0], 10)[0].tolist() == [2]
    assert len(index) == 1


def test_a_rowid_that_is_added_again_has_its_new_vector_alone(index: VectorIndex) -> None:
    index.add(np.array([1, 2]), unit(0, 1))
    index.add(np.array([1]), unit(2))

    rowids, cosines = index.search(unit(2)[0], 10)

    assert rowids.tolist() == [1, 2]
    assert cosines[0] == pytest.approx(1.0)
    assert len(index) == 2


def test_a_rowid_twice_in_one_addition_has_the_later_vector(index: VectorIndex) -> None:
    index.add(np.array([1, 1]), unit(0, 1))

    assert index.search(unit(1)[0], 5)[1] == pytest.approx([1.0])


def test_everything_may_be_removed_and_added_again(index: VectorIndex) -> None:
    for _ in range(3):
        index.add(np.array([1, 2, 3]), unit(0, 1, 2))
        assert len(index.search(unit(0)[0], 3)[0]) == 3
        index.remove(np.array([1, 2, 3]))
        assert len(index.search(unit(0)[0], 3)[0]) == len(index) == 0


def test_adding_and_removing_nothing_changes_nothing(index: VectorIndex) -> None:
    index.add(np.empty(0, np.int64), np.empty((0, DIMENSION), np.float32))
    index.remove(np.empty(0, np.int64))

    assert len(index) == 0


@pytest.mark.parametrize(
    ("rowids", "vectors"),
    [
        ([1, 2], np.stack([np.ones(DIMENSION), np.full(DIMENSION, np.nan)])),
        ([1, 2], np.stack([np.ones(DIMENSION), np.full(DIMENSION, np.inf)])),
        ([1, 2], np.stack([np.ones(DIMENSION), np.zeros(DIMENSION)])),
        ([1, 2], np.stack([np.ones(DIMENSION), np.full(DIMENSION, 1e30)])),
        ([1, 2], np.ones((2, DIMENSION + 1))),
        ([1, 2], np.ones((1, DIMENSION))),
        ([1], np.ones(DIMENSION)),
        ([-1], np.ones((1, DIMENSION))),
        ([1.5], np.ones((1, DIMENSION))),
        ([[1]], np.ones((1, DIMENSION))),
    ],
)
def test_unusable_rows_are_refused_whole(index: VectorIndex, rowids: list[int], vectors: np.ndarray) -> None:
    with pytest.raises(InvalidArgument) as refused:
        index.add(np.array(rowids), vectors.astype(np.float32))

    assert refused.value.field in ("rowids", "vectors")
    assert len(index) == 0


@pytest.mark.parametrize(
    "vector",
    [np.zeros(DIMENSION), np.full(DIMENSION, np.nan), np.full(DIMENSION, np.inf), np.ones(DIMENSION - 1), np.ones(())],
)
def test_an_unusable_query_is_refused(index: VectorIndex, vector: np.ndarray) -> None:
    index.add(np.array([1]), unit(0))

    with pytest.raises(InvalidArgument) as refused:
        index.search(vector.astype(np.float32), 1)

    assert refused.value.field == "vector"


def test_a_filter_that_matches_one_of_many_or_none_is_answered_exactly() -> None:
    rowids, vectors = clustered(5000, DIMENSION)

    assert exact(vectors[7], rowids[42:43], vectors[42:43], 10)[0].tolist() == [43]
    assert exact(vectors[7], rowids[:0], vectors[:0], 10)[0].tolist() == []


def test_the_exact_path_and_every_index_agree(index: VectorIndex) -> None:
    rowids, vectors = clustered(60, DIMENSION)
    index.add(rowids, vectors)

    found, cosines = index.search(vectors[3], 10)
    expected, expected_cosines = exact(vectors[3], rowids, vectors, 10)

    assert found.tolist() == expected.tolist()
    assert cosines == pytest.approx(expected_cosines, abs=1e-6)
