"""SQLite with one writer thread and any number of readers; a view of the log that can be thrown away."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from edge.errors import DataLoss, DiskFull, EdgeError, ReadOnly, Unavailable
from edge.ledger import cached
from edge.ledger.disk import refusal
from edge.ledger.migrations import Migration, check, migrate
from edge.ledger.scrub import scrub

_logger = logging.getLogger(__name__)
T = TypeVar("T")
_IDLE_READERS = 8
_BUSY_SECONDS = 5.0
# Seconds between looks at the memory that is left, while there is something to write; bytes that are too few.
_LOOK_SECONDS = 1.0
_SHORT_BYTES = 96 * 1024 * 1024
_SUFFIXES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[sqlite3.Connection], Any]
    future: Future[Any]
    transaction: bool


class Database:
    """The database at `path`, made or migrated when opened.

    Raises DataLoss when the file is damaged or another's: `Database.discard(path)`, open again, replay the log.
    Raises ReadOnly or DiskFull when it cannot be written. With `read_only` the file is never written; it must exist.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], *, read_only: bool = False) -> None:
        self.path = path
        self._migrations = migrations
        self._read_only = read_only
        self._uri = ""
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._jobs: deque[_Job] = deque()
        self._urgent: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        self._file: int | None = None
        self._thread: threading.Thread | None = None
        self._look_at = 0.0
        with self._explained():
            if read_only:
                self._uri = self._readable()
                return
            self._uri = _uri(path, "rw")
            self._writer = self._open_writer()
            # Closed last: closing any descriptor of a file drops all of the process's POSIX locks on it.
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="ledger-database", daemon=True)
        self._thread.start()

    @staticmethod
    def discard(path: Path) -> None:
        """Removes the database and its companions; the log brings it back."""
        for suffix in _SUFFIXES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, urgent: bool = False, transaction: bool = True
    ) -> Future[T]:
        """Runs `work` on the writer thread in a transaction of its own; the future resolves after the commit.

        The urgent go before the others. A future cancelled before its turn is skipped. Whatever `work` raises undoes
        its transaction; SQLite's own failures come as DiskFull, ReadOnly, DataLoss or Unavailable.
        `transaction=False` is for pragmas. Raises Unavailable once closed, ReadOnly for a database opened so.
        """
        job = _Job(work, Future(), transaction)
        with self._wake:
            if self._read_only:
                raise ReadOnly(f"{self.path} was opened for reading only; make the data directory writable first")
            if self._closed:
                raise Unavailable("the space is closed: the box is stopping, or it was deleted", retry_after=5.0)
            (self._urgent if urgent else self._jobs).append(job)
            self._wake.notify()
        return job.future

    @contextlib.contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, for the calling thread alone while it holds it; never waits for a writer."""
        with self._readers_lock:
            if self._closed:
                raise Unavailable("the space is closed: the box is stopping, or it was deleted", retry_after=5.0)
            connection = self._readers.pop() if self._readers else None
        with self._explained():
            if connection is None:
                connection = self._open_reader()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        with self._readers_lock:
            if not self._closed and len(self._readers) < _IDLE_READERS:
                self._readers.append(connection)
                return
        connection.close()

    def purge(self, timeout: float = _BUSY_SECONDS) -> bool:
        """Leaves nothing of deleted rows in the file, and empties the write-ahead log into it, durably; True when done.

        Retried while readers need the write-ahead log, `timeout` seconds at most; the writer is free between the tries.
        """
        end = time.monotonic() + timeout
        while not self.submit(self._purge, transaction=False).result():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with its file; empty for nothing."""
        try:
            with self.reader() as connection:
                found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        except EdgeError as error:
            return [error.message]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Finishes what was submitted, empties the write-ahead log, closes. May be called again."""
        with self._wake:
            with self._readers_lock:
                self._closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        with self._readers_lock:
            while self._readers:
                self._readers.pop().close()
        if self._writer is not None:
            with contextlib.suppress(sqlite3.Error):
                _truncate(self._writer)
            self._writer.close()
            self._writer = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    # The writer thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._urgent and not self._jobs:
                    if self._closed:
                        return
                    self._wake.wait()
                job = (self._urgent or self._jobs).popleft()
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                with self._explained():
                    result = self._work(job)
            except BaseException as error:  # noqa: BLE001  # it belongs to the waiter; the thread must live on
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
            self._save_memory()

    def _save_memory(self) -> None:
        """Lets the database's pages go from the kernel's cache while a control group has little room left.

        Written once each, they would fill it to its limit. Elsewhere they stay, for recalls to find.
        """
        now = time.monotonic()
        if self._file is None or now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        room = cached.room()
        if room is not None and room < _SHORT_BYTES:
            cached.let_go(self._file)

    def _work(self, job: _Job) -> Any:
        if self._writer is None:
            self._writer = self._open_writer()
        writer = self._writer
        try:
            if not job.transaction:
                return job.work(writer)
            writer.execute("BEGIN IMMEDIATE")
            result = job.work(writer)
            writer.execute("COMMIT")
            return result
        except BaseException as error:
            try:
                # SQLite has rolled back by itself after some failures.
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
            except sqlite3.Error:
                self._drop_writer()
            if isinstance(error, sqlite3.OperationalError) and "disk I/O" in str(error):
                self._drop_writer()
            raise

    def _purge(self, connection: sqlite3.Connection) -> bool:
        if not _truncate(connection):
            return False
        # Its cache has the pages as they were, and would write them back.
        self._drop_writer()
        assert self._file is not None
        try:
            scrub(self._file)
        except OSError as error:
            raise refusal(error, self.path.parent) from error
        return True

    def _drop_writer(self) -> None:
        """This connection is not used again, its disk having failed under it, say; the next job opens another."""
        if self._writer is not None:
            with contextlib.suppress(sqlite3.Error):
                self._writer.close()
            self._writer = None

    # Connections.

    def _open_writer(self) -> sqlite3.Connection:
        if not self.path.exists():
            # SQLite gives its companions the mode of the database.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            for pragma in (
                "busy_timeout = 5000",
                "journal_mode = WAL",
                # WAL with NORMAL is consistent after a power cut, and may lose the last commits: the log has them.
                "synchronous = NORMAL",
                "secure_delete = ON",
                "foreign_keys = ON",
                "temp_store = MEMORY",
                "mmap_size = 0",
                "cache_size = -8000",
                "journal_size_limit = 16777216",
            ):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            # On a read-only disk SQLite opens the file for reading without a word: ask for the right to write.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            migrate(connection, self._migrations)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        for pragma in (
            "busy_timeout = 5000",
            "query_only = ON",
            "temp_store = MEMORY",
            "mmap_size = 0",
            "cache_size = -4000",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection

    def _readable(self) -> str:
        """The address that can be opened. On a read-only disk WAL needs its companions there, or a promise that
        nobody writes, which the disk keeps."""
        if not self.path.exists():
            raise DataLoss(f"{self.path} does not exist; it is made from the log when the directory can be written")
        for uri in (_uri(self.path, "ro"), _uri(self.path, "ro") + "&immutable=1"):
            with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
                try:
                    check(connection, self._migrations)
                except sqlite3.OperationalError as error:
                    if "unable to open" in str(error) or "readonly" in str(error):
                        continue
                    raise
                return uri
        raise ReadOnly(f"{self.path} cannot be opened; see its permissions")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            words = str(error)
            if "full" in words:
                raise DiskFull(
                    f"no room left for {self.path}; free some space, a restart is not needed", retry_after=5.0
                ) from error
            if "readonly" in words or "unable to open" in words:
                raise ReadOnly(f"{self.path} cannot be written ({words}); make the data directory writable") from error
            if "no such table" in words:
                raise self._damaged(words) from error
            raise Unavailable(f"{self.path} did not answer ({words}); try again", retry_after=1.0) from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError)):
                raise
            raise self._damaged(str(error)) from error
        except DataLoss as error:
            raise self._damaged(error.message) from error
        except OSError as error:
            raise refusal(error, self.path.parent) from error

    def _damaged(self, words: str) -> DataLoss:
        return DataLoss(
            f"{self.path} is damaged or another programme's ({words}); "
            "`edge rebuild --from-log` makes it anew from the log"
        )


def _truncate(connection: sqlite3.Connection) -> bool:
    # Waiting inside SQLite would hold the writer thread; the caller waits outside.
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return False
        raise
    finally:
        connection.execute("PRAGMA busy_timeout = 5000")
    return not busy


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.resolve()))}?mode={mode}"
