"""What was said beside a memory: the pieces of its turn, and the turns of its session."""

# ruff: noqa: S608  # statements are put together from constants and question marks

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from edge.ledger.rows import UNFOUND, marks

_BESIDE = """
SELECT m.rowid, m.turn_n, m.piece, m.pieces,
    (SELECT p.n FROM turns p WHERE p.source = t.source AND p.session = t.session AND p.seq < t.seq
        AND p.superseded_by IS NULL ORDER BY p.seq DESC LIMIT 1),
    (SELECT p.n FROM turns p WHERE p.source = t.source AND p.session = t.session AND p.seq > t.seq
        AND p.superseded_by IS NULL ORDER BY p.seq LIMIT 1)
FROM memories m JOIN turns t ON t.n = m.turn_n WHERE m.rowid IN ({})
"""


def around(connection: sqlite3.Connection, rowids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """For each of these memories (500 at most) that is there: those next to it that are neither superseded nor
    archived, in the order in which they were said."""
    rows = connection.execute(_BESIDE.format(marks(len(rowids))), tuple(rowids)).fetchall()
    turns = sorted({n for _, turn, _, _, before, after in rows for n in (turn, before, after) if n is not None})
    pieces: dict[tuple[int, int], int] = {}
    last: dict[int, int] = {}
    for start in range(0, len(turns), 500):
        part = turns[start : start + 500]
        for rowid, turn, piece in connection.execute(
            f"SELECT rowid, turn_n, piece FROM memories WHERE turn_n IN ({marks(len(part))}) "
            f"AND state NOT IN {UNFOUND} AND archived = 0",
            part,
        ):
            pieces[turn, piece] = rowid
            last[turn] = max(piece, last.get(turn, 0))
    found: dict[int, tuple[int, ...]] = {}
    for rowid, turn, piece, count, before, after in rows:
        earlier = (turn, piece - 1) if piece else (before, last.get(before, 0))
        later = (turn, piece + 1) if piece + 1 < count else (after, 0)
        found[rowid] = tuple(pieces[key] for key in (earlier, later) if key in pieces)
    return found
