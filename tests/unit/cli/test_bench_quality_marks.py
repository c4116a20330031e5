"""The marks of `edge bench quality` are those that the literature defines."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.cli.benches.quality_marks import Marks, half_width, judge, p5_ceiling, reciprocal_ranks, summary


def groups(*ids: str) -> list[frozenset[str]]:
    return [frozenset(group) for group in ids]


def test_one_fact_found_first_has_full_marks() -> None:
    assert judge("abc", groups("a")) == Marks(1.0, 1.0, 1.0, 1.0, 0.2)


def test_marks_are_those_of_the_definitions() -> None:
    # Two facts; the first is told at rank 2, the second at rank 4.
    found = judge("xaybz", groups("a", "b"))
    assert found.r5 == found.r10 == 1.0
    assert found.mrr == 0.5
    assert found.p5 == 0.4
    assert found.ndcg10 == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))


def test_a_fact_that_two_memories_tell_counts_once() -> None:
    once, twice = judge("abxxx", groups("ab")), judge("axxxx", groups("ab"))
    assert (once.r5, once.ndcg10, once.mrr) == (twice.r5, twice.ndcg10, twice.mrr) == (1.0, 1.0, 1.0)
    assert (once.p5, twice.p5) == (0.4, 0.2)


def test_a_memory_that_tells_several_facts_earns_no_more_than_the_best_order_would() -> None:
    assert judge("a", groups("a", "a", "a")).ndcg10 == 1.0


def test_what_comes_after_the_fifth_and_the_tenth_counts_where_it_says_so() -> None:
    sixth, eleventh = judge("xxxxxa", groups("a")), judge("xxxxxxxxxxa", groups("a"))
    assert (sixth.r5, sixth.r10, sixth.p5) == (0.0, 1.0, 0.0)
    assert (eleventh.r10, eleventh.ndcg10) == (0.0, 0.0)
    assert eleventh.mrr == pytest.approx(1 / 11)


ORDERS = st.permutations(range(14))
GROUPS = st.lists(st.frozensets(st.integers(0, 13), min_size=1, max_size=3), min_size=1, max_size=6)


@given(ORDERS, GROUPS)
def test_every_mark_is_a_share(order: list[int], told: list[frozenset[int]]) -> None:
    found = judge(order, told)
    assert all(0 <= getattr(found, name) <= 1 for name in ("r5", "r10", "ndcg10", "mrr", "p5"))
    assert found.r5 <= found.r10
    assert found.p5 <= p5_ceiling(told)


@given(ORDERS, GROUPS)
def test_an_order_in_which_a_good_memory_comes_earlier_is_no_worse(
    order: list[int], told: list[frozenset[int]]
) -> None:
    good = frozenset().union(*told)
    place = next((at for at in range(1, len(order)) if order[at] in good and order[at - 1] not in good), None)
    if place is None:
        return
    better = [*order]
    better[place - 1], better[place] = better[place], better[place - 1]
    before, after = judge(order, told), judge(better, told)
    # The sums may differ in their last bit.
    assert all(getattr(after, n) >= getattr(before, n) - 1e-12 for n in ("r5", "r10", "ndcg10", "mrr", "p5"))


def test_what_stands_high_in_both_orders_comes_first_when_they_are_joined() -> None:
    assert reciprocal_ranks(["a", "b", "c"], ["c", "b", "d"]) == ["c", "b", "a", "d"]
    assert reciprocal_ranks(["a"], []) == ["a"]


def test_the_interval_of_a_mean_is_the_same_every_time_and_nothing_without_spread() -> None:
    values = [0.0, 1.0] * 50
    assert half_width(values) == half_width(values)
    # 1.96 standard errors of a fair coin.
    assert half_width(values) == pytest.approx(1.96 * 0.5 / 10, rel=0.1)
    assert half_width([0.5] * 9) == 0.0
    assert math.isnan(half_width([]))


def test_precision_is_of_what_could_be_reached() -> None:
    found = summary([Marks(1, 1, 1, 1, 0.2), Marks(1, 1, 1, 1, 0.4)], [0.2, 1.0], [0.001, 0.003])
    assert found.precision == pytest.approx(0.5)
    assert found.n == 2
    assert found.p50_ms == 1.0
