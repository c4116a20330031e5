"""What rules look at to merge, supersede and promote, and what the history says they must leave alone."""

# ruff: noqa: S608  # statements are put together from constants and question marks

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from edge.ledger.database import Database
from edge.ledger.revisions import CONFIRMED, MERGED, PROMOTED, REPLACED, RULE, Change, unpacked
from edge.ledger.rows import COLUMNS, marks, memory
from edge.types import Memory, MemoryState

# What is kept until somebody takes it back, of which alone rules make anything; in SQL these are the states (2, 3).
KEPT = (MemoryState.CANDIDATE, MemoryState.CONFIRMED)
# The memories that were merged into one, over all links of the chain, and itself.
_SAID = """
WITH RECURSIVE said (id) AS (
    SELECT ?
    UNION
    SELECT m.id FROM said s JOIN memories m ON m.replaced_by = s.id WHERE 'merged' = (
        SELECT r.why FROM revised v JOIN revisions r ON r.n = v.n
        WHERE v.memory = m.id AND r.why IN ('merged', 'replaced') AND r.undone_by = '' ORDER BY v.n DESC LIMIT 1
    )
)
"""
_OF_MEMORY = "SELECT why, changes FROM revisions WHERE n IN (SELECT n FROM revised WHERE memory = ?)"
_SETTLED = (
    "(EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.memory = m.rowid) "
    "OR EXISTS (SELECT 1 FROM refused r WHERE r.model = ? AND r.memory = m.rowid))"
)


class Merges:
    """Of one space; safe from any thread, and reading never waits for a writer.

    How far the rules have got is a query, not a list: a memory's row holds the state in which it was last looked at.
    So one that was confirmed since is looked at again, and a crash loses none. Tables that were made anew know nothing
    of it: then all is looked at again, and found to be as it should.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def unlooked(self, models: Sequence[str], limit: int) -> list[Memory]:
        """Kept memories that are still to be looked at, by rowid; only those of which every model has made a vector, or
        refused to."""
        settled = "".join(f"AND {_SETTLED} " for _ in models)
        with self._database.reader() as connection:
            rows = connection.execute(
                # As the index has it, word for word; without the index it would be slow, and an error is better.
                f"SELECT {COLUMNS} FROM memories m INDEXED BY memories_unlooked "
                f"WHERE state IN (2, 3) AND archived = 0 AND looked <> state {settled}ORDER BY m.rowid LIMIT ?",
                (*(name for model in models for name in (model, model)), limit),
            ).fetchall()
        return [memory(row) for row in rows]

    def note(self, looked: Mapping[int, MemoryState]) -> Future[None]:
        """These were looked at, by rowid, when they were in this state."""
        rows = [(int(state), rowid) for rowid, state in looked.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE memories SET looked = ? WHERE rowid = ?", rows)

        return self._database.submit(write)

    def kept(self, rowids: Sequence[int]) -> dict[int, Memory]:
        """Those of them, 500 at most, that are kept and not archived."""
        with self._database.reader() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM memories m "
                f"WHERE m.rowid IN ({marks(len(rowids))}) AND m.state IN (2, 3) AND m.archived = 0",
                rowids,
            ).fetchall()
        return {row[0]: memory(row) for row in rows}

    # What the history says. What was undone is what somebody did not want.

    def times_said(self, id: str, most: int) -> int:
        """How often this was said: what was merged into it, and itself. Counts up to `most`."""
        with self._database.reader() as connection:
            sql = f"{_SAID} SELECT count(*) FROM (SELECT 1 FROM said LIMIT ?)"
            return int(connection.execute(sql, (id, most)).fetchone()[0])

    def left_candidate(self, id: str) -> bool:
        """Whether somebody undid that this, or what was merged into it, was taken for known."""
        with self._database.reader() as connection:
            sql = (
                f"{_SAID} SELECT EXISTS (SELECT 1 FROM said s JOIN revised v ON v.memory = s.id "
                "JOIN revisions r ON r.n = v.n WHERE r.undone_by <> '' AND r.why IN (?, ?))"
            )
            return bool(connection.execute(sql, (id, PROMOTED, CONFIRMED)).fetchone()[0])

    def brought_back(self, id: str) -> bool:
        """Whether a rule put another memory in the place of this one, and somebody undid it."""
        with self._database.reader() as connection:
            rows = connection.execute(
                f"{_OF_MEMORY} AND undone_by <> '' AND by = ? AND why IN (?, ?)", (id, RULE, MERGED, REPLACED)
            ).fetchall()
        return any(one.id == id and "replaced_by" in one.after for row in rows for one in _changes(row))

    def known_by_rule(self, id: str) -> bool:
        """Of a confirmed memory: whether it is so by a rule's promotion alone, its own or that of what was merged into
        it. Else it was said or written to be remembered, or somebody confirmed it."""
        seen: set[str] = set()
        with self._database.reader() as connection:
            while id not in seen:
                seen.add(id)
                rows = connection.execute(
                    f"{_OF_MEMORY} AND undone_by = '' AND why IN (?, ?, ?) ORDER BY n DESC",
                    (id, CONFIRMED, PROMOTED, MERGED),
                ).fetchall()
                made = [row for row in rows if _confirms(row, id)]
                if not made:
                    return False
                if made[0][0] != MERGED:
                    return bool(made[0][0] == PROMOTED)
                # As firm as what was merged into it.
                id = next((one.id for one in _changes(made[0]) if one.after.get("replaced_by") == id), id)
        return True

    def counts(self) -> dict[str, int]:
        """How many revisions that hold merged, replaced or promoted a memory."""
        with self._database.reader() as connection:
            return dict(
                connection.execute(
                    "SELECT why, count(*) FROM revisions WHERE undone_by = '' AND why IN (?, ?, ?) GROUP BY why",
                    (MERGED, REPLACED, PROMOTED),
                ).fetchall()
            )


def _changes(row: tuple[str, str]) -> Sequence[Change]:
    return unpacked(json.loads(row[1]))


def _confirms(row: tuple[str, str], id: str) -> bool:
    return any(one.id == id and one.after.get("state") is MemoryState.CONFIRMED for one in _changes(row))
