"""Which of the waiting texts share the next batch: a pure function."""

from __future__ import annotations

from collections.abc import Sequence

# How far into the queue the planner looks: enough to find like lengths, cheap to sort (20 microseconds).
LOOK_AHEAD = 256
# Seconds the oldest may be passed over in favour of shorter ones.
AGE_CAP = 1.0


def plan(tokens: Sequence[int], oldest_age: float, budget: int, age_cap: float = AGE_CAP) -> list[int]:
    """Indices of the next batch among waiting texts of those lengths, in order of waiting, the oldest first.

    The cost of a batch is padded: its longest times its count. The batch never costs more than `budget` padded tokens,
    unless a single text does by itself, which then runs alone. Usually the shortest go first, since like lengths pad
    least and most callers are answered soonest; once the oldest has waited for `age_cap` seconds, the batch is built
    around it, so that nothing starves: with n waiting ahead of it, at most n batches pass.
    """
    if not tokens:
        return []
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    if oldest_age < age_cap:
        chosen = [order[0]]
        rest = order[1:]
    else:
        # Those no longer than the oldest, the most alike first, pad it least; only then longer ones.
        at = order.index(0)
        chosen = [0]
        rest = order[:at][::-1] + order[at + 1 :]
    longest = tokens[chosen[0]]
    for index in rest:
        longest = max(longest, tokens[index])
        if longest * (len(chosen) + 1) > budget:
            break
        chosen.append(index)
    return chosen
