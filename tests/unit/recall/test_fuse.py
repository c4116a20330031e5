"""Scores: what more of a signal does to them, and what time does."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import DAY, NOW, memory

from edge.recall import fuse
from edge.types import Signals

SHARE = st.floats(0, 1)
EVIDENCE = st.builds(Signals, *[SHARE] * len(fuse.SIGNALS))
PRESETS = [*fuse.PRESETS.values(), *fuse.ALONE.values()]


def score(signals: Signals, weights: fuse.Weights) -> float:
    return fuse.combine(weights, *dataclasses.astuple(signals))


def test_signals_have_the_names_of_weights() -> None:
    assert (*fuse.SIGNALS, "product") == tuple(field.name for field in dataclasses.fields(fuse.Weights))


@pytest.mark.parametrize("weights", PRESETS)
@pytest.mark.parametrize("name", fuse.SIGNALS)
@given(signals=EVIDENCE, more=SHARE)
def test_more_of_a_signal_never_lowers_a_score(weights: fuse.Weights, name: str, signals: Signals, more: float) -> None:
    raised = dataclasses.replace(signals, **{name: max(more, getattr(signals, name))})
    assert score(raised, weights) >= score(signals, weights)


@pytest.mark.parametrize("weights", PRESETS)
def test_each_signal_that_counts_raises_a_score(weights: fuse.Weights) -> None:
    for name in fuse.SIGNALS:
        none, all_of_it = (score(Signals(**{name: value}), weights) for value in (0.0, 1.0))
        assert (none < all_of_it) == (getattr(weights, name) > 0)


@pytest.mark.parametrize("weights", PRESETS)
@given(signals=EVIDENCE)
def test_a_score_lies_between_nothing_and_all_of_every_signal(weights: fuse.Weights, signals: Signals) -> None:
    most = 1.0 if weights.product else sum(getattr(weights, name) for name in fuse.SIGNALS)
    assert 0 <= score(signals, weights) <= most + 1e-9


def test_the_nearest_with_the_best_words_scores_1_by_default() -> None:
    assert score(Signals(semantic=1.0, lexical=1.0), fuse.PRESETS["tuned"]) == pytest.approx(1.0)


def test_the_score_is_the_written_sum() -> None:
    weights = fuse.Weights(0.7, 0.3, 0.3, 0.5, 0.02, 0.02, 0.1)
    signals = Signals(0.5, 0.4, 1.0, 0.2, 0.5, 0.0, 0.1)
    assert score(signals, weights) == pytest.approx(0.35 + 0.12 + 0.3 + 0.1 + 0.01 + 0.01)


def test_a_product_is_never_nothing_for_want_of_one_signal() -> None:
    assert 0 < score(Signals(semantic=1.0), fuse.PRESETS["product"]) < 1
    assert score(Signals(*[1.0] * 7), fuse.PRESETS["product"]) == 1.0


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 0.4), st.floats(0.05, 0.5))
def test_nearness_is_a_share_and_grows_with_the_cosine(
    cosine: float, other: float, best: float, unrelated: float, gap: float
) -> None:
    low, high = sorted((cosine, other))
    seen = [fuse.nearness(value, best, unrelated, unrelated + gap) for value in (low, high)]
    assert 0 <= seen[0] <= seen[1] <= 1
    assert fuse.nearness(unrelated, best, unrelated, unrelated + gap) == 0


def test_the_nearest_is_no_nearer_than_its_model_says() -> None:
    assert fuse.nearness(0.8, 0.8, 0.25, 0.4) == 1.0
    assert fuse.nearness(0.3, 0.3, 0.25, 0.4) == pytest.approx(1 / 3)


def test_recency_halves_every_half_life() -> None:
    assert fuse.fading(NOW, NOW) == 1.0
    assert fuse.fading(NOW - 30 * DAY, NOW) == 0.5
    assert fuse.fading(NOW - 14 * DAY, NOW, half_life=7) == 0.25
    assert fuse.fading(0, NOW, half_life=1) == pytest.approx(0.0)


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_what_is_newer_never_fades_more(first: int, second: int) -> None:
    older, newer = sorted((first, second))
    assert 0 <= fuse.fading(older, NOW) <= fuse.fading(newer, NOW) <= 1


@given(st.integers(-5, 10**9), st.integers(-5, 10**9))
def test_what_is_recalled_more_often_counts_no_less(first: int, second: int) -> None:
    few, many = (fuse.frequency(memory(1, "", access_count=count)) for count in sorted((first, second)))
    assert 0 <= few <= many <= 1


@given(st.integers(0, 400), st.integers(1, 100_000))
def test_a_time_to_come_never_outranks_what_was_said_since_it_was_received(received: int, ahead: int) -> None:
    """Case 12: it counts as said when it came."""
    future = memory(1, "", occurred_at=NOW + ahead * DAY, created_at=NOW - received * DAY)
    said_since = memory(2, "", occurred_at=NOW - received * DAY + 1)
    if received:
        assert fuse.order_key(1.0, said_since, NOW) < fuse.order_key(1.0, future, NOW)
    assert fuse.said_at(future, NOW) == future.created_at


def test_a_time_to_come_that_the_box_received_in_the_future_too_counts_as_now() -> None:
    assert fuse.said_at(memory(1, "", occurred_at=NOW + 5, created_at=NOW + 9), NOW) == NOW


def test_the_order_is_by_score_then_time_then_id() -> None:
    rows = [
        (0.5, memory(1, "", occurred_at=NOW)),
        (0.9, memory(4, "", occurred_at=NOW - DAY)),
        (0.9, memory(3, "", occurred_at=NOW - DAY)),
        (0.9, memory(2, "", occurred_at=NOW - 2 * DAY)),
    ]
    ordered = sorted(rows, key=lambda row: fuse.order_key(row[0], row[1], NOW))
    assert [row.rowid for _, row in ordered] == [3, 4, 2, 1]


def test_presets_can_be_summed() -> None:
    for weights in PRESETS:
        assert all(math.isfinite(getattr(weights, name)) and getattr(weights, name) >= 0 for name in fuse.SIGNALS)
