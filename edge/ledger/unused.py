"""Which memories nobody used for long, and which of them were put away by themselves: reading for the decay."""

# ruff: noqa: S608  # statements are put together from constants

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from edge.ledger import writes
from edge.ledger.database import Database
from edge.ledger.revisions import RULE, Alike, unpacked
from edge.ledger.rows import REJECTED, UNFOUND
from edge.types import Micros

# The expression of the index memories_used, letter by letter: SQLite uses the index for nothing else.
_USED = "max(occurred_at, created_at, accessed_at)"

# (kind, state, weight, access_count): what decides how a memory fades.
Nature = tuple[str, int, float, int]
# A nature, and behind it the memory's id and when it was used.
Use = tuple[str, int, float, int, str, Micros]


class Uses(NamedTuple):
    """Memories of one nature, and when each was used."""

    nature: Nature
    ids: list[str]
    used: list[Micros]


class Unused:
    """Of one space; safe from any thread, never waiting for a writer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def at_hand(self, until: Micros) -> list[int]:
        """The rowids of what is at hand and was last used then or before."""
        with self._database.reader() as connection:
            return writes.numbers(
                connection,
                f"SELECT rowid FROM memories WHERE {_USED} <= ? AND archived = 0 AND state NOT IN {UNFOUND} "
                "ORDER BY rowid",
                (until,),
            )

    def cold(self, until: Micros) -> list[int]:
        """The turns of which something in the archive was never recalled, and last used then or before."""
        with self._database.reader() as connection:
            return writes.numbers(
                connection,
                f"SELECT DISTINCT turn_n FROM memories WHERE archived = 1 AND state NOT IN {UNFOUND} "
                f"AND state <> {REJECTED} AND access_count = 0 AND {_USED} <= ? ORDER BY turn_n",
                (until,),
            )

    def whole(self, turns: Sequence[int]) -> dict[int, list[Use]]:
        """Of these turns all memories. Left out are turns with older versions or a newer one, and those of which a
        memory is at hand, was rejected, or took another's place or left its own."""
        with self._database.reader() as connection:
            rows = connection.execute(
                f"SELECT turn_n, archived = 1 AND state NOT IN {UNFOUND} AND state <> {REJECTED} "
                "AND replaced_by IS NULL AND NOT EXISTS (SELECT 1 FROM memories o WHERE o.replaced_by = memories.id) "
                "AND 1 = (SELECT count(*) FROM turns t JOIN turns v ON v.source = t.source AND v.session = t.session "
                "AND v.seq = t.seq WHERE t.n = turn_n), "
                f"kind, state, weight, access_count, id, {_USED} FROM memories "
                "WHERE turn_n IN (SELECT value FROM json_each(?))",
                (json.dumps(turns),),
            ).fetchall()
        found: dict[int, list[Use]] = {}
        for turn, _, *use in rows:
            found.setdefault(turn, []).append(tuple(use))
        for turn, sole, *_ in rows:
            if not sole:
                found.pop(turn, None)
        return found

    def archived(self) -> list[int]:
        """The rowids of what is in the archive and was not rejected."""
        with self._database.reader() as connection:
            return writes.numbers(
                connection,
                f"SELECT rowid FROM memories WHERE archived = 1 AND state NOT IN {UNFOUND} AND state <> {REJECTED} "
                "ORDER BY rowid",
            )

    def uses(self, rowids: Sequence[int], *, archived: bool) -> list[Uses]:
        """Of those that are still in the archive, or still at hand; of the living and not rejected alone."""
        with self._database.reader() as connection:
            # A row a nature and not a memory; see writes.numbers.
            rows = connection.execute(
                f"SELECT kind, state, weight, access_count, json_group_array(id), json_group_array({_USED}) "
                # The plus keeps SQLite from going through all that is archived.
                "FROM memories WHERE rowid IN (SELECT value FROM json_each(?)) AND +archived = ? "
                f"AND state NOT IN {UNFOUND} AND state <> {REJECTED} GROUP BY kind, state, weight, access_count",
                (json.dumps(rowids), archived),
            ).fetchall()
        return [Uses(tuple(nature), json.loads(ids), json.loads(used)) for *nature, ids, used in rows]

    def tended(self, ids: Sequence[str]) -> dict[str, Micros]:
        """When somebody last had a hand in a memory, or took back what the rule did with it; of those of which that is
        so. To bring a memory back is to use it."""
        with self._database.reader() as connection:
            return dict(
                connection.execute(
                    "SELECT r.memory, max(v.at) FROM revised r JOIN revisions v ON v.n = r.n "
                    "WHERE r.memory IN (SELECT value FROM json_each(?)) AND v.by <> ? GROUP BY r.memory",
                    (json.dumps(ids), RULE),
                ).fetchall()
            )

    def put_away(self, ids: Sequence[str]) -> set[str]:
        """Those of these archived memories that the rule put there, and nobody else."""
        undecided = set(ids)
        found: set[str] = set()
        with self._database.reader() as connection:
            revisions = connection.execute(
                "SELECT n, json_group_array(memory) FROM revised WHERE memory IN (SELECT value FROM json_each(?)) "
                "GROUP BY n ORDER BY n DESC",
                (json.dumps(ids),),
            ).fetchall()
            for n, named in revisions:
                if not undecided:
                    break
                decided = undecided.intersection(json.loads(named))
                if not decided:
                    continue
                by_rule, moved = _moving(connection, n)
                decided.intersection_update(moved)
                undecided -= decided
                if by_rule:
                    found |= decided
        return found


def _moving(connection: sqlite3.Connection, n: int) -> tuple[bool, Sequence[str]]:
    """Whether the rule made this revision, and which memories it archived or brought back."""
    by, raw = connection.execute("SELECT by, changes FROM revisions WHERE n = ?", (n,)).fetchone()
    changes = unpacked(json.loads(raw))
    if isinstance(changes, Alike):
        return by == RULE, changes.ids if "archived" in changes.after else ()
    return by == RULE, [one.id for one in changes if "archived" in one.after]
