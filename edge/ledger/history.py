"""What was done to memories, as the tables have it: which revisions there were, and what turns were handed in."""

# ruff: noqa: S608  # statements are put together from constants and question marks

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edge.ledger.revisions import FORGOTTEN, MERGED, REPLACED, RESTORED, Change, Revision, change, unpacked
from edge.ledger.rows import COLUMNS, REJECTED, SUPERSEDED, UNFOUND_STATES
from edge.ledger.rows import FORGOTTEN as HIDDEN
from edge.ledger.rows import memory as from_row
from edge.types import Memory, MemoryState, Micros

# Deed.why of a turn that was handed in.
SAID = "said"
_REVISION = "SELECT n, at, id, why, by, changes, undoes, undone_by FROM revisions"
# A turn by its first memory. Its newest version stands for all.
_TURN = (
    "SELECT t.n, t.at, t.by, m.id, (SELECT count(*) FROM turns o "
    "WHERE o.source = t.source AND o.session = t.session AND o.seq = t.seq AND o.n < t.n) "
    f"FROM turns t JOIN memories m ON m.turn_n = t.n AND m.piece = 0 AND m.state <> {HIDDEN}"
)


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that somebody did here and may want back: a revision, or the handing in of a turn.

    `id` is the revision's, or that of the turn's first memory. `versions` are the older ones that the turn took the
    place of; `erased` says that a forget was carried out for good.
    """

    n: int
    at: Micros
    id: str
    why: str
    by: str
    memory_ids: tuple[str, ...]
    undoes: str = ""
    undone_by: str = ""
    versions: int = 0
    erased: bool = False


def revision(connection: sqlite3.Connection, id: str) -> Revision | None:
    row = connection.execute(f"{_REVISION} WHERE id = ?", (id,)).fetchone()
    return _revision(row) if row else None


def deed(connection: sqlite3.Connection, id: str) -> Deed | None:
    """What this id names: a revision, a forget that was carried out, or any memory for its turn."""
    found = revision(connection, id)
    if found is not None:
        return _of_revision(connection, found)
    row = connection.execute("SELECT n, at FROM forgets WHERE id = ?", (id,)).fetchone()
    if row:
        return Deed(row[0], row[1], id, FORGOTTEN, "", (), erased=True)
    row = connection.execute(f"{_TURN} WHERE t.n = (SELECT turn_n FROM memories WHERE id = ?)", (id,)).fetchone()
    return _of_turn(row) if row else None


def latest(connection: sqlite3.Connection, limit: int, by: str | None = None) -> list[Deed]:
    """The newest first; of one author, where one is named. Older versions of a turn are not among them."""
    # A parameter that is NULL names no author.
    rows = connection.execute(f"{_REVISION} WHERE by = ifnull(?, by) ORDER BY n DESC LIMIT ?", (by, limit)).fetchall()
    found = [_of_revision(connection, _revision(row)) for row in rows]
    turns = f"{_TURN} WHERE t.superseded_by IS NULL AND t.by = ifnull(?, t.by) ORDER BY t.n DESC LIMIT ?"
    found += [_of_turn(row) for row in connection.execute(turns, (by, limit))]
    return sorted(found, key=lambda one: -one.n)[:limit]


def hidden(connection: sqlite3.Connection, until: Micros) -> list[Revision]:
    """The forgets of before `until` that hid memories, were not undone, and are still to be carried out."""
    rows = connection.execute(
        f"{_REVISION} r WHERE why = 'forgotten' AND undone_by = '' AND at <= ? "
        "AND NOT EXISTS (SELECT 1 FROM forgets f WHERE f.id = r.id) ORDER BY n",
        (until,),
    )
    return [_revision(row) for row in rows.fetchall()]


def later_change(connection: sqlite3.Connection, memory: str, n: int) -> Revision | None:
    """The newest revision of a memory behind event `n` that is not undone."""
    row = connection.execute(
        f"{_REVISION} WHERE n IN (SELECT n FROM revised WHERE memory = ? AND n > ?) AND undone_by = '' "
        "ORDER BY n DESC LIMIT 1",
        (memory, n),
    ).fetchone()
    return _revision(row) if row else None


def relinks(connection: sqlite3.Connection, going: Mapping[str, Memory], behind: Iterable[Memory]) -> list[Change]:
    """What becomes of the memories `behind` those that are forgotten, and took their place: what took the place of
    those in turn, if anything did, stands for them; else they are again what they were before."""
    found = []
    for memory in behind:
        if memory.id in going or memory.state is MemoryState.FORGOTTEN:
            continue
        newer = memory.replaced_by
        seen: set[str] = set()
        while newer is not None and newer in going and newer not in seen:
            seen.add(newer)
            newer = going[newer].replaced_by
        if newer and newer not in going:
            found.append(change(memory, replaced_by=newer))
        else:
            found.append(change(memory, **_before_replaced(connection, memory)))
    return [one for one in found if one.after]


def stranded(connection: sqlite3.Connection, limit: int) -> list[Change]:
    """What becomes of memories whose place another took that holds no more, since a newer version of its turn came, or
    since it contradicted them and was rejected: they are again what they were, unless somebody undid that."""
    why = (
        "(SELECT r.why FROM revised v JOIN revisions r ON r.n = v.n WHERE v.memory = m.id "
        f"AND r.why IN ('{MERGED}', '{REPLACED}') AND r.undone_by = '' ORDER BY v.n DESC LIMIT 1)"
    )
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM memories m INDEXED BY memories_replaced JOIN memories o ON o.id = m.replaced_by "
        f"WHERE m.replaced_by IS NOT NULL AND m.state = {SUPERSEDED} "
        f"AND (o.state = {SUPERSEDED} AND o.replaced_by IS NULL OR o.state = {REJECTED} AND {why} = '{REPLACED}') "
        "AND NOT EXISTS (SELECT 1 FROM revised v JOIN revisions r ON r.n = v.n "
        f"WHERE v.memory = m.id AND r.why = '{RESTORED}' AND r.undone_by <> '') LIMIT ?",
        (limit,),
    ).fetchall()
    return [change(one, **_before_replaced(connection, one)) for one in map(from_row, rows)]


def _before_replaced(connection: sqlite3.Connection, memory: Memory) -> dict[str, Any]:
    rows = connection.execute(
        f"{_REVISION} WHERE n IN (SELECT n FROM revised WHERE memory = ?) ORDER BY n DESC", (memory.id,)
    ).fetchall()
    before: dict[str, Any] = {}
    newer = memory.replaced_by
    for row in rows:
        ours = next(one for one in _revision(row).changes if one.id == memory.id)
        if ours.after.get("replaced_by") != newer:
            continue
        if "state" in ours.before:
            before = {name: value for name, value in ours.before.items() if name in ("state", "valid_until")}
            break
        # A forget only led it on from one that went; what it was before stands further back.
        newer = ours.before["replaced_by"]
    if before.get("state", MemoryState.SUPERSEDED) in UNFOUND_STATES:
        before["state"] = MemoryState.TEMPORARY
    return {"valid_until": None, **before, "replaced_by": None}


def _revision(row: tuple[Any, ...]) -> Revision:
    n, at, id, why, by, changes, undoes, undone_by = row
    return Revision(n, at, id, why, by, unpacked(json.loads(changes)), undoes, undone_by)


def _of_revision(connection: sqlite3.Connection, found: Revision) -> Deed:
    erased = False
    if found.why == FORGOTTEN:
        erased = connection.execute("SELECT 1 FROM forgets WHERE id = ?", (found.id,)).fetchone() is not None
    ids = tuple(one.id for one in found.changes)
    return Deed(found.n, found.at, found.id, found.why, found.by, ids, found.undoes, found.undone_by, erased=erased)


def _of_turn(row: tuple[Any, ...]) -> Deed:
    n, at, by, id, versions = row
    return Deed(n, at, id, SAID, by, (id,), versions=versions)
