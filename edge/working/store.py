"""Task state on the disk: two tables of box.sqlite, beside those of others."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from edge.errors import DiskFull, EdgeError, Exhausted, NotFound, ReadOnly, Unavailable
from edge.ports import Clock
from edge.types import Micros
from edge.working.file import StateFile
from edge.working.values import RevisionConflict, State, Value

_logger = logging.getLogger(__name__)

# What one transaction removes at most: what is deleted is overwritten.
_BATCH_ROWS, _BATCH_BYTES = 64, 512 * 1024
_BYTES, _TEXT = 1, 2
_COLUMNS = "key, form, value, revision, updated_at, expires_at"
_LIVING = "(expires_at = 0 OR expires_at > ?)"
_GONE = "(expires_at < 0 OR expires_at BETWEEN 1 AND ?)"

_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Times are microseconds since 1970. expires_at is 0 for never, and negated once somebody saw it pass: a clock
        # that goes back brings nothing back. form is 1 for msgpack, 2 for text in UTF-8.
        """
        CREATE TABLE states (
            space TEXT NOT NULL,
            key TEXT NOT NULL,
            revision INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            form INTEGER NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY (space, key)
        )
        """,
        "CREATE INDEX states_expiry ON states (expires_at)",
        # The highest revision of what is gone, so that a key that comes back has none that was there before. By two
        # bytes of the key's SHA-256: what is gone leaves neither its name nor a row for ever.
        """
        CREATE TABLE state_floors (
            space TEXT NOT NULL,
            bucket BLOB NOT NULL,
            revision INTEGER NOT NULL,
            PRIMARY KEY (space, bucket)
        ) WITHOUT ROWID
        """,
    ),
)


class StateStore:
    """The states in the file at `path`; see StateFile for what all methods raise. One thread at a time.

    What has returned is on the disk. What expires is decided by the wall clock at each call, and stays decided.
    """

    def __init__(
        self, path: Path, clock: Clock, scrub: Callable[[int], int], *, most: int, read_only: bool = False
    ) -> None:
        """`most` is how many states a space may have."""
        self._file = StateFile(path, _MIGRATIONS, scrub, read_only=read_only)
        self._clock = clock
        self._most = most
        # What was deleted may have left copies in the file; so may a purge that a crash cut short.
        self._traces = True
        self._latest: Micros = 0

    def put(self, space: str, key: str, value: Value, expected: int | None, ttl: Micros | None) -> State:
        """Raises RevisionConflict, Exhausted when the space has all the states that it may have, DiskFull."""
        raw, form = (value.encode(), _TEXT) if isinstance(value, str) else (value, _BYTES)
        now = self._lapse(space)
        with self._file.writing(adding=len(raw)) as connection:
            row = connection.execute(
                "SELECT revision, expires_at FROM states WHERE space = ? AND key = ?", (space, key)
            ).fetchone()
            present = row[0] if row is not None and (row[1] == 0 or row[1] > now) else 0
            if expected is not None and expected != present:
                raise RevisionConflict.at(present, expected)
            if row is None:
                self._make_room(connection, space, now)
                last = _floor(connection, space, key)
            else:
                self._traces = True
                last = row[0]
            state = State(space, key, value, last + 1, now, now + ttl if ttl else 0)
            connection.execute(
                "INSERT OR REPLACE INTO states (space, key, revision, updated_at, expires_at, form, value) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (space, key, state.revision, now, state.expires_at, form, raw),
            )
        return state

    def get(self, space: str, key: str) -> State | None:
        now = self._lapse(space)
        with self._file.reading() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM states WHERE space = ? AND key = ? AND {_LIVING}",  # noqa: S608  # constants
                (space, key, now),
            ).fetchone()
            return None if row is None else _state(space, row)

    def page(self, space: str, prefix: str, after: str, count: int, room: int) -> tuple[list[State], bool]:
        """(states, whether there are more): those whose key begins so and comes after `after`, by key.

        At most `count`, and one at least, whose values have `room` bytes together.
        """
        now = self._lapse(space)
        found: list[State] = []
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM states WHERE space = ? AND key >= ? AND key > ? AND {_LIVING} "  # noqa: S608  # constants
                "ORDER BY key",
                (space, prefix, after, now),
            )
            # An open cursor would keep the write-ahead log from being emptied.
            with contextlib.closing(rows):
                for row in rows:
                    if not row[0].startswith(prefix):
                        break
                    room -= len(row[2])
                    if found and (len(found) == count or room < 0):
                        return found, True
                    found.append(_state(space, row))
        return found, False

    def delete(self, space: str, key: str, expected: int | None) -> None:
        """Nothing of it is in the file afterwards. Raises NotFound, RevisionConflict."""
        now = self._lapse(space)
        with self._file.writing() as connection:
            row = connection.execute(
                f"SELECT rowid, space, key, revision FROM states WHERE space = ? AND key = ? AND {_LIVING}",  # noqa: S608  # constants
                (space, key, now),
            ).fetchone()
            if row is None:
                raise no_state()
            if expected is not None and expected != row[3]:
                raise RevisionConflict.at(row[3], expected)
            _remove(connection, [row])
        self._purge()

    def delete_space(self, space: str) -> None:
        """Every state of the space, and what is known of those that were; nothing of them is in the file afterwards."""
        while True:
            with self._file.writing() as connection:
                gone = _some(connection, "space = ?", (space,))
                _remove(connection, gone)
                if not gone:
                    connection.execute("DELETE FROM state_floors WHERE space = ?", (space,))
                    break
        self._purge()

    def tend(self) -> bool:
        """Removes what has expired, a batch of it; True when there may be more. Else erases what was overwritten."""
        if self._file.read_only:
            return False
        with self._file.writing() as connection:
            connection.execute(
                "UPDATE states SET expires_at = -expires_at WHERE expires_at BETWEEN 1 AND ?", (self._clock.now(),)
            )
            gone = _some(connection, "expires_at < 0", ())
            _remove(connection, gone)
        if gone:
            self._traces = True
            return True
        if self._traces:
            self._purge()
        return False

    def close(self) -> None:
        self._file.close()

    def _lapse(self, space: str) -> Micros:
        """Notes for good what of the space has expired by now, which it returns."""
        now = self._clock.now()
        if self._file.read_only:
            # Nothing can be noted, nor be put: the latest time that was seen does as well.
            self._latest = max(self._latest, now)
            return self._latest
        over = "FROM states WHERE expires_at BETWEEN 1 AND ? AND space = ?"
        with self._file.reading() as connection:
            found = connection.execute(f"SELECT 1 {over} LIMIT 1", (now, space)).fetchone()
        if found:
            # Expired it is all the same, with a disk that takes no note.
            with contextlib.suppress(DiskFull, ReadOnly, Unavailable), self._file.writing() as connection:
                connection.execute(
                    f"UPDATE states SET expires_at = -expires_at WHERE rowid IN (SELECT rowid {over})",  # noqa: S608  # constants
                    (now, space),
                )
        return now

    def _make_room(self, connection: sqlite3.Connection, space: str, now: Micros) -> None:
        """For one more state, if need be in the place of what has expired."""
        count = connection.execute("SELECT count(*) FROM states WHERE space = ?", (space,)).fetchone()[0]
        if count < self._most:
            return
        gone = _some(connection, f"space = ? AND {_GONE}", (space, now))
        if not gone:
            raise Exhausted(
                f"key: the space has {self._most} states already; delete some, or raise limits.states in the box's "
                "config.toml",
                field="key",
                reason="TOO_MANY_STATES",
            )
        _remove(connection, gone)
        self._traces = True

    def _purge(self) -> None:
        """Where it cannot be done now, the state is gone for every reader all the same, and `tend` tries again."""
        self._traces = True
        try:
            self._file.purge()
        except EdgeError as error:
            _logger.warning("traces of deleted states are still on the disk, and go later: %s", error.message)
        else:
            self._traces = False


def no_state() -> NotFound:
    return NotFound("key: there is no such state; `edge state ls` lists those that are there", field="key")


def _state(space: str, row: Sequence[Any]) -> State:
    """Of a row of _COLUMNS."""
    key, form, value, revision, updated_at, expires_at = row
    return State(space, key, value.decode() if form == _TEXT else value, revision, updated_at, expires_at)


def _some(connection: sqlite3.Connection, condition: str, values: Iterable[object]) -> list[tuple[int, str, str, int]]:
    """(rowid, space, key, revision) of those that may go in one transaction; of none only where there is none."""
    rows = connection.execute(
        f"SELECT rowid, space, key, revision, length(value) FROM states WHERE {condition} LIMIT {_BATCH_ROWS}",  # noqa: S608  # constants
        tuple(values),
    ).fetchall()
    size = 0
    for place, row in enumerate(rows):
        size += row[4]
        if place and size > _BATCH_BYTES:
            rows = rows[:place]
            break
    return [row[:4] for row in rows]


def _remove(connection: sqlite3.Connection, rows: Sequence[tuple[int, str, str, int]]) -> None:
    connection.executemany("DELETE FROM states WHERE rowid = ?", [(rowid,) for rowid, *_ in rows])
    connection.executemany(
        "INSERT INTO state_floors VALUES (?, ?, ?) "
        "ON CONFLICT (space, bucket) DO UPDATE SET revision = max(revision, excluded.revision)",
        [(space, _bucket(key), revision) for _, space, key, revision in rows],
    )


def _floor(connection: sqlite3.Connection, space: str, key: str) -> int:
    """The revision that a new state of this key goes on from."""
    row = connection.execute(
        "SELECT revision FROM state_floors WHERE space = ? AND bucket = ?", (space, _bucket(key))
    ).fetchone()
    return int(row[0]) if row else 0


def _bucket(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()[:2]
