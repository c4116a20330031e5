"""What is known at once, what is proposed, and what passes: explicit, candidate, temporary. By rules that one can read.

Only the user's own words count: not the assistant's, nor what stands in quotation marks or code. An order to remember
begins a clause ("记住…", "from now on…"), so that "老师让我记住" and "I'll remember that" are none. A proposal is a
statement about the speaker that lasts; a question, a supposition, a courtesy or a story about others is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edge.admission.tiers.orders import order
from edge.admission.tiers.proposals import proposal
from edge.admission.tiers.speech import own_words
from edge.types import DEFAULT_KIND, NOTE_KIND, MemoryState, Turn

EXPLICIT_WEIGHT = 5.0
# Health and who one is: what it hurts most to get wrong.
GRAVE_WEIGHT = 2.0
# Said three times in all, or recalled five times to some use, a candidate is taken for known: once may be a mood, and
# twice a coincidence; what recalls keep bringing up is being used as known already.
REPEATS, RECALLS = 3, 5

RULES: Mapping[str, str] = MappingProxyType(
    {
        "written": "Given to the box to be remembered, by a client or the owner.",
        "remember": "An order to remember: 记住, 帮我记一下, 别忘了, remember that, note that, keep in mind.",
        "from now on": "An order for all the time to come: 以后都, 以后不要, 从现在起, from now on, always, never.",
        "health": "What the speaker cannot have or must take: allergies, diets, illnesses.",
        "name": "What the speaker, a member of the family or a pet is called.",
        "person": "Age, birthday, body, work and family of the speaker.",
        "place": "Where the speaker lives, and how to reach them.",
        "preference": "What the speaker likes, dislikes or is used to.",
        "decision": "What was decided: 我们决定, 定了用, let's go with.",
        "plan": "Something with a date that is to come.",
        "project": "A fact about a project: what it uses, where it runs, when it is due.",
        "": "None of these: kept for a while.",
    }
)
_KINDS = {"preference": "preference", "health": "preference", "decision": "decision", "plan": "plan", "project": "fact"}
# Those that the box gives by itself. Any other kind is one that somebody chose.
KINDS = frozenset((*_KINDS.values(), "profile", NOTE_KIND, DEFAULT_KIND))
# What is longer was pasted, and the rest of it is no one's own words.
_LOOKED_AT = 10_000
_NOT_THE_USER = frozenset(("assistant", "ai", "model", "bot", "system", "tool", "developer", "document", "function"))


@dataclass(frozen=True, slots=True)
class Tier:
    """`rule` is a key of RULES. `said` are the words to be remembered, without the order to remember them."""

    state: MemoryState
    weight: float
    kind: str
    rule: str
    said: str


def tier(turn: Turn) -> Tier:
    """By the strongest thing that its first 10,000 characters say. Pure, and never raises."""
    if turn.state is MemoryState.CONFIRMED or turn.kind == NOTE_KIND:
        weight = turn.weight if turn.weight != 1.0 else EXPLICIT_WEIGHT
        return Tier(MemoryState.CONFIRMED, weight, turn.kind, "written", turn.text)
    if turn.role.strip().casefold() not in _NOT_THE_USER:
        own = own_words(turn.text[:_LOOKED_AT])
        if (found := order(own, turn.text)) is not None:
            rule, said = found
            kind = NOTE_KIND if turn.kind == DEFAULT_KIND else turn.kind
            return Tier(MemoryState.CONFIRMED, EXPLICIT_WEIGHT, kind, rule, said)
        if rule := proposal(own):
            kind = _KINDS.get(rule, "profile") if turn.kind == DEFAULT_KIND else turn.kind
            weight = GRAVE_WEIGHT if rule in ("health", "name") else 1.0
            return Tier(MemoryState.CANDIDATE, weight, kind, rule, turn.text)
    return Tier(MemoryState.TEMPORARY, 1.0, turn.kind, "", turn.text)


def promote(recalls: int, repeats: int) -> bool:
    """Whether a candidate is known by now. `recalls` are those that brought it up where it was wanted, `repeats` how
    often it was said, the first time included."""
    return repeats >= REPEATS or recalls >= RECALLS
