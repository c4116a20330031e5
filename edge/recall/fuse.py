"""Lines of evidence, made into one order. Pure.

score = sum of weight times signal, over signals that all lie between 0 and 1 (preset `product`: their product). More of
any signal never lowers a score. `tuned`, the default, gives a memory that is the nearest and has the words best a score
of 1; what else speaks for it may lift it above that.

  semantic     nearness: (cosine - unrelated) / (best cosine - unrelated), where `unrelated` is about the cosine of
               texts that have nothing to do with each other, a constant of the model. The best counts as no less than
               what is near by the model's measure, so that what is near to nothing does not look good for being
               nearest.
  lexical      BM25 / the best BM25. It stands for the nearness too of what has no vector yet.
  association  said by the one who is asked about; in a deep recall, that what was said beside it fits well.
  time         lies in the time that is named; or tells a time, where the question is when.
  recency      1 now, half of it every 30 days; 0 where the question names a time of its own.
  frequency    the logarithm of how often it was recalled.
  weight       its own weight, a tenth for an ordinary one.

docs/recall.md has what was measured.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from edge.types import DAY, Memory, Micros, Signals

HALF_LIFE_DAYS = 30.0
# Accesses at which frequency reaches 1.
_OFTEN = 100
# What a signal of 0 leaves of a product.
_REST = 0.1


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts, 0 or more; exponents in a product."""

    semantic: float = 0.0
    lexical: float = 0.0
    association: float = 0.0
    time: float = 0.0
    recency: float = 0.0
    frequency: float = 0.0
    weight: float = 0.0
    product: bool = False


SIGNALS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Signals))

PRESETS: Mapping[str, Weights] = {
    "tuned": Weights(0.7, 0.3, 0.4, 0.5, 0.02, 0.02, 0.1),
    "balanced": Weights(0.35, 0.15, 0.2, 0.2, 0.2, 0.1, 0.05),
    "timeless": Weights(0.7, 0.3, 0.4, weight=0.1),
    "product": Weights(0.7, 0.3, 0.2, 0.2, 0.05, 0.02, 0.1, product=True),
}
# One line of evidence by itself, to be measured against.
ALONE: Mapping[str, Weights] = {"bm25": Weights(lexical=1.0), "vectors": Weights(semantic=1.0)}


def combine(
    weights: Weights,
    semantic: float,
    lexical: float,
    association: float = 0.0,
    time: float = 0.0,
    recency: float = 0.0,
    frequency: float = 0.0,
    weight: float = 0.0,
) -> float:
    """The score. Monotone in every signal; 0 at the least, the sum of the weights at the most, in a product 1.

    Of plain numbers, in the order of `Signals`: a hundred candidates a question are scored, and five are shown.
    """
    if weights.product:
        product: float = (
            (_REST + (1 - _REST) * semantic) ** weights.semantic
            * (_REST + (1 - _REST) * lexical) ** weights.lexical
            * (_REST + (1 - _REST) * association) ** weights.association
            * (_REST + (1 - _REST) * time) ** weights.time
            * (_REST + (1 - _REST) * recency) ** weights.recency
            * (_REST + (1 - _REST) * frequency) ** weights.frequency
            * (_REST + (1 - _REST) * weight) ** weights.weight
        )
        return product
    return (
        weights.semantic * semantic
        + weights.lexical * lexical
        + weights.association * association
        + weights.time * time
        + weights.recency * recency
        + weights.frequency * frequency
        + weights.weight * weight
    )


def nearness(cosine: float, best: float, unrelated: float, near: float) -> float:
    """The cosine as a signal, 0 to 1. `best` is the greatest that was found; it counts as `near` at the least, which is
    above `unrelated`.
    """
    return unit((cosine - unrelated) / (max(best, near) - unrelated))


def frequency(memory: Memory) -> float:
    return unit(math.log1p(max(0, memory.access_count)) / math.log1p(_OFTEN))


def said_at(memory: Memory, now: Micros) -> Micros:
    """When it was said, as far as that can be believed: what lies ahead comes of a wrong clock, and counts as said when
    it was received. So it ages, and never stands above what was said after that (case 12)."""
    return memory.occurred_at if memory.occurred_at <= now else min(memory.created_at, now)


def fading(since: Micros, now: Micros, half_life: float = HALF_LIFE_DAYS) -> float:
    """1 now, and also for what lies ahead; half of it every `half_life` days."""
    half_lives: float = max(0, now - since) / (half_life * DAY)
    return float(0.5**half_lives)


def order_key(score: float, memory: Memory, now: Micros) -> tuple[float, int, str]:
    """Best first; of equals the newer, then the id: the same question, the same order."""
    return (-score, -said_at(memory, now), memory.id)


def unit(value: float) -> float:
    # NaN compares false.
    return min(1.0, value) if value > 0.0 else 0.0
