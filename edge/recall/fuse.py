"""Lines of evidence, made into one order. Pure.

score = (0.7 * nearness + 0.3 * words) * weight factor, where
  nearness = (cosine - 0.25) / (top - 0.25), cut to 0..1, where top is the best cosine, 0.55 at the least;
  words    = BM25 / best BM25, which stands for the nearness too of what has no vector yet;
  weight factor = 1 + 0.1 * (weight - 1) / 9: a memory of weight 10 gains a tenth, one of ordinary weight 1 nothing.
So a score is 0 to 1.1, and low where nothing is near.
Recency and frequency are reported, and do not count yet.

Measured on the evaluation sets with bge-small-zh int8 and 50 candidates a line (NDCG@10): the floor of 0.25, which
is about the cosine of unrelated texts, against the least cosine among the candidates: madial with noise .533 against
.531, locomo .481 against .455; 0.2 and 0.3 differ by .01 at most. The true cosine of candidates that only the words
found, against none: locomo .481 against .432. Weighted sums beat reciprocal ranks on most sets.

The least top of 0.55 keeps what is near to nothing from looking good only for being the nearest: a rare identifier
that one memory has, and no embedding knows, comes before it. On the sets it changes little (NDCG@10 with it, without:
memorybank .658, .658; madial .613, .622; locomo .480, .480; drcd .980, .980); 0.65 costs madial .014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from edge.types import Memory, Micros, Signals

NEARNESS_SHARE = 0.7
WORDS_SHARE = 0.3
FLOOR = 0.25
LEAST_TOP = 0.55
WEIGHT_SHARE = 0.1
HALF_LIFE: Micros = 30 * 86_400_000_000
# Accesses at which frequency reaches 1.
_OFTEN = 100


class Candidate(NamedTuple):
    """A memory that some line found. `cosine` is None where there is no vector, `words` (BM25) 0 where no word
    matched.
    """

    space: str
    rowid: int
    cosine: float | None
    words: float


class Scored(NamedTuple):
    candidate: Candidate
    score: float
    lexical: float


def score(candidates: Sequence[Candidate]) -> list[Scored]:
    """All candidates, best first, by nearness and words; equal scores by space and rowid, newest row first."""
    best_cosine = max((c.cosine for c in candidates if c.cosine is not None), default=0.0)
    span = max(best_cosine, LEAST_TOP) - FLOOR
    best_words = max((c.words for c in candidates), default=0.0)
    scored = []
    for candidate in candidates:
        lexical = candidate.words / best_words if best_words > 0 else 0.0
        # What has no vector yet is judged by its words alone, or it could not be found until it has.
        nearness = lexical if candidate.cosine is None else max(0.0, (candidate.cosine - FLOOR) / span)
        scored.append(Scored(candidate, NEARNESS_SHARE * nearness + WORDS_SHARE * lexical, lexical))
    scored.sort(key=lambda s: (-s.score, s.candidate.space, -s.candidate.rowid))
    return scored


def weigh(base: float, weight: float) -> float:
    """The score with the memory's own weight in it."""
    return base * (1 + WEIGHT_SHARE * (min(max(weight, 0.0), 10.0) - 1) / 9)


# What weigh() can make of a base score at the most.
HIGHEST_FACTOR = weigh(1.0, 10.0)


def signals(scored: Scored, memory: Memory, now: Micros) -> Signals:
    """What each line says, 0 to 1: cosine; BM25 against the best; age, halved every 30 days; accesses, as a logarithm;
    weight.

    A memory from the future (a wrong clock, case 12) is as recent as now, and no more.
    """
    return Signals(
        semantic=_unit(scored.candidate.cosine or 0.0),
        lexical=scored.lexical,
        recency=fading(memory.occurred_at, now),
        frequency=_unit(math.log1p(max(0, memory.access_count)) / math.log1p(_OFTEN)),
        weight=_unit(memory.weight / 10),
    )


def fading(since: Micros, now: Micros) -> float:
    """1 now, and also for what lies ahead; half of it every 30 days."""
    half_lives: float = max(0, now - since) / HALF_LIFE
    return float(0.5**half_lives)


def order_key(score: float, memory: Memory, now: Micros) -> tuple[float, int, str]:
    """Best first; of equals the newer (the future counts as now), then the id: the same question, the same order."""
    return (-score, -min(memory.occurred_at, now), memory.id)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))
