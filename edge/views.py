"""What is made of a space's log, and how it is opened, caught up and thrown away."""

from __future__ import annotations

import itertools
import logging
import shutil
import tempfile
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path

from edge.errors import DataLoss, EdgeError
from edge.ledger.database import Database
from edge.ledger.log import Log
from edge.ledger.memories import Applied, Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries

logger = logging.getLogger(__name__)

_DATABASE = "memory.sqlite"
# Events that are applied at once.
_CHUNK = 256
_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class SpaceFacts:
    """How a space is, in numbers."""

    name: str
    turns: int
    memories: int
    vectors: int
    pending: int
    log_bytes: int
    log_segments: int
    index_size: int
    index_overlay: int
    index_deleted: int
    rebuilding: bool
    damaged_lines: int


def open_database(
    name: str, directory: Path, last_n: int, read_only: bool
) -> tuple[Database, tempfile.TemporaryDirectory[str] | None]:
    """The database of a space whose log ends with event `last_n`; made anew when it is damaged, another's, or ahead.

    On a read-only disk one that is not level with the log is made elsewhere: then its folder comes with it.
    """
    path = directory / _DATABASE
    try:
        if read_only:
            database = Database(path, MIGRATIONS, read_only=True)
            if Queries(database).applied() == last_n:
                return database, None
            database.close()
            return _elsewhere()
        database = Database(path, MIGRATIONS)
        if Queries(database).applied() <= last_n:
            return database, None
        database.close()
        logger.warning("space %s: the database is ahead of the log; it is made anew from the log", name)
    except DataLoss as error:
        if read_only:
            return _elsewhere()
        logger.warning("space %s: %s; it is made anew from the log", name, error.message)
    except (EdgeError, OSError):
        if read_only:
            return _elsewhere()
        raise
    discard(directory)
    return Database(path, MIGRATIONS), None


def _elsewhere() -> tuple[Database, tempfile.TemporaryDirectory[str]]:
    scratch = tempfile.TemporaryDirectory(prefix="edge-memory-")
    return Database(Path(scratch.name) / _DATABASE, MIGRATIONS), scratch


def discard(directory: Path) -> None:
    """Removes all that the log brings back. The index first: it must not outlive the rowids it speaks of."""
    shutil.rmtree(directory / "index", ignore_errors=True)
    Database.discard(directory / _DATABASE)


def replay(log: Log, memories: Memories) -> list[Future[Applied]]:
    """Applies what the views lack. What a full disk keeps from them follows by itself, and is given back."""
    behind = []
    events = log.replay(memories.applied)
    while chunk := list(itertools.islice(events, _CHUNK)):
        applied = memories.apply(chunk)
        while not memories.stalled and applied not in wait([applied], timeout=_LOOK).done:
            pass
        if applied.done():
            applied.result()
        else:
            behind.append(applied)
    return behind
