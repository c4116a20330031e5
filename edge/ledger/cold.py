"""Moving turns to the cold files and back: at each moment all that they say is in one place at least."""

# ruff: noqa: S608  # statements are put together from constants

from __future__ import annotations

import dataclasses
import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone

from edge.errors import EdgeError, FailedPrecondition
from edge.ledger.database import Database
from edge.ledger.events import TurnSaid, decode
from edge.ledger.log import Log
from edge.ledger.queries import Queries
from edge.ledger.revising import Revisions
from edge.ledger.revisions import COOLED, NOT_UNDOABLE, RULE, Change, Revision, change
from edge.ledger.rows import COLD, UNFOUND_STATES
from edge.ports import Clock
from edge.types import MemoryState

logger = logging.getLogger(__name__)


class Cold:
    """Of one space.

    On the way there: the lines go to the cold file, durably; then a revision makes the memories COLD, so that nothing
    finds them; then the log's lines lose what they say, and last the rows do. On the way back: the rows, the log's
    lines, the undoing, the cold file. Killed at any point, `resume` finishes the former, and the latter is asked for
    again. What stays of a cold turn is its name, its time, its tags and its fingerprint: its source is told
    DUPLICATE, and a forget finds it.
    """

    def __init__(self, log: Log, database: Database, queries: Queries, revisions: Revisions, clock: Clock) -> None:
        self._log = log
        self._database = database
        self._queries = queries
        self._revisions = revisions
        self._clock = clock
        revisions.before_undo(self._bring_back, self._brought_back)

    def move(self, choose: Callable[[], Sequence[int]]) -> Revision | None:
        """Moves the turns that are chosen while nothing else is revised or forgotten; None for nothing. Blocks.

        Raises DiskFull, ReadOnly, Unavailable: nothing is lost, and `resume` or the next move does the rest.
        """
        moved: dict[int, TurnSaid] = {}
        month = datetime.fromtimestamp(self._clock.now() / 1e6, timezone.utc).strftime("%Y-%m")

        def plan(queries: Queries) -> list[Change]:
            lines = self._log.lines(choose())
            moved.update(_turns(lines))
            if not moved:
                return []
            self._log.cold.append(month, [lines[n] for n in sorted(moved)])
            going = queries.by_ids([piece.id for said in moved.values() for piece in said.pieces])
            return [change(memory, state=MemoryState.COLD) for memory in going.values()]

        done = self._revisions.revise(plan, COOLED, RULE)
        self._strip(moved)
        return done

    def moved_by(self, id: str) -> str:
        """The revision that moved this memory; empty for one that is not cold."""
        with self._database.reader() as connection:
            found = connection.execute(
                "SELECT r.id FROM memories m JOIN revised v ON v.memory = m.id JOIN revisions r ON r.n = v.n "
                f"WHERE m.id = ? AND m.state = {COLD} AND r.why = ? AND r.undone_by = '' ORDER BY r.n DESC LIMIT 1",
                (id, COOLED),
            ).fetchone()
        return found[0] if found else ""

    def resume(self) -> None:
        """Finishes what was interrupted. Raises as `move`."""
        # What no cold file has stays where it is.
        self._strip(_turns(self._log.cold.find(self._unstripped())))

    def _unstripped(self) -> set[int]:
        """The turns that are cold, and whose rows still have what they say."""
        with self._database.reader() as connection:
            rows = connection.execute(
                # As the index has it, word for word; without the index it would be slow, and an error is better.
                "SELECT turn_n FROM memories INDEXED BY memories_unstripped WHERE state = 7 AND text <> ''"
            )
            return {n for (n,) in rows}

    def _strip(self, turns: Mapping[int, TurnSaid]) -> None:
        if not turns:
            return
        with self._revisions.settled():
            # An undo may have brought some back since they were read, and taken them out of the cold file.
            still = self._unstripped()
            self._strip_all({n: said for n, said in turns.items() if n in still})

    def _strip_all(self, turns: Mapping[int, TurnSaid]) -> None:
        if not turns:
            return
        self._log.replace(
            {
                n: dataclasses.replace(said, turn=dataclasses.replace(said.turn, text="", attributes=b""), cold=True)
                for n, said in turns.items()
            }
        )
        numbers = json.dumps(sorted(turns))

        def strip(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"UPDATE memories SET text = '', attributes = x'' WHERE state = {COLD} "
                "AND turn_n IN (SELECT value FROM json_each(?))",
                (numbers,),
            )

        self._database.submit(strip).result()

    def _bring_back(self, changes: Sequence[Change]) -> Collection[int]:
        """What the cold ones among these say, back into log and rows. The numbers of their turns."""
        if any(
            one.after.get("state") is MemoryState.COLD and one.before["state"] not in UNFOUND_STATES for one in changes
        ):
            raise FailedPrecondition(
                "these were brought back from the cold file; they go there again by themselves when nobody uses them",
                reason=NOT_UNDOABLE,
            )
        numbers = self._cold_turns(
            one.id
            for one in changes
            if one.before.get("state") is MemoryState.COLD and one.after["state"] is not MemoryState.FORGOTTEN
        )
        if not numbers:
            return ()
        turns = _turns(self._log.cold.find(numbers))
        if missing := numbers - turns.keys():
            raise FailedPrecondition(
                f"{len(missing)} of these turns are in no cold file any more; bring log/cold back from a backup",
                reason=NOT_UNDOABLE,
            )
        rows = [
            (said.turn.text[piece.start : piece.end], said.turn.attributes, piece.id)
            for said in turns.values()
            for piece in said.pieces
        ]
        self._database.submit(
            lambda connection: (
                connection.executemany("UPDATE memories SET text = ?, attributes = ? WHERE id = ?", rows).rowcount
            )
        ).result()
        # After the rows: by them `resume` knows that this was not finished.
        self._log.replace(turns)
        return numbers

    def _brought_back(self, numbers: Collection[int]) -> None:
        try:
            self._log.cold.erase(numbers)
        except EdgeError as error:
            # It is in both then, which does no harm: a forget looks there too.
            logger.warning("what was brought back is still in the cold file as well: %s", error.message)

    def _cold_turns(self, ids: Iterable[str]) -> set[int]:
        with self._database.reader() as connection:
            sql = (
                f"SELECT DISTINCT turn_n FROM memories WHERE state = {COLD} AND id IN (SELECT value FROM json_each(?))"
            )
            return {n for (n,) in connection.execute(sql, (json.dumps(list(ids)),))}


def _turns(lines: Mapping[int, bytes]) -> dict[int, TurnSaid]:
    """Those of the lines that are turns, whole."""
    found = ((n, decode(line)) for n, line in lines.items())
    return {n: event for n, event in found if isinstance(event, TurnSaid) and not event.cold}
