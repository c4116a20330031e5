"""How good an order of memories is. Pure.

Recall@k: the share of a question's facts (groups) that one of the first k memories tells. NDCG@10 (Järvelin and
Kekäläinen 2002): each fact gains 1 / log2(rank + 1) where it is first told, against the facts told one after another
from the first rank on; a memory that tells several facts earns each of them, so it is cut to 1. MRR: 1 / the rank of
the first memory that tells anything. Precision@5: the share of the first five that tell something.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from edge.cli.benches.result import percentile, quotient

_SEED = 20260706
_RESAMPLES = 1000
# Of reciprocal rank fusion (Cormack et al. 2009).
_RRF_K = 60
RRF_DEPTH = 100

_One = TypeVar("_One", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Marks:
    """Of one question, or the means over several; each 0 to 1."""

    r5: float
    r10: float
    ndcg10: float
    mrr: float
    p5: float


NAMES = tuple(field.name for field in fields(Marks))


def judge(order: Iterable[Hashable], groups: Sequence[Set[Hashable]]) -> Marks:
    """`order` holds each memory once, best first."""
    first: list[int | None] = [None] * len(groups)
    gain = reciprocal = 0.0
    among_five = 0
    for rank, one in enumerate(order, 1):
        told = [place for place, group in enumerate(groups) if one in group]
        if not told:
            continue
        reciprocal = reciprocal or 1 / rank
        among_five += rank <= 5
        for place in told:
            if first[place] is None:
                first[place] = rank
                gain += 1 / math.log2(rank + 1) if rank <= 10 else 0.0
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(groups)) + 1))
    within = {k: sum(rank is not None and rank <= k for rank in first) / len(groups) for k in (5, 10)}
    return Marks(within[5], within[10], min(1.0, gain / ideal), reciprocal, among_five / 5)


def p5_ceiling(groups: Sequence[Set[Hashable]]) -> float:
    """The best precision@5 that any order could have."""
    return min(5, len(frozenset[Hashable]().union(*groups))) / 5


def reciprocal_ranks(*orders: Sequence[_One]) -> list[_One]:
    """Several orders made into one: the sum of 1 / (60 + rank), over the first hundred of each."""
    sums: dict[_One, float] = {}
    for order in orders:
        for rank, one in enumerate(order[:RRF_DEPTH], 1):
            sums[one] = sums.get(one, 0.0) + 1 / (_RRF_K + rank)
    return sorted(sums, key=lambda one: -sums[one])


@dataclass(frozen=True, slots=True)
class Summary:
    """Of `n` questions: means; P@5 of its ceiling; half of the NDCG's 95 % interval; the median milliseconds."""

    n: int
    marks: Marks
    precision: float
    half_width: float
    p50_ms: float


def summary(marks: Sequence[Marks], ceilings: Sequence[float], seconds: Sequence[float]) -> Summary:
    """NaN for whatever there is nothing of."""
    means = Marks(*(_mean([getattr(one, name) for one in marks]) for name in NAMES))
    precision = quotient(means.p5, _mean(ceilings))
    width = half_width([one.ndcg10 for one in marks])
    return Summary(len(marks), means, precision, width, 1000 * percentile(seconds, 0.5))


def half_width(values: Sequence[float]) -> float:
    """Of the 95 % interval of their mean, by resampling (Efron's bootstrap); the same every time."""
    if not values:
        return math.nan
    chance = np.random.default_rng(_SEED)
    means = np.array(values)[chance.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(high - low) / 2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
