"""Forgetting for good: the intent first, then the rows, then the words on the disk, each step safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uuid6 import uuid7

from edge.errors import Unavailable
from edge.ledger.database import Database
from edge.ledger.events import Erased, Event, Forgotten
from edge.ledger.log import Allocator, Log
from edge.ledger.memories import Memories
from edge.ledger.queries import Forgettable, Queries
from edge.types import Filter, Receipt


def forget(
    log: Log,
    database: Database,
    memories: Memories,
    queries: Queries,
    *,
    ids: Sequence[str] = (),
    filter: Filter | None = None,
    dry_run: bool = False,
    drop_indexed: Callable[[Sequence[int]], int] | None = None,
) -> Receipt:
    """Erases the turns of these memories, and of all that the filter names, from log and database; blocks.

    `drop_indexed` gets the rowids once no query finds them, must take them out of every index and snapshot, and
    returns how many snapshots it dropped. Ids that name nothing are passed over (`Queries.resolve_forget` names them).
    When this returns, no byte of the texts is left in the directory; killed at any point, `resume` does the rest.

    Raises DiskFull when there is no room to rewrite a segment, Unavailable when a reader kept old pages in use for
    too long: then nothing finds the memories any more, and `resume` (a restart does it) takes away the last traces.
    """
    what = queries.resolve_forget(ids, filter)
    if dry_run or not what.turns:
        return _receipt("", dry_run, what, 0, 0)
    fingerprints = queries.fingerprints_of(what.turns)
    turns = tuple(sorted(fingerprints))
    id = str(uuid7())

    def plan(numbers: Allocator) -> tuple[list[Event], None]:
        marks = tuple(memories.mark(fingerprints[n]) for n in turns)
        return [Forgotten(numbers.next(), numbers.at, id, turns, marks)], None

    events, _ = log.submit(plan).result()
    # The log has handed it to the memories already, or does not know of them: twice is once.
    memories.apply(events).result()
    snapshots = drop_indexed(what.rowids) if drop_indexed else 0
    segments = _take_away(log, database, memories, queries)
    return _receipt(id, dry_run, what, segments, snapshots)


def resume(
    log: Log,
    database: Database,
    memories: Memories,
    queries: Queries,
    *,
    drop_indexed: Callable[[Sequence[int]], int] | None = None,
) -> int:
    """Finishes the forgets that a crash or a full disk left half done; how many. To be called once the log is
    replayed, and the index holds no more than the database. A database made anew knows of no forget that was
    finished, so all of them are looked at once more. For `drop_indexed` see `forget`; the rowids are not known any
    more, so it gets none."""
    unfinished = len(queries.unfinished_forgets())
    if unfinished:
        if drop_indexed:
            drop_indexed(())
        _take_away(log, database, memories, queries)
    return unfinished


def _take_away(log: Log, database: Database, memories: Memories, queries: Queries) -> int:
    """The traces of every forget not yet done; how many segments of the log were rewritten."""
    forgets = queries.unfinished_forgets()
    segments = log.erase({n: Erased(n, at, mark, id) for id, at, marks in forgets for n, mark in marks.items()})
    memories.compact()
    if not database.checkpoint():
        raise Unavailable(
            "the memories are forgotten, but a long read keeps old pages of the database in use; "
            "their last traces go at the next forget or restart",
            retry_after=5.0,
        )
    memories.finish_forgets([id for id, _, _ in forgets]).result()
    return segments


def _receipt(id: str, dry_run: bool, what: Forgettable, segments: int, snapshots: int) -> Receipt:
    return Receipt(
        id=id,
        dry_run=dry_run,
        turns=len(what.turns),
        memories=len(what.memory_ids),
        vectors=what.vectors,
        segments_rewritten=segments,
        snapshots_dropped=snapshots,
        memory_ids=what.memory_ids,
    )
