from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edge.index.flat import FlatIndex, exact
from edge.index.vectors import best, clean_rows


def test_a_row_is_the_same_whether_it_comes_from_the_model_or_back_from_the_ledger() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 512)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rowids = np.arange(200)

    _, live = clean_rows(rowids, rows, 512)
    _, back = clean_rows(rowids, rows.astype(np.float16).astype(np.float32), 512)

    assert np.array_equal(live, back)
    assert np.allclose(np.linalg.norm(live, axis=1), 1, atol=1e-6)


def test_rows_that_were_handed_to_a_search_do_not_change_under_it() -> None:
    index = FlatIndex(2)
    index.add(np.arange(300), np.tile(np.array([[1, 0]], np.float32), (300, 1)))
    ids, rows = index._ids[:300], index._rows[:300]

    index.remove(np.arange(299))
    index.add(np.arange(1000, 2000), np.tile(np.array([[0, 1]], np.float32), (1000, 1)))

    assert (rows == [1, 0]).all()
    assert set(ids.tolist()) <= {-1, *range(300)}


def test_the_exact_path_skips_rows_without_a_direction() -> None:
    rows = np.array([[0, 0], [np.nan, 1], [np.inf, 0], [1, 0]], np.float32)

    assert exact(np.array([1, 0], np.float32), np.array([1, 2, 3, 4]), rows, 10)[0].tolist() == [4]


def test_equal_scores_are_ordered_by_rowid_wherever_they_lie() -> None:
    rowids, scores = best(np.array([5, 3, 9, 1]), np.array([0.5, 0.5, 0.7, 0.5], np.float32), 3)

    assert rowids.tolist() == [9, 1, 3]
    assert np.array_equal(scores, np.array([0.7, 0.5, 0.5], np.float32))


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.integers(0, 40), min_size=1, max_size=20)),
        max_size=30,
    ),
    st.integers(1, 50),
)
def test_it_holds_what_a_dict_would_hold(steps: list[tuple[str, list[int]]], k: int) -> None:
    random = np.random.default_rng(0)
    index, model = FlatIndex(4), dict[int, np.ndarray]()
    for verb, rowids in steps:
        if verb == "add":
            vectors = random.normal(size=(len(rowids), 4)).astype(np.float16).astype(np.float32)
            index.add(np.array(rowids), vectors)
            model.update(zip(rowids, vectors, strict=True))
        else:
            index.remove(np.array(rowids))
            for rowid in rowids:
                model.pop(rowid, None)
        query = random.normal(size=4).astype(np.float32)
        expected = exact(query, np.array(list(model), np.int64), np.array([*model.values()]).reshape(-1, 4), k)
        found = index.search(query, k)
        assert found[0].tolist() == expected[0].tolist()
        assert np.array_equal(found[1], expected[1])
        assert index.rowids().tolist() == sorted(model)
        assert sorted(index.first(len(index))[0].tolist()) == sorted(model)
