"""Whether a new memory says what an older one said, takes its place, or stands beside it. Pure.

SAME needs two witnesses: the vectors are near, and the words agree once they are read for what they mean (`agree`). A
wrong merge loses a fact and a missed one costs a line, so in doubt they stand apart.

`benchmarks/merging.py` has what was measured.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from edge.admission.agree import LONGEST, counts_from_today, read, same_but_for_light, takes_place_of
from edge.types import Micros

# Where 0.85 lies on a scale from "nothing to do with each other" (0) to "the same text" (1). A model's cosines fill
# only the upper part of theirs: texts without relation had a median of .36 with the Chinese model and .51 with the
# English one (benchmarks/merging.py), and .36 + .85 * (1 - .36) is .904.
MERGE_AT: Mapping[str, float] = MappingProxyType({"bge-small-zh-v1.5-q": 0.91, "bge-small-en-v1.5-q": 0.93})
_UNMEASURED = 0.93
# How much less near a contradiction may be: "I live in Boston" and "I moved to Austin" are .64 to .76.
CHANGE_MARGIN = 0.25
HEAVIEST = 10.0


class Relation(enum.Enum):
    """Of a newer memory to an older one: it updates it, supersedes it, or has nothing to do with it."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    APART = "apart"


def merge_at(model: str) -> float:
    """The cosine from which texts may be the same, by the id of the model; a variant's is that of its model."""
    return next((at for known, at in MERGE_AT.items() if model.startswith(known)), _UNMEASURED)


def relate(older: str, newer: str, cosine: float, merge_at: float, *, same_day: bool = True) -> Relation:
    """How the newer text stands to the older one, whose vectors have this cosine.

    Only what is `merge_at - CHANGE_MARGIN` near or more can be anything but APART. `same_day`: whether both were said
    on one day, the speaker's; on another, "tomorrow" is another day, and the same words tell another thing. A text of
    more than 400 characters, which is no sentence, is only the same as itself.
    """
    # NaN compares false.
    if not cosine >= merge_at - CHANGE_MARGIN:
        return Relation.APART
    if not same_day and (counts_from_today(older) or counts_from_today(newer)):
        return Relation.APART
    if max(len(older), len(newer)) > LONGEST:
        return Relation.SAME if cosine >= merge_at and older.split() == newer.split() else Relation.APART
    if same_but_for_light(read(older), read(newer)):
        return Relation.SAME if cosine >= merge_at else Relation.APART
    return Relation.CONTRADICTS if takes_place_of(older, newer) else Relation.APART


def merged_weight(older: float, newer: float) -> float:
    """The greater, 10 at most: saying a thing twice makes it no less, and how often it was said is counted apart."""
    return min(HEAVIEST, max(older, newer))


def merged_access(older: tuple[int, Micros], newer: tuple[int, Micros]) -> tuple[int, Micros]:
    """(access_count, accessed_at) of what both have become: all recalls of either, and the last of them."""
    return older[0] + newer[0], max(older[1], newer[1])
