from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_vectors import StoredVectors, clustered

from edge.errors import Unavailable
from edge.index.flat import exact
from edge.index.live import LiveIndex, Tuning
from edge.types import Matrix, RowIds

DIMENSION = 16
SMALL = Tuning(flat_rows=256, overlay_rows=64, bulk_rows=128, retry_seconds=0.0)
PATIENCE = 120.0


class Gated(StoredVectors):
    """Once armed, stops in the middle of a rebuild until told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.failure: Exception | None = None

    def iter_vectors(self, model: str, rowids: RowIds, chunk: int) -> Iterator[tuple[RowIds, Matrix]]:
        for number, part in enumerate(super().iter_vectors(model, rowids, chunk)):
            if number == 1 and self.armed:
                self.reached.set()
                assert self.go_on.wait(PATIENCE)
                if self.failure:
                    raise self.failure
            yield part


def filled(source: StoredVectors, count: int, tuning: Tuning = SMALL) -> tuple[LiveIndex, np.ndarray, np.ndarray]:
    rowids, vectors = clustered(count, DIMENSION)
    index = LiveIndex(DIMENSION, "m", source, tuning=tuning)
    source.put(rowids, vectors)
    index.add(rowids, vectors)
    return index, rowids, vectors


def agree(index: LiveIndex, source: StoredVectors, queries: np.ndarray, k: int = 10) -> float:
    rowids = source.vector_rowids("m")
    vectors = np.stack([source.rows[rowid] for rowid in rowids.tolist()])
    hits = []
    for query in queries:
        expected = exact(query, rowids, vectors, k)[0]
        hits.append(len(np.intersect1d(index.search(query, k)[0], expected)) / len(expected))
    return float(np.mean(hits))


def test_few_rows_stay_in_the_exact_overlay() -> None:
    index, *_ = filled(StoredVectors(), SMALL.flat_rows)

    assert index.settle(PATIENCE)
    assert index.stats().overlay == SMALL.flat_rows
    index.close()


def test_many_rows_move_into_the_graph_and_are_found_before_and_after() -> None:
    source = StoredVectors()
    index, _, vectors = filled(source, 900)

    assert agree(index, source, vectors[:40]) >= 0.95
    assert index.settle(PATIENCE)
    assert index.stats().overlay <= SMALL.overlay_rows
    assert len(index) == 900
    assert agree(index, source, vectors[:40]) >= 0.95
    index.close()


def test_nothing_moves_while_paused() -> None:
    source = StoredVectors()
    index = LiveIndex(DIMENSION, "m", source, tuning=SMALL)
    index.pause()
    rowids, vectors = clustered(900, DIMENSION)
    index.add(rowids, vectors)

    assert index.settle(PATIENCE)
    assert index.stats().overlay == 900
    index.resume()
    assert index.settle(PATIENCE)
    assert index.stats().overlay <= SMALL.overlay_rows
    index.close()


def test_when_few_are_left_of_many_they_go_back_to_the_exact_overlay() -> None:
    source = StoredVectors()
    index, rowids, vectors = filled(source, 900)
    assert index.settle(PATIENCE)

    source.take(rowids[:800])
    index.remove(rowids[:800])

    assert agree(index, source, vectors[:40]) >= 0.95
    assert index.settle(PATIENCE)
    assert (index.stats().overlay, index.stats().deleted, len(index)) == (100, 0, 100)
    assert agree(index, source, vectors[:40]) == 1.0
    index.close()


def test_past_a_share_of_tombstones_the_graph_is_built_anew() -> None:
    source = StoredVectors()
    index, rowids, vectors = filled(source, 1500)
    assert index.settle(PATIENCE)

    source.take(rowids[:500])
    index.remove(rowids[:500])

    assert agree(index, source, vectors[:40]) >= 0.95
    assert index.settle(PATIENCE)
    assert (index.stats().deleted, len(index)) == (0, 1000)
    assert agree(index, source, vectors[:40]) >= 0.95
    index.close()


def test_a_rebuild_takes_over_what_was_added_and_removed_while_it_ran() -> None:
    source = Gated()
    index, rowids, vectors = filled(source, 1500)
    assert index.settle(PATIENCE)
    source.armed = True
    done = index.rebuild()
    assert source.reached.wait(PATIENCE)
    assert index.stats().rebuilding

    more, more_vectors = clustered(600, DIMENSION, seed=3)
    more += 5000
    source.put(more, more_vectors)
    index.add(more, more_vectors)
    source.take(rowids[::3])
    index.remove(rowids[::3])
    changed, changed_vectors = rowids[1:100:3], more_vectors[:33]
    source.put(changed, changed_vectors)
    index.add(changed, changed_vectors)
    assert agree(index, source, vectors[:20]) >= 0.95
    source.go_on.set()

    assert done.result(PATIENCE) == 1500
    assert not index.stats().rebuilding
    assert len(index) == len(source.rows)
    everything = np.concatenate((vectors, more_vectors))
    assert agree(index, source, everything[::20]) >= 0.95
    assert not np.isin(index.search(vectors[0], len(index))[0], rowids[::3]).any()
    index.close()


def test_a_rebuild_brings_back_what_the_index_lacked() -> None:
    source = StoredVectors()
    index, _, vectors = filled(source, 600)
    late, late_vectors = clustered(50, DIMENSION, seed=4)
    source.put(late + 9000, late_vectors)

    assert index.rebuild().result(PATIENCE) == 650
    assert len(index) == 650
    assert agree(index, source, vectors[:20]) >= 0.95
    index.close()


def test_a_rebuild_that_fails_leaves_the_old_graph_in_service_and_the_next_one_works() -> None:
    source = Gated()
    index, _, vectors = filled(source, 900)
    source.failure = OSError("the disk is gone")
    source.armed = True
    source.go_on.set()

    assert isinstance(index.rebuild().exception(PATIENCE), OSError)
    assert agree(index, source, vectors[:20]) >= 0.95
    source.failure = None
    assert index.rebuild().result(PATIENCE) == 900
    index.close()


def test_closing_answers_a_rebuild_that_is_under_way_and_one_asked_for_later_is_refused() -> None:
    source = Gated()
    index, *_ = filled(source, 900)
    source.armed = True
    done = index.rebuild()
    assert source.reached.wait(PATIENCE)
    closing = threading.Thread(target=index.close)
    closing.start()
    while not index._closing:
        threading.Event().wait(0)
    source.go_on.set()

    assert isinstance(done.exception(PATIENCE), Unavailable)
    closing.join(PATIENCE)
    with pytest.raises(Unavailable):
        index.rebuild()
    index.close()


def test_a_rebuild_whose_asker_has_gone_away_hurts_nobody() -> None:
    index, *_ = filled(StoredVectors(), 900)
    done = index.rebuild()
    assert done.cancel()

    assert index.settle(PATIENCE)
    assert index.rebuild().result(PATIENCE) == 900
    index.close()


def test_rows_that_stay_are_found_whatever_other_threads_add_remove_and_rebuild() -> None:
    source = StoredVectors()
    index, rowids, vectors = filled(source, 600, Tuning(flat_rows=128, overlay_rows=16, bulk_rows=64, retry_seconds=0))
    stay = rowids[:100]

    def search(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(150):
            place = int(random.integers(0, 100))
            found, cosines = index.search(vectors[place], 5)
            assert found[0] == stay[place]
            assert cosines[0] == pytest.approx(1.0, abs=1e-3)
            assert len(set(found.tolist())) == len(found) == 5

    def change(seed: int) -> None:
        random = np.random.default_rng(seed)
        mine = rowids[100:][rowids[100:] % 2 == seed]
        for _ in range(25):
            part = random.choice(mine, 60, replace=False)
            source.take(part)
            index.remove(part)
            source.put(part, vectors[part - 1])
            index.add(part, vectors[part - 1])

    with ThreadPoolExecutor(6) as threads:
        work = [threads.submit(search, seed) for seed in range(3)]
        # The source of these tests is not made for two writers: one changes, one asks for rebuilds.
        work += [
            threads.submit(change, 0),
            threads.submit(lambda: [index.rebuild().result(PATIENCE) for _ in range(3)]),
        ]
        for each in work:
            each.result(PATIENCE)

    assert len(index) == 600
    index.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sets(st.integers(1, 60), min_size=1, max_size=25)),
        st.tuples(st.just("remove"), st.sets(st.integers(1, 60), min_size=1, max_size=40)),
        st.tuples(st.sampled_from(["move", "rebuild", "save", "drop", "reopen"]), st.just(set[int]())),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(STEPS, st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_whatever_happens_it_answers_as_an_exact_search_over_the_living(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[int]]], k: int, seed: int
) -> None:
    directory: Path = tmp_path_factory.mktemp("index")
    random = np.random.default_rng(seed)
    tuning = Tuning(flat_rows=8, overlay_rows=4, bulk_rows=8, retry_seconds=0.0)
    source = StoredVectors()
    index = LiveIndex.open(directory, "m", DIMENSION, source, tuning=tuning)
    for verb, chosen in steps:
        rowids = np.array(sorted(chosen), np.int64)
        if verb == "add":
            vectors = random.normal(size=(len(rowids), DIMENSION)).astype(np.float32)
            index.remove(np.intersect1d(rowids, source.vector_rowids("m")))
            source.put(rowids, vectors)
            index.add(rowids, vectors)
            index.drop()  # a rowid that gets another vector must not come back with the old one
        elif verb == "remove":
            source.take(rowids)
            index.remove(rowids)
        elif verb == "move":
            assert index.settle(PATIENCE)
        elif verb == "rebuild":
            assert index.rebuild().result(PATIENCE) == len(source.rows)
        elif verb == "save":
            assert index.save()
        elif verb == "drop":
            index.drop()
        else:
            index.close()
            index = LiveIndex.open(directory, "m", DIMENSION, source, tuning=tuning)
            assert index.stats().discarded == ""
        query = random.normal(size=DIMENSION).astype(np.float32)
        living = source.vector_rowids("m")
        rows = np.array([source.rows[rowid] for rowid in living.tolist()]).reshape(-1, DIMENSION)
        found, cosines = index.search(query, k)
        expected, expected_cosines = exact(query, living, rows, k)
        assert len(index) == len(living)
        assert found.tolist() == expected.tolist()
        assert cosines == pytest.approx(expected_cosines, abs=1e-5)
    index.close()
