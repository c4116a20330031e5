"""What can change about a memory, and how a change is taken back; never a word of what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, cast, overload

from edge.types import Memory, MemoryState, Micros

# Why memories were changed, as the log has it. A later version may have more, so it is a plain string.
CONFIRMED, REJECTED, PROMOTED = "confirmed", "rejected", "promoted"
MERGED, REPLACED = "merged", "replaced"
ARCHIVED, RESTORED = "archived", "restored"
WEIGHTED, UNDONE = "weighted", "undone"
# Hidden until it is erased; see erase.hide.
FORGOTTEN = "forgotten"
# Moved to the cold file; see ledger.cold.
COOLED = "cooled"
REASONS = (CONFIRMED, REJECTED, PROMOTED, MERGED, REPLACED, ARCHIVED, RESTORED, WEIGHTED, UNDONE, FORGOTTEN, COOLED)
# Revision.by of what nobody asked for.
RULE = "rule"
# FailedPrecondition.reason of what cannot be undone.
NOT_UNDOABLE = "NOT_UNDOABLE"

_MAX_COUNT = 2**53
_MAX_WEIGHT = 10.0


class Fields(TypedDict, total=False):
    """Those of a memory's fields that a change is about; each is an attribute of Memory."""

    state: MemoryState
    weight: float
    archived: bool
    replaced_by: str | None
    valid_from: Micros | None
    valid_until: Micros | None
    access_count: int
    accessed_at: Micros


FIELDS = tuple(Fields.__annotations__)


class Change(NamedTuple):
    """Of one memory: what the fields were, and what they are to be. Both have the same keys."""

    id: str
    before: Fields
    after: Fields


@dataclass(frozen=True, slots=True)
class Alike(Sequence[Change]):
    """The same change of many memories. The log and the tables have its fields once, and a sweep of a hundred thousand
    makes no object a memory."""

    ids: Sequence[str]
    before: Fields
    after: Fields

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Change: ...
    @overload
    def __getitem__(self, place: slice) -> Alike: ...
    def __getitem__(self, place: int | slice) -> Change | Alike:
        if isinstance(place, slice):
            return Alike(self.ids[place], self.before, self.after)
        return Change(self.ids[place], self.before, self.after)

    def __iter__(self) -> Iterator[Change]:
        return (Change(id, self.before, self.after) for id in self.ids)


@dataclass(frozen=True, slots=True)
class Revision:
    """One event of the log that changed memories. `by` is "owner", a client's name, or "rule"."""

    n: int
    at: Micros
    id: str
    why: str
    by: str
    changes: Sequence[Change]
    # The revision that this one took back; and the one that took this one back, if it is so at present.
    undoes: str = ""
    undone_by: str = ""


def change(memory: Memory, **after: Any) -> Change:
    """From a memory as it is to `after`, keywords of Fields. What is so already is left out; all of it, perhaps.

    A rejected memory is archived by that, so that whatever keeps archived ones out keeps it out too.
    """
    if after.get("state") is MemoryState.REJECTED:
        after = {"archived": True, **after}
    different = {name: value for name, value in after.items() if getattr(memory, name) != value}
    return Change(memory.id, _fields({name: getattr(memory, name) for name in different}), _fields(different))


def check(changed: Change) -> Change:
    """The change, if it can be written. Raises ValueError: whoever planned it is wrong."""
    if changed.before.keys() != changed.after.keys() or not changed.after:
        raise ValueError("a change must name the same fields before and after, one at least")
    for fields in (changed.before, changed.after):
        if decoded(encoded(fields)) != fields:
            raise ValueError("a change has a field or a value that the log cannot hold")
    return changed


def packed(changes: Sequence[Change]) -> Any:
    """As JSON has them: (id, before, after) of each, or the fields once and the ids. Raises ValueError, see `check`."""
    if isinstance(changes, Alike):
        check(Change("", changes.before, changes.after))
        return {"before": encoded(changes.before), "after": encoded(changes.after), "memories": list(changes.ids)}
    return [[one.id, encoded(one.before), encoded(one.after)] for one in map(check, changes)]


def unpacked(raw: Any) -> Sequence[Change]:
    """Raises ValueError, KeyError or TypeError for what `packed` has not made."""
    changes: Sequence[Change]
    if isinstance(raw, dict):
        changes = Alike(tuple(raw["memories"]), decoded(raw["before"]), decoded(raw["after"]))
        if not all(isinstance(id, str) for id in changes.ids):
            raise ValueError("memories have ids")
    else:
        changes = tuple(Change(id, decoded(before), decoded(after)) for id, before, after in raw)
    if any(one.before.keys() != one.after.keys() for one in (changes[:1] if isinstance(raw, dict) else changes)):
        raise ValueError("the same fields before and after")
    return changes


def inverse(changes: Sequence[Change], now: Mapping[str, Memory]) -> list[Change]:
    """What takes these changes back, given the memories as they are now; those that are erased are passed over.

    A field goes back if it is still as the changes left it; one that is as it was before is left alone. Recalls go on
    meanwhile, so of counts the difference is taken off. Raises Conflict where a field was changed again since.
    """
    found = []
    for done in changes:
        memory = now.get(done.id)
        if memory is None:
            continue
        if memory.state is MemoryState.COLD and "state" not in done.before:
            # It would stay where nothing finds it, and be said to be back.
            raise Conflict(done.id)
        back: dict[str, Any] = {}
        for name, was in done.before.items():
            left: Any = done.after.get(name)
            current = getattr(memory, name)
            if name == "access_count":
                back[name] = max(0, current - (left - was))
            elif current == left:
                back[name] = was
            elif current != was and name != "accessed_at":
                raise Conflict(done.id)
        taken = change(memory, **back)
        if taken.after:
            found.append(taken)
    return found


class Conflict(Exception):  # named like what it says, as edge.errors has it
    """A memory was changed again since; `memory` is its id."""

    def __init__(self, memory: str) -> None:
        super().__init__(f"memory {memory} was changed again since")
        self.memory = memory


def encoded(fields: Fields) -> dict[str, Any]:
    """As JSON has it: the state by its name, and always in the same order."""
    raw: dict[str, Any] = {name: fields[name] for name in FIELDS if name in fields}  # type: ignore[literal-required]  # names of Fields
    return {name: value.name.lower() if isinstance(value, MemoryState) else value for name, value in raw.items()}


def decoded(raw: Mapping[str, Any]) -> Fields:
    """Fields of a later version are passed over. Raises ValueError, KeyError or TypeError for what is no such field."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        if name in raw:
            value = raw[name]
            found[name] = MemoryState[value.upper()] if name == "state" else value
            if not _sound(name, found[name]):
                raise ValueError(f"{name} has no such value")
    return _fields(found)


def _sound(name: str, value: object) -> bool:
    if name == "state":
        return isinstance(value, MemoryState)
    if name == "archived":
        return isinstance(value, bool)
    if name == "replaced_by":
        return value is None or (isinstance(value, str) and bool(value))
    if isinstance(value, bool):
        return False
    if name == "weight":
        return isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= _MAX_WEIGHT
    if value is None:
        return name in ("valid_from", "valid_until")
    return isinstance(value, int) and 0 <= value < _MAX_COUNT


def _fields(values: Mapping[str, Any]) -> Fields:
    return cast(Fields, dict(values))
