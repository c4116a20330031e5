"""What is made of one kept memory: merged with those that say the same, put in the place of what it contradicts,
promoted when it was said or recalled often enough.

Only candidates and confirmed memories take part. What is temporary is the verbatim stream, which fades by itself.
Everything is a revision by "rule", one a pair, so that each can be undone alone; and what was undone, or decided by
the owner, is never done again: a memory that was brought back stays, and a candidate that was left one stays one.

Each pair is looked at from both sides, whichever has its vector first, and "older" goes by when it was said. So which
memories are left does not depend on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Protocol

from edge.admission.merge import CHANGE_MARGIN, Relation, merge_at, merged_access, merged_weight, relate
from edge.admission.tiers import KINDS, REPEATS, promote
from edge.index.several import Indexes
from edge.ledger.merges import KEPT
from edge.ledger.queries import Queries
from edge.ledger.revisions import MERGED, PROMOTED, REPLACED, RULE, Change, Revision, change
from edge.recall.zones import zone
from edge.types import Memory, MemoryState, Micros

# Of the nearest in the index most are of the stream; of those that are kept, so many are read.
_NEAREST = 64
_NEIGHBOURS = 8


class History(Protocol):
    """See ledger.merges."""

    def kept(self, rowids: Sequence[int]) -> dict[int, Memory]: ...
    def times_said(self, id: str, most: int) -> int: ...
    def left_candidate(self, id: str) -> bool: ...
    def brought_back(self, id: str) -> bool: ...
    def known_by_rule(self, id: str) -> bool: ...


class Revisions(Protocol):
    """See ledger.revising."""

    def revise(self, plan: Callable[[Queries], Sequence[Change]], why: str, by: str) -> Revision | None: ...
    def bring_back(self) -> Revision | None: ...


class Kept(Protocol):
    """A space, as far as the rules see it."""

    @property
    def merges(self) -> History: ...
    @property
    def revisions(self) -> Revisions: ...
    @property
    def queries(self) -> Queries: ...
    @property
    def indexes(self) -> Indexes: ...


def look(space: Kept, memory: Memory) -> bool:
    """Does what the rules say of this memory and those near it; whether anything was changed. Blocks.

    What was changed is to be looked at again, if it is still there: there may be more. Raises what the ledger raises.
    """
    changed = False
    for older, newer, relation in _related(space, memory):
        if _carry_out(space, older, newer, relation):
            changed = True
            if older.id == memory.id:
                # Another has its place now, and the rest is that one's.
                return True
    return changed or _promote(space, memory)


def _related(space: Kept, memory: Memory) -> Iterator[tuple[Memory, Memory, Relation]]:
    """(older, newer, relation) of the memory with those near it: first what is older than it, then the nearest."""
    cosines: dict[int, list[tuple[str, float]]] = {}
    # Models differ in what is near; how far it is from the same tells.
    nearest = sorted(
        space.indexes.near(space.queries, memory.rowid, _NEAREST), key=lambda found: merge_at(found[0]) - found[2]
    )
    for model, rowid, cosine in nearest:
        if rowid != memory.rowid and cosine >= merge_at(model) - CHANGE_MARGIN:
            cosines.setdefault(rowid, []).append((model, cosine))
    kept = space.merges.kept(list(cosines)) if cosines else {}
    others = [kept[rowid] for rowid in cosines if rowid in kept and _may_meet(kept[rowid], memory)][:_NEIGHBOURS]
    for other in sorted(others, key=lambda one: _said(one) > _said(memory)):
        older, newer = sorted((other, memory), key=_said)
        relation = _relation(older, newer, cosines[other.rowid])
        if relation is not Relation.APART:
            yield older, newer, relation


def _said(memory: Memory) -> tuple[Micros, int]:
    return memory.occurred_at, memory.rowid


def _may_meet(one: Memory, other: Memory) -> bool:
    """What two speakers say of themselves are two things, and what one turn says is one thing in parts."""
    if (one.source, one.session, one.seq) == (other.source, other.session, other.seq):
        return False
    return one.role.strip().casefold() == other.role.strip().casefold()


def _relation(older: Memory, newer: Memory, cosines: Sequence[tuple[str, float]]) -> Relation:
    """By whichever model sees more in it."""
    same_day = _day(older.occurred_at) == _day(newer.occurred_at)
    found = {relate(older.text, newer.text, cosine, merge_at(model), same_day=same_day) for model, cosine in cosines}
    return next((one for one in (Relation.SAME, Relation.CONTRADICTS) if one in found), Relation.APART)


def _day(moment: Micros) -> date:
    """In the box's own zone: that of the household whose words these are."""
    return datetime.fromtimestamp(moment // 1_000_000, zone("")).date()


def _carry_out(space: Kept, older: Memory, newer: Memory, relation: Relation) -> bool:
    def plan(queries: Queries) -> Sequence[Change]:
        # Nothing else is revised or forgotten while this runs; what was, since they were found, shows here.
        now = queries.by_ids([older.id, newer.id])
        was, becomes = now.get(older.id), now.get(newer.id)
        if was is None or becomes is None or not (_takes_part(was) and _takes_part(becomes)):
            return []
        if space.merges.brought_back(was.id):
            return []
        if relation is Relation.SAME:
            return merged(was, becomes)
        return replaced(was, becomes) if _as_firm(space.merges, was, becomes) else []

    same = relation is Relation.SAME
    if space.revisions.revise(plan, MERGED if same else REPLACED, RULE) is None:
        return False
    if same:
        # It may have been looked at long ago, when it was not yet said so often.
        _promote(space, newer)
    return True


def _takes_part(memory: Memory) -> bool:
    return memory.state in KEPT and not memory.archived


def _as_firm(history: History, older: Memory, newer: Memory) -> bool:
    """Whether what is newer may contradict the older away: a proposal does not contradict what is known, nor what only
    a rule takes for known what its owner said or confirmed."""
    if older.state is MemoryState.CANDIDATE:
        return True
    if newer.state is MemoryState.CANDIDATE:
        return False
    return not history.known_by_rule(newer.id) or history.known_by_rule(older.id)


def merged(older: Memory, newer: Memory) -> list[Change]:
    """The newer stands for both, as firmly, and for as long. Nothing, where a tag or a chosen kind would be lost:
    changes hold no words.

    Pure.
    """
    if not set(older.tags) <= set(newer.tags) or older.kind not in (KINDS | {newer.kind}):
        return []
    count, last = merged_access((older.access_count, older.accessed_at), (newer.access_count, newer.accessed_at))
    since = newer.valid_from
    if older.valid_from is not None or since is not None:
        since = min(_since(older), _since(newer))
    carried = change(
        newer,
        state=max(older.state, newer.state),
        weight=merged_weight(older.weight, newer.weight),
        access_count=count,
        accessed_at=last,
        valid_from=since,
    )
    return [_superseded(older, newer), carried]


def _since(memory: Memory) -> Micros:
    return memory.occurred_at if memory.valid_from is None else memory.valid_from


def replaced(older: Memory, newer: Memory) -> list[Change]:
    """What the older says held until the newer was said. Pure."""
    return [_superseded(older, newer), change(newer, valid_from=_since(newer))]


def _superseded(older: Memory, newer: Memory) -> Change:
    return change(older, state=MemoryState.SUPERSEDED, replaced_by=newer.id, valid_until=newer.occurred_at)


def _promote(space: Kept, memory: Memory) -> bool:
    if memory.state is not MemoryState.CANDIDATE or not _often(space.merges, memory):
        return False

    def plan(queries: Queries) -> Sequence[Change]:
        now = queries.by_ids([memory.id]).get(memory.id)
        if now is None or now.state is not MemoryState.CANDIDATE or now.archived or not _often(space.merges, now):
            return []
        return [] if space.merges.left_candidate(now.id) else [change(now, state=MemoryState.CONFIRMED)]

    return space.revisions.revise(plan, PROMOTED, RULE) is not None


def _often(history: History, memory: Memory) -> bool:
    return promote(memory.access_count, history.times_said(memory.id, REPEATS))
