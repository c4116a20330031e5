"""Whether a memory bears on a question at all. Pure.

relevance = (cosine + 0.3 * sqrt(share of the question's terms that the memory has)) / related, where `related` is the
constant of the model above which that is so. Of what has no vector only the terms speak. The order of an answer does
not depend on it: what is nearest may still be near to nothing.
"""

from __future__ import annotations

import math

_TERMS = 0.3
# The root of the share of terms that is enough by itself.
_ENOUGH = 0.7


def relevance(cosine: float | None, related: float, share: float) -> float:
    """From 1 on it bears on the question. `share` is 0 to 1; more of either never makes less of it."""
    if cosine is None:
        return math.sqrt(share) / _ENOUGH
    return max(0.0, (cosine + _TERMS * math.sqrt(share)) / related)
