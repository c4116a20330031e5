"""What is made of a space's log, and how it is opened, caught up and thrown away."""

from __future__ import annotations

import itertools
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from edge.errors import DataLoss, DiskFull, EdgeError, ReadOnly, Unavailable
from edge.index.live import IndexStats
from edge.ingest import Sample
from edge.ledger.database import Database
from edge.ledger.log import Log
from edge.ledger.memories import Applied, Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.types import ModelInfo

logger = logging.getLogger(__name__)

_DATABASE = "memory.sqlite"
# Events that are applied at once.
_CHUNK = 256
_LOOK = 0.1
# Stands for the rule by which texts are given to models: another one, and all are looked at anew.
_ROUTING = "1"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a space has of one model's vectors; `pending`: memories that it was not yet asked about."""

    id: str
    vectors: int
    pending: int


@dataclass(frozen=True, slots=True)
class SpaceFacts:
    """How a space is, in numbers; of vectors and indexes, for all running models together."""

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
    models: tuple[ModelFacts, ...] = ()
    # Turns that were kept out, by the rule of noise; and secrets that were hidden in the others, by class.
    filtered: dict[str, int] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    # What rules made of memories, and nobody undid: merged, replaced, promoted.
    revised: dict[str, int] = field(default_factory=dict)
    # Of the memories, those in the archive; and those in the cold file, which are not among them.
    archived: int = 0
    cold: int = 0


def facts(
    name: str,
    log: Log,
    queries: Queries,
    models: Sequence[str],
    index: IndexStats,
    samples: Sequence[Sample],
    revised: Mapping[str, int],
) -> SpaceFacts:
    """Of a space with these running models; `samples` are those that its write path keeps."""
    counts, stats, tallies = queries.counts(), log.stats(), queries.tallies()
    each = [ModelFacts(model, counts.vectors.get(model, 0), counts.without(model)) for model in models]
    return SpaceFacts(
        name=name,
        turns=counts.turns,
        memories=counts.memories,
        vectors=sum(one.vectors for one in each),
        pending=sum(one.pending for one in each),
        log_bytes=stats.bytes,
        log_segments=stats.segments,
        index_size=index.size,
        index_overlay=index.overlay,
        index_deleted=index.deleted,
        rebuilding=index.rebuilding,
        damaged_lines=stats.damaged_lines,
        models=tuple(each),
        filtered=_part(tallies, "noise"),
        hidden=_part(tallies, "secret"),
        samples=tuple(samples),
        revised=dict(revised),
        archived=counts.archived,
        cold=counts.cold,
    )


def _part(tallies: Mapping[str, int], head: str) -> dict[str, int]:
    """The counts whose names begin with `head/`, by the rest of the name."""
    return {name.removeprefix(f"{head}/"): count for name, count in tallies.items() if name.startswith(f"{head}/")}


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


def keep_routing(name: str, memories: Memories, queries: Queries, models: Sequence[ModelInfo], reason: str) -> None:
    """When other models run than before: what was refused for that reason is given out anew.

    One that runs alone has every text. Should the disk not let it, the next start does it.
    """
    routing = " ".join([_ROUTING, *(f"{info.id}:{info.language}" for info in models)]) if len(models) > 1 else ""
    if routing == queries.routing():
        return
    try:
        memories.keep_routing(routing, reason).result()
    except (DiskFull, ReadOnly, Unavailable) as error:
        logger.warning("space %s: which texts go to which model stays undecided: %s", name, error.message)


def warnings(
    log: Log, memories: Memories, index: IndexStats, refusal: EdgeError | None, unfinished: EdgeError | None
) -> list[str]:
    """What the owner of a space has to know of; `refusal` is why no turn is taken just now, `unfinished` why a forget
    could not be carried out to its end."""
    found = []
    if damaged := log.stats().damaged_lines:
        found.append(f"{damaged} lines of the log are damaged; `edge verify` names them, a backup has them whole")
    if refusal is not None:
        found.append(f"new turns are refused: {refusal.message}")
    if unfinished is not None:
        found.append(f"a forget is not finished: {unfinished.message}")
    if index.snapshot_error:
        found.append(f"the index could not be saved ({index.snapshot_error}); free disk space")
    if memories.failure is not None:
        found.append(f"{memories.failure.message}; `edge rebuild --from-log` makes the views anew")
    return found
