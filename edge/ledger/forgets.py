"""What a forget takes, and which forgets are still under way: reading for edge.ledger.erase."""

# ruff: noqa: S608  # statements are put together from constants, column names and question marks

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from edge.ledger import writes
from edge.ledger.rows import COLD, FORGOTTEN, SUPERSEDED, UNFOUND, UNFOUND_STATES, marks, narrowing
from edge.types import Filter, MemoryState, Micros

_T = TypeVar("_T")
_CHUNK = 500
_CANDIDATE = int(MemoryState.CANDIDATE)
# Replaced memories, and those in the cold file, may be named by what they are. Older versions of a turn go with the
# newest, and by its name only.
_NAMED = f"(m.state NOT IN {UNFOUND} OR m.state = {COLD} OR (m.state = {SUPERSEDED} AND m.replaced_by IS NOT NULL))"


@dataclass(frozen=True, slots=True)
class Forgettable:
    """What a forget takes: whole turns, all their versions, all their memories."""

    turns: tuple[int, ...]
    memory_ids: tuple[str, ...]
    rowids: tuple[int, ...]
    vectors: int
    # Of the ids asked for, those that name no memory.
    unknown: tuple[str, ...]
    words: int = 0
    candidates: int = 0
    revisions: int = 0


def forgettable(
    connection: sqlite3.Connection, ids: Sequence[str], filter: Filter | None, *, history: bool, hidden: bool
) -> Forgettable:
    """What forgetting these memories, and all that the filter names, takes away.

    A turn goes whole, since its line in the log holds all its words; and with all its versions. With `history`, so do
    the memories that those of `ids` were put in the place of: they say the same, or what it was before. A filter
    reaches archived and replaced memories too; those that are hidden already are named with `hidden` only.
    """
    turns: set[int] = set()
    known: set[str] = set()
    seen = "1" if hidden else f"state <> {FORGOTTEN}"
    wanted = [*ids, *_history(connection, ids)] if history else list(ids)
    for part in parts(wanted):
        sql = f"SELECT id, turn_n FROM memories WHERE {seen} AND id IN ({marks(len(part))})"
        for id, n in connection.execute(sql, part):
            known.add(id)
            turns.add(n)
    if filter is not None:
        where, values = _named(filter, hidden)
        turns.update(writes.numbers(connection, f"SELECT DISTINCT m.turn_n FROM memories m WHERE {where}", values))
    for n in sorted(turns):
        name = connection.execute("SELECT source, session, seq FROM turns WHERE n = ?", (n,)).fetchone()
        turns.update(writes.versions_of(connection, name) if name else ())
    return replace(of_turns(connection, turns), unknown=tuple(id for id in ids if id not in known))


def of_turns(connection: sqlite3.Connection, turns: Iterable[int]) -> Forgettable:
    """What forgetting exactly these turns takes away."""
    numbers = sorted(turns)
    memories: list[tuple[int, str, int]] = []
    for part in parts(numbers):
        sql = f"SELECT rowid, id, state FROM memories WHERE turn_n IN ({marks(len(part))}) ORDER BY rowid"
        memories += connection.execute(sql, part)
    vectors = 0
    models = writes.models(connection, "vectors")
    for rowids in parts([rowid for rowid, _, _ in memories]):
        for model in models:
            sql = f"SELECT count(*) FROM vectors WHERE model = ? AND memory IN ({marks(len(rowids))})"
            vectors += connection.execute(sql, (model, *rowids)).fetchone()[0]
    revisions: set[int] = set()
    for ids in parts([id for _, id, _ in memories]):
        revisions.update(
            writes.numbers(connection, f"SELECT DISTINCT n FROM revised WHERE memory IN ({marks(len(ids))})", ids)
        )
    return Forgettable(
        turns=tuple(numbers),
        memory_ids=tuple(id for _, id, _ in memories),
        rowids=tuple(rowid for rowid, _, _ in memories),
        vectors=vectors,
        unknown=(),
        # The keyword index holds the living and no other.
        words=sum(state not in UNFOUND_STATES for _, _, state in memories),
        candidates=sum(state == _CANDIDATE for _, _, state in memories),
        revisions=len(revisions),
    )


def turns_of(connection: sqlite3.Connection, ids: Sequence[str], state: MemoryState) -> set[int]:
    """The turns of those of these memories that are in this state."""
    found: set[int] = set()
    for part in parts(ids):
        sql = f"SELECT turn_n FROM memories WHERE state = {int(state)} AND id IN ({marks(len(part))})"
        found.update(writes.numbers(connection, sql, part))
    return found


def unfinished(connection: sqlite3.Connection) -> list[tuple[str, Micros, dict[int, str]]]:
    """(id, when, {turn: mark}) of each forget whose rows are gone, and whose traces may not be."""
    sql = "SELECT id, at FROM forgets WHERE done = 0 AND n <= (SELECT value FROM meta WHERE key = 'applied')"
    return [
        (id, at, dict(connection.execute("SELECT turn, mark FROM erased WHERE forget = ?", (id,)).fetchall()))
        for id, at in connection.execute(sql).fetchall()
    ]


def parts(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """As many at a time as one statement takes."""
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def _history(connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """All that these took the place of, and what that had taken the place of before."""
    found: dict[str, None] = {}
    newest = list(ids)
    while newest:
        older: dict[str, None] = {}
        for part in parts(newest):
            sql = f"SELECT id FROM memories WHERE replaced_by IN ({marks(len(part))})"
            older.update((id, None) for (id,) in connection.execute(sql, part))
        newest = [id for id in older if id not in found]
        found.update(older)
    return list(found)


def _named(filter: Filter, hidden: bool) -> tuple[str, list[object]]:
    which = f"({_NAMED} OR m.state = {FORGOTTEN})" if hidden else _NAMED
    clauses, values = narrowing(replace(filter, tags=()))
    if filter.states:
        clauses.append(f"m.state IN ({marks(len(filter.states))})")
        values += map(int, filter.states)
    for tag in filter.tags:
        # The index of tags has the living only.
        clauses.append(
            "(m.rowid IN (SELECT memory FROM tags WHERE tag = ?) OR "
            f"(m.state IN {UNFOUND} AND EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)))"
        )
        values += (tag, tag)
    return " AND ".join([which, *clauses]), values
