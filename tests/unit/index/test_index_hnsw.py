from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from stored_vectors import clustered

from edge.index.flat import exact
from edge.index.hnsw import HnswGraph


def recall(graph: HnswGraph, rowids: np.ndarray, vectors: np.ndarray, queries: np.ndarray, k: int = 10) -> float:
    hits = [
        len(np.intersect1d(graph.search(q, k)[0], exact(q, rowids, vectors, k)[0])) / min(k, len(rowids))
        for q in queries
    ]
    return float(np.mean(hits))


def file_of(graph: HnswGraph) -> bytes:
    return b"".join(bytes(block) for block in graph.image().blocks())


def test_the_image_is_byte_for_byte_what_hnswlib_itself_would_save(tmp_path: Path) -> None:
    graph = HnswGraph(16)
    graph.add(*clustered(1500, 16))
    graph._index.save_index(str(tmp_path / "raw"))

    assert file_of(graph) == (tmp_path / "raw").read_bytes()
    assert graph.image().size == (tmp_path / "raw").stat().st_size


def test_a_forgotten_vector_is_in_no_file_and_the_living_are_still_found(tmp_path: Path) -> None:
    rowids, vectors = clustered(3000, 16)
    graph = HnswGraph(16)
    graph.add(rowids, vectors)
    gone = rowids % 5 == 0
    before = {rowid: row.astype("<f4").tobytes() for rowid, row in zip(*graph.get(rowids[gone]), strict=True)}
    assert all(raw in file_of(graph) for raw in before.values())

    graph.remove(rowids[gone])
    (tmp_path / "file").write_bytes(file_of(graph))

    content = (tmp_path / "file").read_bytes()
    assert not any(raw in content for raw in before.values())
    loaded = HnswGraph.load(tmp_path / "file", 16, rowids[gone].tolist(), 3000)
    assert len(loaded) == 2400
    assert loaded.rowids().tolist() == rowids[~gone].tolist()
    assert recall(loaded, rowids[~gone], vectors[~gone], vectors[:100]) >= 0.95


def test_a_graph_whose_every_row_is_forgotten_keeps_no_vector() -> None:
    graph = HnswGraph(4)
    graph.add(np.array([1, 2]), np.eye(4, dtype=np.float32)[:2])
    graph.remove(np.array([1, 2]))

    assert struct.pack("<f", 1.0) not in file_of(graph)
    assert graph.search(np.ones(4, np.float32), 5)[0].tolist() == []


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.999])
def test_recall_holds_among_many_tombstones(share: float) -> None:
    rowids, vectors = clustered(4000, 16)
    graph = HnswGraph(16)
    graph.add(rowids, vectors)
    gone = np.random.default_rng(1).permutation(4000) < share * 4000

    graph.remove(rowids[gone])

    assert recall(graph, rowids[~gone], vectors[~gone], vectors[:60]) >= 0.95


def test_rows_that_come_back_after_being_forgotten_are_found_by_their_new_vector() -> None:
    rowids, vectors = clustered(1000, 16)
    _, others = clustered(1000, 16, seed=5)
    graph = HnswGraph(16)
    graph.add(rowids, vectors)
    graph.remove(rowids[:300])
    graph.add(rowids[:300], others[:300])
    everything = np.concatenate((others[:300], vectors[300:]))

    assert (len(graph), graph.deleted) == (1000, 0)
    assert recall(graph, rowids, everything, everything[::10]) >= 0.95


def test_it_grows_as_needed() -> None:
    rowids, vectors = clustered(500, 8)
    graph = HnswGraph(8, capacity=1)
    for start in range(0, 500, 100):
        graph.add(rowids[start : start + 100], vectors[start : start + 100])

    assert len(graph) == 500
    assert recall(graph, rowids, vectors, vectors[::25]) >= 0.95


@pytest.mark.parametrize("k", [1, 10, 499, 500, 10**9])
def test_any_k_is_answered(k: int) -> None:
    rowids, vectors = clustered(500, 8)
    graph = HnswGraph(8)
    graph.add(rowids, vectors)

    found, cosines = graph.search(vectors[0], k)

    assert len(found) == len(set(found.tolist())) == min(k, 500)
    assert (np.diff(cosines) <= 0).all()


def test_rows_that_no_path_leads_to_are_found_all_the_same() -> None:
    # Two hundred equal vectors fill one another's links, which cuts off the rest.
    graph = HnswGraph(4)
    graph.add(np.arange(1, 201), np.tile(np.eye(4, dtype=np.float32)[0], (200, 1)))
    graph.add(np.arange(201, 221), np.eye(4, dtype=np.float32)[np.arange(20) % 3 + 1])

    assert len(graph.search(np.ones(4, np.float32), 100)[0]) == 100
    assert sorted(graph.search(np.ones(4, np.float32), 220)[0].tolist()) == list(range(1, 221))
