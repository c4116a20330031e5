"""Forgetting for good: the intent first, then the rows, then the words on the disk, each step safe to repeat."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from uuid6 import uuid7

from edge.errors import Unavailable
from edge.ledger.database import Database
from edge.ledger.events import Erased, Event, Forgotten, Revised
from edge.ledger.forgets import Forgettable
from edge.ledger.log import Allocator, Log
from edge.ledger.memories import Applied, Memories
from edge.ledger.queries import Queries
from edge.ledger.revisions import RESTORED, Change
from edge.types import Filter, Micros, Receipt

_LOOK_SECONDS = 0.2


class Unfinished(Unavailable):
    """The memories are forgotten, and nobody can tell whether a damaged cold file still has them.

    All else is done: `receipts` say what. The next forget, the next start, and every call of `resume` look again.
    """

    reason = "COLD_FILE_DAMAGED"

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        # Of the log, that were rewritten.
        self.segments = 0
        self.receipts: list[Receipt] = []


def forget(
    log: Log,
    database: Database,
    memories: Memories,
    queries: Queries,
    *,
    ids: Sequence[str] = (),
    filter: Filter | None = None,
    turns: Iterable[int] | None = None,
    dry_run: bool = False,
    history: bool = True,
    hidden: bool = True,
    id: str = "",
    by: str = "owner",
    drop_indexed: Callable[[Sequence[int]], int] | None = None,
    alone: AbstractContextManager[object] | None = None,
    relinks: Callable[[Forgettable], Sequence[Change]] | None = None,
) -> Receipt:
    """Erases the turns of these memories, and of all that the filter names, from log and database; blocks.

    `turns` in the place of both names exactly these. For `history` and `hidden` see forgets.forgettable; what stays
    although it was replaced by what goes is changed as `relinks` says. `alone` is held while memories are chosen and
    taken out, and not for the rewriting of the log; `id` is the forget's, if it has one already, and `by` who forgets.
    `drop_indexed` gets the rowids once no query finds them, must take them out of every index and snapshot, and
    returns how many snapshots it dropped. Ids that name nothing are passed over (`Queries.resolve_forget` names them).
    When this returns, no byte of the texts is left in the directory; killed at any point, `resume` does the rest.

    Raises DiskFull when there is no room: to note the forget, then nothing is forgotten; or to carry it out, then it
    is carried out once there is room again, its last traces at the next forget or restart (by `resume`). Raises
    Unavailable when a reader kept old pages in use for too long: then nothing finds the memories any more, and the
    last traces go in the same way. Raises Unfinished, with the receipt, when a cold file is damaged.
    """
    with alone or contextlib.nullcontext():
        if turns is not None:
            what = queries.of_turns(turns)
        else:
            what = queries.resolve_forget(ids, filter, history=history, hidden=hidden)
        if dry_run:
            return receipt("", what, dry_run=True)
        marks = marks_of(memories, queries, what)
        if marks:
            id = id or str(uuid7())
            changes = tuple(relinks(what)) if relinks else ()

            def plan(numbers: Allocator) -> tuple[list[Event], None]:
                events: list[Event] = []
                if changes:
                    events.append(Revised(numbers.next(), numbers.at, str(uuid7()), RESTORED, by, changes))
                events.append(Forgotten(numbers.next(), numbers.at, id, tuple(marks), tuple(marks.values())))
                return events, None

            events, _ = log.submit(plan).result()
            # The log has handed it to the memories already, or does not know of them: twice is once.
            _settle(memories, memories.apply(events))
    if not marks:
        # They may be forgotten already, and only their traces left by a disk that was full.
        return receipt("", what, segments=_take_away(log, database, memories, queries, drop_indexed))
    snapshots = drop_indexed(what.rowids) if drop_indexed else 0
    done = partial(receipt, id, what, marks.values(), snapshots=snapshots)
    try:
        return done(segments=_take_away(log, database, memories, queries, drop_indexed))
    except Unfinished as left:
        left.receipts.append(done(segments=left.segments))
        raise


def marks_of(memories: Memories, queries: Queries, what: Forgettable) -> dict[int, str]:
    """What is to stay of each turn, by its number, in order."""
    fingerprints = queries.fingerprints_of(what.turns)
    return {n: memories.mark(fingerprints[n]) for n in sorted(fingerprints)}


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
    finished, so all of them are looked at once more. For `drop_indexed` see `forget`; here it gets no rowids, for
    they are not known any more."""
    unfinished = len(queries.unfinished_forgets())
    if unfinished:
        _take_away(log, database, memories, queries, drop_indexed)
    return unfinished


def _take_away(
    log: Log,
    database: Database,
    memories: Memories,
    queries: Queries,
    drop_indexed: Callable[[Sequence[int]], int] | None,
) -> int:
    """The traces of every forget not yet done; how many segments of the log were rewritten."""
    forgets = queries.unfinished_forgets()
    if not forgets:
        return 0
    if drop_indexed:
        # An earlier forget may have ended before its snapshots were dropped. Its rows are in no index any more.
        drop_indexed(())
    segments = log.erase({n: Erased(n, at, mark, id) for id, at, marks in forgets for n, mark in marks.items()})
    memories.compact()
    if not database.purge():
        raise Unavailable(
            "the memories are forgotten, but a long read keeps old pages of the database in use; "
            "their last traces go at the next forget or restart",
            retry_after=5.0,
        )
    try:
        log.cold.erase([n for _, _, marks in forgets for n in marks])
    except Unavailable as damaged:
        left = Unfinished(
            "the memories are forgotten, but nobody can tell whether a cold file still has them: "
            f"{damaged.message}; the box looks again by itself",
            reason=damaged.reason,
        )
        left.segments = segments
        raise left from damaged
    memories.finish_forgets([id for id, _, _ in forgets]).result()
    return segments


def _settle(memories: Memories, applied: Future[Applied]) -> None:
    """Until it is applied; or as long as nothing says that the disk is in the way."""
    while applied not in wait([applied], timeout=_LOOK_SECONDS).done:
        if memories.stalled:
            raise memories.stalled
    applied.result()


def receipt(
    id: str,
    what: Forgettable,
    marks: Iterable[str] = (),
    *,
    dry_run: bool = False,
    segments: int = 0,
    snapshots: int = 0,
    erased_at: Micros | None = None,
) -> Receipt:
    """Of a forget, in numbers and keyed marks."""
    return Receipt(
        id=id,
        dry_run=dry_run,
        turns=len(what.turns),
        memories=len(what.memory_ids),
        vectors=what.vectors,
        segments_rewritten=segments,
        snapshots_dropped=snapshots,
        memory_ids=what.memory_ids,
        words=what.words,
        candidates=what.candidates,
        revisions=what.revisions,
        marks=tuple(marks),
        erased_at=erased_at,
    )
