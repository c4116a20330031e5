"""box.sqlite as this room has it open: durable, explained when it fails, and with nothing left of what was deleted."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edge.errors import DataLoss, DiskFull, EdgeError, FailedPrecondition, ReadOnly, Unavailable

_FULL = (errno.ENOSPC, errno.EDQUOT)
# Bytes of the disk that whoever adds leaves alone, so that there is room to delete.
_RESERVE = 2 << 20
_PURGE_SECONDS = 5.0
_PRAGMAS = (
    "busy_timeout = 5000",
    "journal_mode = WAL",
    # What was acknowledged outlives a power cut; on macOS fsync alone does not reach the disk.
    "synchronous = FULL",
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
    "secure_delete = ON",
    "temp_store = MEMORY",
    # Pages; so that many deletions in a row, which write as much as they free, get by with the reserve.
    "wal_autocheckpoint = 100",
)


class StateFile:
    """The file at `path`, opened when it is first needed. One thread at a time.

    Others have tables in it too: which version this room's are of is written in `schemas`, a row a room, for PRAGMA
    user_version counts the tokens' own. `migrations` is a list of scripts that only grows, each a list of statements.
    `scrub` zeroes what SQLite leaves in the file of rows that it moved about (edge.ledger.scrub). Every method raises
    DataLoss for a damaged file, FailedPrecondition for one of a later version, and DiskFull, ReadOnly or Unavailable as
    the disk has it; the next call tries again.
    """

    def __init__(
        self,
        path: Path,
        migrations: tuple[tuple[str, ...], ...],
        scrub: Callable[[int], int],
        *,
        read_only: bool,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._migrations = migrations
        self._scrub = scrub
        self._connection: sqlite3.Connection | None = None
        self._file: int | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read-only and without a table of ours it is empty."""
        with self._explained():
            yield self._connected()

    @contextlib.contextmanager
    def writing(self, adding: int = 0) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk at its end. `adding` is how many bytes it needs beside what is there."""
        if self.read_only:
            raise ReadOnly(f"{self.path} was opened for reading only; make the data directory writable and restart")
        with self._explained():
            if adding and shutil.disk_usage(self.path.parent).free < _RESERVE + adding:
                raise self._full()
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError) and "I/O" in str(error):
                    # Its disk failed under it; the next call opens another.
                    self._drop()
                raise

    def purge(self) -> None:
        """Leaves nothing of deleted rows in the file and its write-ahead log, durably.

        secure_delete overwrites rows, but not the copies that pages keep of rows that went to their neighbours.
        """
        end = time.monotonic() + _PURGE_SECONDS
        while not self._purged():
            if time.monotonic() > end:
                raise Unavailable(f"{self.path} was in use all the time; try again", retry_after=1.0)
            time.sleep(0.01)

    def close(self) -> None:
        self._drop()
        if self._file is not None:
            # Closed last: closing any descriptor of a file drops all of the process's POSIX locks on it.
            os.close(self._file)
            self._file = None

    def _purged(self) -> bool:
        with self._explained():
            connection = self._connected()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            # From here to the end nobody else's pages come into the file, since nobody may write any.
            connection.execute("BEGIN IMMEDIATE")
            try:
                done = not self._wal_bytes()
                if done:
                    assert self._file is not None
                    self._scrub(self._file)
            finally:
                connection.execute("ROLLBACK")
            if done:
                # Its cache has the pages as they were, and would write them back.
                self._drop()
            return done

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._open_read_only() if self.read_only else self._open()
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _open(self) -> sqlite3.Connection:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        connection = self._connect("mode=rw")
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection

    def _open_read_only(self) -> sqlite3.Connection:
        if self.path.exists():
            # SQLite wants to write beside a file with a write-ahead log, unless it may take the file as it is: that
            # is only right when the log holds nothing.
            connection = self._connect("mode=ro" if self._wal_bytes() else "immutable=1")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schemas'").fetchone():
                return connection
            connection.close()
        return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS schemas (room TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        row = connection.execute("SELECT version FROM schemas WHERE room = 'working'").fetchone()
        version = row[0] if row else 0
        if version > len(self._migrations):
            raise FailedPrecondition(
                f"the states in {self.path} were written by a later version; install that one, or bring back a "
                "backup of the file",
                reason="LATER_VERSION",
            )
        for number, statements in enumerate(self._migrations[version:], version + 1):
            connection.execute("BEGIN IMMEDIATE")
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT OR REPLACE INTO schemas VALUES ('working', ?)", (number,))
            connection.execute("COMMIT")

    def _wal_bytes(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        return 0

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._refusal(str(error)) from None
        except UnicodeDecodeError:
            raise self._damaged("a text is not UTF-8") from None
        except OSError as error:
            raise (self._full() if error.errno in _FULL else self._unwritable(error.strerror or "")) from None

    def _refusal(self, words: str) -> EdgeError:
        # Python 3.10 has no error codes for SQLite; these words of it have not changed in many years.
        if "full" in words:
            return self._full()
        if "readonly" in words or "unable to open" in words:
            return self._unwritable(words)
        if "I/O" in words or "locked" in words:
            return Unavailable(f"{self.path} did not answer ({words}); try again", retry_after=1.0)
        return self._damaged(words)

    def _damaged(self, words: str) -> DataLoss:
        return DataLoss(f"{self.path} is damaged or another program's ({words}); bring it back from a backup")

    def _full(self) -> DiskFull:
        return DiskFull(
            f"no room left for {self.path}; free some space and try again, no restart is needed", retry_after=5.0
        )

    def _unwritable(self, words: str) -> ReadOnly:
        return ReadOnly(f"{self.path} cannot be written ({words}); make the data directory writable and restart")
