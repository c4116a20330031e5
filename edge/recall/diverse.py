"""Of several that say the same, one comes first and the others later. Pure.

Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edge.types import Matrix

# Cosine above which two memories begin to say the same, and the share of its score that a perfect twin loses. Twins are
# put off and not dropped: two sentences that differ in one number are as near as twins.
_ALIKE = 0.9
_LOSS = 0.2


def diverse(scores: Sequence[float], vectors: Matrix, count: int) -> list[tuple[int, float]]:
    """The `count` best in a new order, each time the one with the most left of its score: its place, and what is left.

    `vectors` has a row for each score (0 or more); a row of zeros is like nothing. What is left never grows from one to
    the next.
    """
    whole = np.array(scores, np.float64)
    left = whole.copy()
    likeness = np.zeros(len(whole), np.float64)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(count, len(whole))):
        best = int(np.argmax(left))
        chosen.append((best, float(left[best])))
        likeness = np.maximum(likeness, np.einsum("ij,j->i", vectors, vectors[best]))
        left = whole * (1 - _LOSS * np.clip((likeness - _ALIKE) / (1 - _ALIKE), 0, 1))
        left[[place for place, _ in chosen]] = -np.inf
    return chosen
