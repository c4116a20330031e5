"""The pure parts of `edge bench`: what is measured on, and how the figures are made of the measurements."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.chunk import LIMIT
from edge.cli.benches import ceiling, corpus, rounds
from edge.cli.benches.ceiling import Variant
from edge.cli.benches.ingest import index_bytes, middle_and_end, pieces_of
from edge.cli.benches.neighbour import busy_neighbour
from edge.cli.benches.rebuild import clustered
from edge.cli.benches.result import Ratio, Result, median, percentile, quotient, rounded
from edge.cli.benches.rounds import Round
from edge.cli.show import as_json

# The corpus.


def test_the_same_seed_gives_the_same_turns_and_another_seed_others() -> None:
    assert corpus.turns(200, 7) == corpus.turns(200, 7)
    assert not set(corpus.turns(200, 7)) & set(corpus.turns(200, 8))


def test_turns_have_every_length_between_the_bounds_about_equally_often() -> None:
    lengths = Counter((len(text) - 10) // 40 for text in corpus.turns(2000, 7))
    assert min(map(len, corpus.turns(2000, 7))) >= 10
    # Ten bins of 200 on average; the last also holds the length of exactly 400.
    assert all(140 <= lengths[number] <= 260 for number in range(10 - 1))
    assert lengths.total() == 2000


def test_no_turn_comes_twice_even_among_short_ones() -> None:
    texts = corpus.turns(5000, 7, 10, 30)
    assert len(set(texts)) == 5000
    assert all(10 <= len(text) <= 30 for text in texts)


def test_questions_are_of_the_length_that_people_ask_and_no_two_alike() -> None:
    questions = corpus.questions(400, 7)
    assert len(set(questions)) == 400
    assert 15 <= sum(map(len, questions)) / 400 <= 25
    assert questions == corpus.questions(400, 7)


def test_an_invented_clause_is_about_someone_and_something() -> None:
    clause = corpus.invented(random.Random(1))
    assert "把" in clause
    assert 15 <= len(clause) <= 60


def test_the_pieces_are_those_that_the_box_makes() -> None:
    pieces = pieces_of(corpus.turns(300, 7))
    assert len(pieces) > 300
    assert all(0 < len(piece) <= LIMIT for piece in pieces)


# The ceiling's batches.


@given(st.lists(st.integers(2, 512), max_size=200), st.sampled_from([0, 256, 1024, 4096]))
def test_batches_hold_every_text_once_and_keep_to_their_budget(lengths: list[int], budget: int) -> None:
    found = ceiling.batches(lengths, budget)
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


@given(st.lists(st.integers(2, 512), max_size=200), st.sampled_from([256, 4096]))
def test_batches_are_perfectly_sorted_longest_first(lengths: list[int], budget: int) -> None:
    order = [lengths[index] for batch in ceiling.batches(lengths, budget) for index in batch]
    assert order == sorted(lengths, reverse=True)


def test_without_a_budget_each_row_is_alone() -> None:
    assert ceiling.batches([5, 9, 7], ceiling.ROWS_ALONE) == [[1], [2], [0]]


def test_on_two_cores_the_search_tries_one_thread_two_threads_and_one_thread_with_both() -> None:
    found = ceiling.variants(2)
    assert {(one.threads, one.intra) for one in found} == {(1, 1), (1, 2), (2, 1)}
    assert {one.budget for one in found} == {0, 256, 512, 1024, 2048, 4096}
    assert len(found) == len(set(found)) == 18


def test_on_one_core_and_on_many_the_search_goes_no_further_than_the_cores() -> None:
    assert {(one.threads, one.intra) for one in ceiling.variants(1)} == {(1, 1)}
    assert all(one.threads * one.intra <= 8 for one in ceiling.variants(8))


def test_a_variant_says_what_it_is() -> None:
    assert str(Variant(0, 2, 1)) == "rows alone, 2 threads × 1 cores"
    assert str(Variant(512, 1, 2)) == "batches of 512 padded tokens, 1 threads × 2 cores"


# The neighbour.


def test_a_busy_neighbour_is_gone_when_the_block_is_left_however_it_is_left() -> None:
    before = set(psutil.Process().children())
    with pytest.raises(KeyError), busy_neighbour():
        (spinning,) = set(psutil.Process().children()) - before
        assert spinning.is_running()
        raise KeyError
    assert not spinning.is_running()


# Vectors.


def test_the_vectors_of_a_seed_are_unit_rows_in_clusters_and_always_the_same() -> None:
    rows = clustered(600, 64, 7)
    assert np.array_equal(rows, clustered(600, 64, 7))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    assert np.array_equal(rows, rows.astype(np.float16).astype(np.float32))
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1)
    # Each has a neighbour of its own cluster, and most of the others are strangers.
    assert np.median(cosines.max(axis=1)) > 0.4
    assert abs(np.median(cosines)) < 0.1


# Arithmetic.


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1.0) == 100
    assert percentile(values, 0.0) == 1
    assert median(values) == 50
    assert math.isnan(percentile([], 0.5))


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_at_least_that_share_is_at_most_the_percentile(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_a_round_compares_the_box_with_the_ceiling_on_both_sides_of_it() -> None:
    assert Round(before=9.0, measured=10.0, after=8.0).ratio == 0.85


async def test_every_round_lies_between_two_runs_of_the_ceiling_and_neighbours_share_one() -> None:
    order: list[str] = []
    seconds = iter([9.0, 8.0, 7.0])

    def bare() -> float:
        order.append("ceiling")
        return next(seconds)

    async def work(number: int) -> float:
        order.append(f"work {number}")
        return 10.0

    said: list[str] = []
    found = await rounds.alternate(bare, work, 2, said.append)
    assert order == ["ceiling", "work 0", "ceiling", "work 1", "ceiling"]
    assert found == [Round(9.0, 10.0, 8.0), Round(8.0, 10.0, 7.0)]
    assert rounds.figures(found) == [[9.0, 10.0, 8.0], [8.0, 10.0, 7.0]]
    assert len(said) == 2


def test_the_middle_round_speaks_for_all() -> None:
    assert rounds.ratio([Round(1, 1, 1), Round(1, 2, 1), Round(1, 100, 1)]) == 0.5


def test_dividing_by_nothing_is_no_number_rather_than_no_result() -> None:
    assert math.isnan(quotient(1.0, 0.0))


def test_the_bytes_of_the_index_are_its_vectors_and_its_links() -> None:
    # 512 float32, 32 links and their count, label, pointer.
    assert index_bytes(1, 512) == 2048 + 132 + 16


def test_growth_is_taken_between_medians_so_that_one_sample_does_not_decide() -> None:
    marks = dict.fromkeys(range(1000, 20001, 1000), 200.0) | {10000: 900.0, 20000: 900.0}
    assert middle_and_end(marks, 20000) == (200.0, 200.0)


# The result.


@pytest.mark.parametrize(
    ("ratio", "met"),
    [
        (Ratio("r", 0.85, 0.85), True),
        (Ratio("r", 0.84, 0.85), False),
        (Ratio("r", 25.0, 25, at_least=False), True),
        (Ratio("r", 25.1, 25, at_least=False), False),
        (Ratio("r", math.nan, 25, at_least=False), False),
        (Ratio("r", 3.0), None),
    ],
)
def test_a_target_is_met_or_missed_and_no_target_is_neither(ratio: Ratio, met: bool | None) -> None:
    assert ratio.met is met


def test_a_result_is_one_json_object_with_the_four_parts_of_the_contract() -> None:
    result = Result(
        "recall", [Ratio("a", 1.23456, 1.5, False, "x"), Ratio("b", math.nan)], {"n": [0.123456]}, {"cores": 2}
    )
    assert json.loads(as_json(result.as_dict())) == {
        "bench": "recall",
        "ratios": {"a": 1.235, "b": None},
        "figures": {"n": [0.1235]},
        "machine": {"cores": 2},
    }


def test_the_table_shows_each_ratio_with_its_target_its_verdict_and_its_ceiling() -> None:
    heads, first, second = Result("x", [Ratio("a", 0.5, 0.85, True, "the ceiling"), Ratio("b", 2.0)]).rows()
    assert len(heads) == len(first) == len(second)
    assert first == ("a", "0.50", "at least 0.85", "MISSED", "the ceiling")
    assert second == ("b", "2.00", "", "", "")


def test_rounding_keeps_whole_numbers_and_words_whole() -> None:
    assert rounded({"a": 123456, "b": "x", "c": 123456.7, "d": True}) == {
        "a": 123456,
        "b": "x",
        "c": 123500.0,
        "d": True,
    }
