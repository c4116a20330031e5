"""Tokens on the disk: one small SQLite file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edge.errors import DataLoss, DiskFull, EdgeError, FailedPrecondition, InvalidArgument, ReadOnly, Unavailable
from edge.lan.grants import check_grants
from edge.types import Grant, Micros, Scope

_FULL = (errno.ENOSPC, errno.EDQUOT)

# What PRAGMA user_version counts. It only grows: what was once applied is never edited, only followed.
_MIGRATIONS = (
    """
-- `hash` is the SHA-256 of the secret, NULL once revoked. Times are microseconds since 1970, 0 for never.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    grants TEXT NOT NULL,
    hash BLOB UNIQUE,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL DEFAULT 0,
    revoked_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_living ON tokens (name) WHERE hash IS NOT NULL;
""",
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token as its owner sees it, without its secret. Times are 0 for never."""

    id: str
    name: str
    grants: tuple[Grant, ...]
    created_at: Micros
    last_used_at: Micros = 0
    revoked_at: Micros = 0


class TokenStore:
    """The file at `path`, made for its owner alone. One thread at a time; a method that returns is on the disk.

    Every method raises DataLoss for a damaged or foreign file, FailedPrecondition for one of a later version, and
    DiskFull, ReadOnly or Unavailable as the disk has it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._connection: sqlite3.Connection | None = None
        # A box that never had tokens has none to read.
        if read_only and not path.exists():
            return
        with self._explained():
            self._connection = self._connect()
            try:
                self._prepare(self._connection)
            except BaseException:
                self.close()
                raise

    def load(self) -> list[tuple[Token, bytes | None]]:
        """Every token with its hash, the oldest first."""
        if self._connection is None:
            return []
        with self._explained():
            rows = self._connection.execute(
                "SELECT id, name, grants, created_at, last_used_at, revoked_at, hash FROM tokens "
                "ORDER BY created_at, id"
            ).fetchall()
            return [
                (Token(token_id, name, _unpack(grants), *times), key) for token_id, name, grants, *times, key in rows
            ]

    def add(self, token: Token, key: bytes, replaces: str = "") -> None:
        """The token with the hash of its secret; in the same step the token of the id `replaces` is revoked."""
        with self._transaction() as connection:
            if replaces:
                _revoke(connection, replaces, token.created_at)
            connection.execute(
                "INSERT INTO tokens (id, name, grants, hash, created_at) VALUES (?, ?, ?, ?, ?)",
                (token.id, token.name, _pack(token.grants), key, token.created_at),
            )

    def revoke(self, token_id: str, at: Micros) -> None:
        with self._transaction() as connection:
            _revoke(connection, token_id, at)

    def used(self, last: Iterable[tuple[str, Micros]]) -> None:
        """Last uses, by the tokens' ids."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE tokens SET last_used_at = ? WHERE id = ?", [(at, token_id) for token_id, at in last]
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        uri = self._path.absolute().as_uri()
        if not self._read_only:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._path.chmod(0o600)
            uri += "?mode=rw"
        else:
            # SQLite wants to write beside a file with a write-ahead log, unless it may take the file as it is. That is
            # only right when the log holds nothing: it could be the news that a token was revoked.
            log = self._path.with_name(self._path.name + "-wal")
            uri += "?mode=ro" if log.exists() and log.stat().st_size else "?immutable=1"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(_MIGRATIONS):
            raise FailedPrecondition(
                f"{self._path} was written by a later version; install that one, or bring back a backup of the file",
                reason="LATER_VERSION",
            )
        if self._read_only:
            return
        connection.execute("PRAGMA journal_mode = WAL")
        # A revoked token must not be good again after a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        for number, sql in enumerate(_MIGRATIONS[version:], version + 1):
            connection.executescript(f"BEGIN IMMEDIATE; {sql} PRAGMA user_version = {number}; COMMIT;")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self._read_only:
            raise ReadOnly(f"{self._path} was opened for reading only; make the data directory writable and restart")
        if self._connection is None:
            raise Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0)
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        # The file alone then holds everything: it can be copied, and read on a disk that has become read-only. What
        # was committed stays so if this fails.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._refusal(str(error)) from None
        except OSError as error:
            if error.errno in _FULL:
                raise self._full() from None
            raise self._unwritable(error.strerror or type(error).__name__) from None
        except (InvalidArgument, ValueError, KeyError, TypeError):
            raise self._damaged("a row makes no sense") from None

    def _refusal(self, words: str) -> EdgeError:
        # Python 3.10 has no error codes for SQLite; these words of it have not changed in many years.
        if "full" in words:
            return self._full()
        if "readonly" in words or "unable to open" in words:
            return self._unwritable(words)
        if "I/O" in words or "locked" in words:
            return Unavailable(f"{self._path} did not answer ({words}); try again", retry_after=1.0)
        return self._damaged(words)

    def _full(self) -> DiskFull:
        return DiskFull(f"no room left for {self._path}; free some space and try again, no restart is needed")

    def _unwritable(self, words: str) -> ReadOnly:
        return ReadOnly(f"{self._path} cannot be written ({words}); make the data directory writable and restart")

    def _damaged(self, words: str) -> DataLoss:
        return DataLoss(
            f"{self._path} is damaged or another program's ({words}); bring it back from a backup, or move it away: "
            "then every client has to pair again"
        )


def _revoke(connection: sqlite3.Connection, token_id: str, at: Micros) -> None:
    connection.execute("UPDATE tokens SET revoked_at = ?, hash = NULL WHERE id = ?", (at, token_id))


def _pack(grants: Iterable[Grant]) -> str:
    return json.dumps(
        [{"space": one.pattern, "scopes": [s.name.lower() for s in sorted(one.scopes)]} for one in grants]
    )


def _unpack(packed: str) -> tuple[Grant, ...]:
    return check_grants(
        Grant(one["space"], frozenset(Scope[scope.upper()] for scope in one["scopes"])) for one in json.loads(packed)
    )
