"""Whether a memory bears on a question at all. Pure.

relevance = (cosine + 0.2 * sqrt(share of the question's terms that the memory has) - 0.5 * raised) / related, where
`related` is the constant of the model above which that is so, and `raised` is how much nearer than usual the question
is to what only stands behind its best: some questions are near to much and mean none of it (a cohort to judge by, as
in speaker verification: Auckenthaler et al., "Score normalization for text-independent speaker verification systems",
2000). Of what has no vector only the terms speak. The order of an answer does not depend on it: what is nearest may
still be near to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_TERMS = 0.2
_RAISED = 0.5
_MOST = 0.15
# So many of the nearest are looked at; the further half of them stands behind the best.
_BEHIND = 64
# The root of the share of terms that is enough by itself.
_ENOUGH = 0.7


def raised(cosines: Sequence[float], usual: float) -> float:
    """How far what stands behind the best of a question is above the model's usual; `cosines` in falling order.

    The mean of ranks 33 to 64, or of the further half of fewer; as far as there are not so many, the usual is what is
    known. Bounded: where all is about one thing, much is near to a question and means it.
    """
    end = min(len(cosines), _BEHIND)
    above = sum(cosine - usual for cosine in cosines[end // 2 : end]) / (_BEHIND // 2)
    return max(-_MOST, min(_MOST, above))


def relevance(cosine: float | None, related: float, share: float, raised: float = 0.0) -> float:
    """From 1 on it bears on the question. `share` is 0 to 1; more of cosine or share never makes less of it."""
    if cosine is None:
        return math.sqrt(share) / _ENOUGH
    return max(0.0, (cosine + _TERMS * math.sqrt(share) - _RAISED * raised) / related)
