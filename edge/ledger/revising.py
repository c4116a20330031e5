"""Changing what is made of memories: one revision at a time, each an event of the log that can be taken back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial

from uuid6 import uuid7

from edge.errors import FailedPrecondition, InvalidArgument, NotFound
from edge.ledger import history
from edge.ledger.database import Database
from edge.ledger.events import Event, Revised
from edge.ledger.forgets import Forgettable, turns_of
from edge.ledger.history import Deed
from edge.ledger.log import Allocator, Log
from edge.ledger.queries import Queries
from edge.ledger.revisions import (
    ARCHIVED,
    COOLED,
    FORGOTTEN,
    NOT_UNDOABLE,
    REASONS,
    RESTORED,
    RULE,
    UNDONE,
    Alike,
    Change,
    Conflict,
    Fields,
    Revision,
    change,
    inverse,
)
from edge.ledger.rows import UNSHOWN_STATES
from edge.types import Filter, Memory, MemoryState, Micros

# Changes of one revision. A forget has as many as it takes.
MOST = 10_000
# Memories that are archived by one revision: some ten milliseconds of the database's writer.
AT_ONCE = 1000
# FailedPrecondition.reason of a memory that is not as whoever planned a change had found it.
CHANGED = "CHANGED_MEANWHILE"
_LOOKED_BACK = 200
# What the sweep may do, and whoever asks may not: they forget.
_BY_ITSELF = ((COOLED, RULE), (FORGOTTEN, RULE))


class Revisions:
    """The revisions of one space; safe from any thread. `catch_up` waits until the tables have what the log has.

    Revisions and forgets run one after another, so each sees all that the ones before it did. Turns go on coming
    meanwhile: what a newer version of its turn supersedes stays superseded, whatever a revision says of it.
    """

    def __init__(self, database: Database, log: Log, queries: Queries, catch_up: Callable[[], object]) -> None:
        self._database = database
        self._log = log
        self._queries = queries
        self._catch_up = catch_up
        self._alone = threading.Lock()
        self._prepare: Callable[[Sequence[Change]], Collection[int]] = lambda _: ()
        self._undone: Callable[[Collection[int]], None] = lambda _: None

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """While it is held, nothing else is revised or forgotten, and the tables have all that was so far."""
        with self._alone:
            self._catch_up()
            yield

    change = staticmethod(change)

    def revise(self, plan: Callable[[Queries], Sequence[Change]], why: str, by: str) -> Revision | None:
        """Carries out what `plan` makes of the memories as they are; None when that changes nothing. Blocks.

        The plan runs while nothing else is revised or forgotten, and makes its changes by `change`. What it
        raises, and NotFound for a memory that is not here, leaves all as it is. `why` is one of revisions.REASONS.
        Raises Unavailable when the tables are far behind the log.
        """
        with self.settled():
            changes = [one for one in plan(self._queries) if one.after]
            self._check(changes, why, by)
            return self._log_it(changes, why, by)

    def undo(self, id: str, by: str) -> Revision:
        """Takes a revision back. Raises NotFound, and FailedPrecondition (NOT_UNDOABLE) where that cannot be, and why.

        An undo is a revision too, and can be taken back. To undo the handing in of a turn is to forget it.
        """
        with self.settled():
            changes = self._inverse(id)
            prepared = self._prepare(changes)
            done = self._log_it(changes, UNDONE, by, undoes=id)
            assert done is not None
            self._undone(prepared)
            return done

    def before_undo(
        self, prepare: Callable[[Sequence[Change]], Collection[int]], done: Callable[[Collection[int]], None]
    ) -> None:
        """`prepare` gets the changes of each undo before it is logged, and may refuse by raising; `done` gets what that
        gave, afterwards."""
        self._prepare, self._undone = prepare, done

    def archive(self, ids: Sequence[str], by: str) -> list[Revision]:
        """Takes memories out of normal recall; those that are archived, replaced or forgotten are passed over."""
        return self._in_parts(ids, by, archived=True)

    def restore(self, ids: Sequence[str], by: str) -> list[Revision]:
        """Brings archived memories back; those that were rejected are passed over: `undo` brings them back."""
        return self._in_parts(ids, by, archived=False)

    def move(self, choices: Iterable[Callable[[Queries], Sequence[str]]], by: str, *, archived: bool) -> list[Revision]:
        """Archives what is chosen while nothing else is revised or forgotten, or brings it back. Blocks.

        Each choice, of AT_ONCE memories at most that are the other way till then, is a revision of its own. It is made
        while log and tables still take the ones before it, so it must not hang on what another choice moves. Raises
        what keeps one of them out of the log; the others are there.
        """
        logged = []
        before, after = Fields(archived=not archived), Fields(archived=archived)
        with self.settled():
            try:
                for choose in choices:
                    changes = Alike(choose(self._queries), before, after)
                    if changes:
                        logged.append(self._submit(changes, ARCHIVED if archived else RESTORED, by))
            finally:
                # Whoever is next waits for the tables to have what the log has, and the log must have it by then.
                wait(logged)
            done = [future.result()[1] for future in logged]
            if done:
                self._catch_up()
        return done

    def hide(
        self, ids: Sequence[str], filter: Filter | None, by: str, *, id: str, history: bool
    ) -> tuple[Revision | None, Forgettable]:
        """The first half of a forget that can be undone, under its `id`: no answer shows the memories any more."""
        with self.settled():
            what = self._queries.resolve_forget(ids, filter, history=history, hidden=False)
            going = self._queries.by_ids(what.memory_ids)
            changes = [change(memory, state=MemoryState.FORGOTTEN) for memory in going.values()]
            changes += self.relinks(what)
            return self._log_it(changes, FORGOTTEN, by, id=id), what

    def relinks(self, what: Forgettable) -> list[Change]:
        """What a forget makes of those whose place the forgotten ones took. To be called with `settled` held."""
        going = self._queries.by_ids(what.memory_ids)
        behind = self._queries.replaced_by(what.memory_ids)
        with self._database.reader() as connection:
            return history.relinks(connection, going, behind.values())

    def bring_back(self) -> Revision | None:
        """What was replaced by a version of a turn that a newer one took the place of is there again, by the rule."""

        def plan(_: Queries) -> list[Change]:
            with self._database.reader() as connection:
                return history.stranded(connection, AT_ONCE)

        return self.revise(plan, RESTORED, RULE)

    def due(self, until: Micros) -> list[tuple[str, set[int]]]:
        """(id, turns) of each forget of before `until` that only hid its memories so far."""
        with self._database.reader() as connection:
            found = [
                (one.id, turns_of(connection, [changed.id for changed in one.changes], MemoryState.FORGOTTEN))
                for one in history.hidden(connection, until)
            ]
        return [(id, turns) for id, turns in found if turns]

    # Reading; what was acknowledged a moment ago included.

    def find(self, id: str) -> Deed | None:
        """A revision, a forget, or the handing in of the turn that a memory is of."""
        self._catch_up()
        with self._database.reader() as connection:
            return history.deed(connection, id)

    def latest(self, limit: int, by: str | None = None) -> list[Deed]:
        """What was done here, the newest first; by one author, where one is named."""
        self._catch_up()
        with self._database.reader() as connection:
            return history.latest(connection, limit, by)

    def last_of(self, by: str) -> Deed | None:
        """The author's last deed that is not undone yet. One undo after the other goes back in time, so undos are
        passed over here; what cannot be undone is not, or another thing than the last would be."""
        for deed in self.latest(_LOOKED_BACK, by):
            if deed.why != UNDONE and not deed.undone_by:
                return deed
        return None

    def obstacle(self, deed: Deed) -> str:
        """Why this cannot be undone just now; empty when it can."""
        if deed.why == history.SAID:
            if deed.versions:
                return (
                    f"this turn took the place of {deed.versions} earlier versions, and all would go; "
                    f"`edge forget {deed.id}` erases them"
                )
            return ""
        if deed.erased:
            return (
                "what was forgotten is erased for good; forgetting.grace_seconds in config.toml leaves some time to "
                "undo the next one"
            )
        try:
            self._inverse(deed.id)
        except (FailedPrecondition, NotFound) as error:
            return error.message
        return ""

    # With `settled` held, or for a look.

    def _inverse(self, id: str) -> list[Change]:
        with self._database.reader() as connection:
            revision = history.revision(connection, id)
        if revision is None:
            raise NotFound(
                "event_id: nothing of this id was done here; `edge undo --list` shows what was", field="event_id"
            )
        if revision.undone_by:
            raise FailedPrecondition(
                f"this was undone already; to have it again: edge undo {revision.undone_by}", reason=NOT_UNDOABLE
            )
        now = self._queries.by_ids([one.id for one in revision.changes])
        try:
            changes = inverse(revision.changes, now)
        except Conflict as conflict:
            with self._database.reader() as connection:
                later = history.later_change(connection, conflict.memory, revision.n)
            since = (
                f"by a newer version of its turn, or forgotten; `edge get {conflict.memory}` shows it"
                if later is None
                else f"({later.why}); first: edge undo {later.id}"
            )
            raise FailedPrecondition(
                f"memory {conflict.memory} was changed again since {since}", reason=NOT_UNDOABLE
            ) from None
        if not changes:
            raise FailedPrecondition(
                "nothing is left of this to undo: its memories are forgotten, or are as they were before",
                reason=NOT_UNDOABLE,
            )
        targets = {newer for one in changes if (newer := one.after.get("replaced_by"))}
        if gone := targets - self._queries.by_ids(sorted(targets)).keys():
            raise FailedPrecondition(
                f"memory {min(gone)}, which had taken the place of another, is forgotten", reason=NOT_UNDOABLE
            )
        return changes

    def _in_parts(self, ids: Sequence[str], by: str, *, archived: bool) -> list[Revision]:
        # Each once: a part is chosen before the tables have the one before it.
        ids = list(dict.fromkeys(ids))
        parts = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
        choices = [partial(Queries.archived_of, ids=part, archived=not archived) for part in parts]
        return self.move(choices, by, archived=archived)

    def _log_it(
        self, planned: Sequence[Change], why: str, by: str, *, id: str = "", undoes: str = ""
    ) -> Revision | None:
        changes = tuple(one for one in planned if one.after)
        if not changes:
            return None
        _, revision = self._submit(changes, why, by, id=id, undoes=undoes).result()
        self._catch_up()
        return revision

    def _submit(
        self, changes: Sequence[Change], why: str, by: str, *, id: str = "", undoes: str = ""
    ) -> Future[tuple[tuple[Event, ...], Revision]]:
        """Done once the log has it; the tables follow."""

        def plan(numbers: Allocator) -> tuple[list[Event], Revision]:
            event = Revised(numbers.next(), numbers.at, id or str(uuid7()), why, by, changes, undoes)
            return [event], event

        return self._log.submit(plan)

    def _check(self, changes: Sequence[Change], why: str, by: str) -> None:
        if why not in REASONS:
            raise ValueError(f"{why!r} is no reason of revisions.REASONS")
        if len(changes) > MOST:
            raise InvalidArgument(f"more than {MOST} memories at once; change them in parts")
        now = {id: one for id, one in self._queries.by_ids([one.id for one in changes]).items() if _shown(one)}
        if len({one.id for one in changes}) < len(changes):
            raise ValueError("a revision changes a memory once")
        targets = self._queries.by_ids([newer for one in changes if (newer := one.after.get("replaced_by"))])
        for one in changes:
            memory = now.get(one.id)
            if memory is None:
                raise NotFound(f"id: there is no memory {one.id} here", field="id")
            if any(getattr(memory, name) != value for name, value in one.before.items()):
                raise FailedPrecondition(f"memory {one.id} was changed meanwhile; look at it again", reason=CHANGED)
            newer = one.after.get("replaced_by")
            if newer and (newer == one.id or newer not in targets or not _shown(targets[newer])):
                raise NotFound(f"replaced_by: there is no other memory {newer} here", field="replaced_by")
            state = one.after.get("state", memory.state)
            if state in UNSHOWN_STATES and (why, by) not in _BY_ITSELF:
                raise ValueError("memories are forgotten by a forget, and become cold by a sweep")
            if state is MemoryState.REJECTED and not one.after.get("archived", memory.archived):
                raise ValueError("a rejected memory is archived")


def _shown(memory: Memory) -> bool:
    return memory.state not in UNSHOWN_STATES
