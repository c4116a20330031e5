"""The statements that change the ledger's tables; each function runs inside a transaction of the writer thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edge.ledger.events import Accesses, Erased, Forgotten, Revised, Tallied, TurnSaid
from edge.ledger.revisions import Alike, Change, packed
from edge.ledger.rows import SUPERSEDED, UNFOUND, UNFOUND_STATES, marks

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Revisited:
    """Rowids that a revision took out of what can be found, and those that it brought back."""

    unfound: list[int]
    found: list[int]


def say(connection: sqlite3.Connection, said: TurnSaid) -> None:
    """The turn's row; older versions of it know from now on what took their place."""
    turn = said.turn
    connection.execute(
        "UPDATE turns SET superseded_by = ? WHERE source = ? AND session = ? AND seq = ? AND n < ?",
        (said.n, turn.source, turn.session, turn.seq, said.n),
    )
    connection.execute(
        "INSERT OR REPLACE INTO turns (n, at, fingerprint, source, session, seq, role, occurred_at, by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (said.n, said.at, said.fingerprint, turn.source, turn.session, turn.seq, turn.role, turn.occurred_at, turn.by),
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
    for start in range(0, len(rowids), _CHUNK):
        part = rowids[start : start + _CHUNK]
        connection.execute(
            f"DELETE FROM revised WHERE memory IN (SELECT id FROM memories WHERE rowid IN ({marks(len(part))}))",  # noqa: S608  # question marks
            part,
        )
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


def tally(connection: sqlite3.Connection, event: Tallied) -> None:
    """Adds up. To be run in the transaction that notes the event as applied: repeated, it would count twice."""
    connection.executemany(
        "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
        event.counts.items(),
    )


def note_revision(connection: sqlite3.Connection, event: Revised) -> None:
    """The revision itself, and what it says of the one that it takes back."""
    changes = json.dumps(packed(event.changes))
    connection.execute(
        "INSERT OR IGNORE INTO revisions (n, id, at, why, by, undoes, undone_by, changes) "
        "VALUES (?, ?, ?, ?, ?, ?, '', ?)",
        (event.n, event.id, event.at, event.why, event.by, event.undoes, changes),
    )
    if event.undoes:
        connection.execute("UPDATE revisions SET undone_by = ? WHERE id = ?", (event.id, event.undoes))
        # What an undone undo had taken back holds again.
        connection.execute(
            "UPDATE revisions SET undone_by = '' WHERE id = (SELECT undoes FROM revisions WHERE id = ?)",
            (event.undoes,),
        )


def revise(connection: sqlite3.Connection, n: int, changes: Sequence[Change], terms: Mapping[str, str]) -> Revisited:
    """Changes memories; one that is erased is passed over. May be repeated.

    `terms` by id, of those that are to be found again. A memory of a superseded version of its turn stays superseded.
    """
    unfound: list[int] = []
    found: list[int] = []
    if isinstance(changes, Alike) and "state" not in changes.after:
        _revise_alike(connection, n, changes)
        return Revisited(unfound, found)
    connection.executemany(
        "INSERT OR IGNORE INTO revised (memory, n) SELECT id, ? FROM memories WHERE id = ?",
        ((n, one.id) for one in changes),
    )
    # Those that move nothing in or out of what can be found, in as few statements as they have kinds.
    plain: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
    for one in changes:
        if "state" not in one.after:
            plain.setdefault(tuple(one.after), []).append((*one.after.values(), one.id))
    for names, rows in plain.items():
        connection.executemany(
            f"UPDATE memories SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",  # noqa: S608  # names of Fields
            rows,
        )
    for one in changes:
        if "state" not in one.after:
            continue
        row = connection.execute(
            "SELECT m.rowid, m.state, t.superseded_by IS NOT NULL, m.tags FROM memories m "
            "LEFT JOIN turns t ON t.n = m.turn_n WHERE m.id = ?",
            (one.id,),
        ).fetchone()
        if row is None:
            continue
        rowid, old, superseded, tags = row
        state = int(one.after["state"])
        if superseded and state not in UNFOUND_STATES:
            state = SUPERSEDED
        fields: dict[str, object] = {**one.after, "state": state}
        connection.execute(
            f"UPDATE memories SET {', '.join(f'{name} = ?' for name in fields)} WHERE rowid = ?",  # noqa: S608  # names of Fields
            (*fields.values(), rowid),
        )
        if state in UNFOUND_STATES and old not in UNFOUND_STATES:
            _unfind(connection, [rowid])
            unfound.append(rowid)
        elif state not in UNFOUND_STATES and old in UNFOUND_STATES:
            connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (rowid, terms.get(one.id, "")))
            connection.executemany(
                "INSERT OR IGNORE INTO tags (tag, memory) VALUES (?, ?)", ((tag, rowid) for tag in json.loads(tags))
            )
            found.append(rowid)
    return Revisited(unfound, found)


def _revise_alike(connection: sqlite3.Connection, n: int, changes: Alike) -> None:
    """The same change of many memories that moves none in or out of what can be found."""
    ids = json.dumps(changes.ids)
    after = changes.after
    there = connection.execute(
        f"UPDATE memories SET {', '.join(f'{name} = ?' for name in after)} "  # noqa: S608  # names of Fields
        "WHERE rowid IN (SELECT m.rowid FROM json_each(?) one CROSS JOIN memories m ON m.id = one.value)",
        (*after.values(), ids),
    ).rowcount
    # Where all are there, nobody needs to look for each of them once more.
    known = "1" if there == len(changes) else "value IN (SELECT id FROM memories)"
    connection.execute(
        f"INSERT OR IGNORE INTO revised (memory, n) SELECT value, ? FROM json_each(?) WHERE {known}",  # noqa: S608  # one of two constants
        (n, ids),
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
                f"SELECT rowid FROM memories WHERE state NOT IN {UNFOUND} AND rowid IN ({marks(len(part))})",  # noqa: S608  # question marks
                part,
            )
        )
    return found


def memories_of(connection: sqlite3.Connection, turns: Sequence[int], *, superseded: bool) -> list[int]:
    """The rowids of these turns' memories; without those that nothing finds any more unless asked for."""
    which = "1" if superseded else f"state NOT IN {UNFOUND}"
    found: list[int] = []
    for start in range(0, len(turns), _CHUNK):
        part = turns[start : start + _CHUNK]
        found += numbers(
            connection,
            f"SELECT rowid FROM memories WHERE {which} AND turn_n IN ({marks(len(part))})",  # noqa: S608  # question marks
            part,
        )
    return found


def texts_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, str]:
    """What these memories say; 500 of them at most."""
    return dict(connection.execute(f"SELECT id, text FROM memories WHERE id IN ({marks(len(ids))})", ids).fetchall())  # noqa: S608  # question marks


def versions_of(connection: sqlite3.Connection, name: tuple[str, str, int]) -> list[int]:
    """The event numbers of every version of a turn, oldest first."""
    return numbers(connection, "SELECT n FROM turns WHERE source = ? AND session = ? AND seq = ? ORDER BY n", name)


def numbers(connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> list[int]:
    """The one column of a query, in its order.

    It comes as one row of JSON, since the interpreter's lock is given up and taken again for each row: beside a thread
    that computes, ten thousand rows took a third of a second, and so ten milliseconds.
    """
    sql = f"WITH found (n) AS ({sql}) SELECT json_group_array(n) FROM found"  # noqa: S608  # the caller's statement
    found: list[int] = json.loads(connection.execute(sql, values).fetchone()[0])
    return found


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
