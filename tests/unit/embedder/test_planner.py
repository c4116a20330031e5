"""The planner of batches."""

from hypothesis import given
from hypothesis import strategies as st

from edge.embedder.planner import plan

lengths = st.lists(st.integers(1, 600), min_size=1, max_size=60)


@given(lengths, st.floats(0, 10), st.integers(1, 2000))
def test_a_batch_is_never_empty_and_never_over_budget_unless_one_text_is_by_itself(tokens, age, budget):
    chosen = plan(tokens, age, budget)
    assert chosen
    assert len(set(chosen)) == len(chosen)
    assert all(0 <= index < len(tokens) for index in chosen)
    padded = max(tokens[index] for index in chosen) * len(chosen)
    assert padded <= budget or len(chosen) == 1


@given(lengths, st.integers(1, 2000))
def test_the_oldest_past_the_age_cap_is_in_the_next_batch(tokens, budget):
    assert 0 in plan(tokens, 1.0, budget, age_cap=1.0)


@given(lengths, st.integers(1, 2000))
def test_repeated_planning_runs_everything_once(tokens, budget):
    waiting = list(enumerate(tokens))
    ran = []
    while waiting:
        chosen = plan([length for _, length in waiting], 0.0, budget)
        ran += [waiting[index][0] for index in chosen]
        waiting = [entry for at, entry in enumerate(waiting) if at not in set(chosen)]
    assert sorted(ran) == list(range(len(tokens)))


def test_like_lengths_go_together_shortest_first():
    assert sorted(plan([300, 10, 290, 12, 11], 0.0, 60)) == [1, 3, 4]


def test_an_old_long_text_takes_the_longest_that_fit_beside_it():
    assert plan([100, 20, 90, 300], 2.0, 200) == [0, 2]


def test_nothing_waiting_is_no_batch():
    assert plan([], 0.0, 512) == []
