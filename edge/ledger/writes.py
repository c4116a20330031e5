"""The statements that change the ledger's tables; each function runs inside a transaction of the writer thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from edge.ledger.events import Accesses, Erased, Forgotten, TurnSaid
from edge.ledger.rows import SUPERSEDED, marks

_CHUNK = 500


def say(connection: sqlite3.Connection, said: TurnSaid) -> None:
    """The turn's row; older versions of it know from now on what took their place."""
    turn = said.turn
    connection.execute(
        "UPDATE turns SET superseded_by = ? WHERE source = ? AND session = ? AND seq = ? AND n < ?",
        (said.n, turn.source, turn.session, turn.seq, said.n),
    )
    connection.execute(
        "INSERT OR REPLACE INTO turns (n, at, fingerprint, source, session, seq, role, occurred_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (said.n, said.at, said.fingerprint, turn.source, turn.session, turn.seq, turn.role, turn.occurred_at),
    )


def insert(connection: sqlite3.Connection, said: TurnSaid, first: int, terms: Sequence[str]) -> list[int]:
    """The memories of the pieces from `first` on, with their words; their rowids."""
    turn = said.turn
    tags = json.dumps(turn.tags, ensure_ascii=False)
    rowids: list[int] = []
    for place, piece in enumerate(said.pieces[first : first + len(terms)], first):
        cursor = connection.execute(
            "INSERT INTO memories (id, turn_n, piece, pieces, state, occurred_at, created_at, seq, weight, kind, "
            "source, session, role, tags, text, attributes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                piece.id,
                said.n,
                place,
                len(said.pieces),
                int(turn.state),
                turn.occurred_at,
                said.at,
                turn.seq,
                turn.weight,
                turn.kind,
                turn.source,
                turn.session,
                turn.role,
                tags,
                turn.text[piece.start : piece.end],
                turn.attributes,
            ),
        )
        assert cursor.lastrowid is not None
        rowids.append(cursor.lastrowid)
    connection.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", zip(rowids, terms, strict=True))
    connection.executemany(
        "INSERT OR IGNORE INTO tags (tag, memory) VALUES (?, ?)", ((tag, r) for r in rowids for tag in turn.tags)
    )
    return rowids


def supersede(connection: sqlite3.Connection, rowids: Sequence[int]) -> None:
    """A newer version took the place of these: nothing finds them any more, only their id."""
    _unfind(connection, rowids)
    connection.executemany(
        f"UPDATE memories SET state = {SUPERSEDED} WHERE rowid = ?",  # noqa: S608  # a constant number
        ((rowid,) for rowid in rowids),
    )


def delete(connection: sqlite3.Connection, rowids: Sequence[int]) -> None:
    """Nothing of these memories stays; `secure_delete` overwrites where they were."""
    _unfind(connection, rowids)
    connection.executemany("DELETE FROM memories WHERE rowid = ?", ((rowid,) for rowid in rowids))


def unsay(connection: sqlite3.Connection, turns: Iterable[int]) -> None:
    connection.executemany("DELETE FROM turns WHERE n = ?", ((n,) for n in turns))


def forget(connection: sqlite3.Connection, event: Forgotten) -> None:
    """The forget and its marks; its turns' rows go by `delete` and `unsay`."""
    connection.execute("INSERT OR IGNORE INTO forgets VALUES (?, ?, ?, 0)", (event.id, event.n, event.at))
    connection.executemany(
        "INSERT OR IGNORE INTO erased VALUES (?, ?, ?)",
        ((mark, n, event.id) for n, mark in zip(event.turns, event.marks, strict=True)),
    )


def remember_erased(connection: sqlite3.Connection, event: Erased) -> None:
    connection.execute("INSERT OR IGNORE INTO erased VALUES (?, ?, ?)", (event.mark, event.n, event.forget))


def count(connection: sqlite3.Connection, event: Accesses) -> None:
    """Totals only grow, so that an old checkpoint takes nothing away."""
    connection.executemany(
        "UPDATE memories SET access_count = max(access_count, ?), accessed_at = max(accessed_at, ?) WHERE id = ?",
        ((number, last, id) for id, (number, last) in event.counts.items()),
    )


def set_applied(connection: sqlite3.Connection, n: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = 'applied'", (n,))


def living(connection: sqlite3.Connection, rowids: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(rowids), _CHUNK):
        part = rowids[start : start + _CHUNK]
        found |= set(
            numbers(
                connection,
                f"SELECT rowid FROM memories WHERE state <> {SUPERSEDED} AND rowid IN ({marks(len(part))})",  # noqa: S608  # question marks
                part,
            )
        )
    return found


def memories_of(connection: sqlite3.Connection, turns: Sequence[int], *, superseded: bool) -> list[int]:
    """The rowids of these turns' memories; without the superseded ones unless asked for."""
    state = -1 if superseded else SUPERSEDED
    found: list[int] = []
    for start in range(0, len(turns), _CHUNK):
        part = turns[start : start + _CHUNK]
        found += numbers(
            connection,
            f"SELECT rowid FROM memories WHERE state <> ? AND turn_n IN ({marks(len(part))})",  # noqa: S608  # question marks
            (state, *part),
        )
    return found


def versions_of(connection: sqlite3.Connection, name: tuple[str, str, int]) -> list[int]:
    """The event numbers of every version of a turn, oldest first."""
    return numbers(connection, "SELECT n FROM turns WHERE source = ? AND session = ? AND seq = ? ORDER BY n", name)


def numbers(connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> list[int]:
    return [row[0] for row in connection.execute(sql, values)]


def models(connection: sqlite3.Connection, table: str) -> list[str]:
    """The models that have rows in `vectors` or `refused`, by one look into the index for each."""
    found: list[str] = []
    sql = f"SELECT min(model) FROM {table} WHERE model > ?"  # noqa: S608  # one of two constants
    model: str | None = connection.execute(sql, ("",)).fetchone()[0]
    while model is not None:
        found.append(model)
        model = connection.execute(sql, (model,)).fetchone()[0]
    return found


def _unfind(connection: sqlite3.Connection, rowids: Sequence[int]) -> None:
    for rowid in rowids:
        row = connection.execute("SELECT tags FROM memories WHERE rowid = ?", (rowid,)).fetchone()
        for tag in json.loads(row[0]) if row else ():
            connection.execute("DELETE FROM tags WHERE tag = ? AND memory = ?", (tag, rowid))
    connection.executemany("DELETE FROM words WHERE rowid = ?", ((rowid,) for rowid in rowids))
    for table in ("vectors", "refused"):
        for model in models(connection, table):
            connection.executemany(
                f"DELETE FROM {table} WHERE model = ? AND memory = ?",  # noqa: S608  # one of two constants
                ((model, rowid) for rowid in rowids),
            )
