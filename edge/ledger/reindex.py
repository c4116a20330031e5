"""New words for old texts, once the lexicon makes other terms than it did."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable

from edge.errors import EdgeError
from edge.ledger.database import Database

_logger = logging.getLogger(__name__)
# Memories a transaction: some 10 ms of the writer thread.
_SLICE = 50
# The row of `meta`: "VERSION ROWID", the lexicon whose terms these are, and the last memory that has them; only the
# version once all have.
_KEY = "lexicon"
_FIRST = "1"


def renew(database: Database, terms: Callable[[str], str], version: int, stopped: Callable[[], bool]) -> int:
    """Makes the keyword index anew where the lexicon was another one; how many memories got other terms.

    `terms` makes the words column of a text. Text, vectors and rowids stay, so nothing is embedded again. It works in
    place and in slices, so recalls go on meanwhile; after a crash, or when `stopped` says so, the next call goes on
    where this one ended. A full disk ends it too: the old terms find most texts still.
    """
    with database.reader() as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
        newest = connection.execute("SELECT max(rowid) FROM memories").fetchone()[0]
    known, _, place = str(row[0] if row else _FIRST).partition(" ")
    if known == str(version) and not place:
        return 0
    after = int(place) if known == str(version) else 0
    changed = 0
    try:
        while newest is not None and after < newest:
            if stopped():
                return changed
            after, slice_changed = _renew_slice(database, terms, after, version)
            changed += slice_changed
        database.submit(lambda connection: _note(connection, str(version))).result()
    except EdgeError as error:
        _logger.warning("the keyword index is not made anew: %s; the next start tries again", error.message)
        return changed
    if changed:
        _logger.info("the keyword index was made anew for %d memories", changed)
    return changed


def _renew_slice(database: Database, terms: Callable[[str], str], after: int, version: int) -> tuple[int, int]:
    """The memories behind `after`; up to which one they reach, and how many got other terms."""
    with database.reader() as connection:
        rows = connection.execute(
            "SELECT m.rowid, m.text, w.terms FROM memories m LEFT JOIN words w ON w.rowid = m.rowid "
            "WHERE m.rowid > ? ORDER BY m.rowid LIMIT ?",
            (after, _SLICE),
        ).fetchall()
    # What has no terms is superseded: nothing is to find it.
    changes = [(new, rowid, old) for rowid, text, old in rows if old is not None and (new := terms(text)) != old]
    last = int(rows[-1][0])

    def write(connection: sqlite3.Connection) -> None:
        # Only what still is as it was read: it may have been forgotten meanwhile.
        connection.executemany("UPDATE words SET terms = ? WHERE rowid = ? AND terms = ?", changes)
        _note(connection, f"{version} {last}")

    database.submit(write).result()
    return last, len(changes)


def _note(connection: sqlite3.Connection, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_KEY, value))
