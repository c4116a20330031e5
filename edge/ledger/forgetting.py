"""Forgetting in one space: at once and for good, or hidden first for as long as it may be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uuid6 import uuid7

from edge.errors import EdgeError
from edge.ledger import erase
from edge.ledger.cold import Cold
from edge.ledger.database import Database
from edge.ledger.log import Log
from edge.ledger.memories import Memories
from edge.ledger.queries import Queries
from edge.ledger.revising import Revisions
from edge.types import Filter, Micros, Receipt


class Forgetting:
    """Safe from any thread. `drop_indexed` takes rowids out of every index and snapshot; see erase.forget."""

    def __init__(
        self,
        log: Log,
        database: Database,
        memories: Memories,
        queries: Queries,
        revisions: Revisions,
        drop_indexed: Callable[[Sequence[int]], int],
        cold: Cold | None = None,
    ) -> None:
        # Why a forget, or a move to the cold file, could not be finished the last time that it was tried.
        self.unfinished: EdgeError | None = None
        self._parts = (log, database, memories, queries)
        self._cold = cold
        self._memories = memories
        self._queries = queries
        self._revisions = revisions
        self._drop_indexed = drop_indexed

    def forget(
        self,
        ids: Sequence[str],
        filter: Filter | None,
        *,
        dry_run: bool = False,
        by: str = "owner",
        grace: Micros = 0,
        id: str = "",
        history: bool = True,
    ) -> Receipt:
        """Erases, and blocks until nothing of it is on the disk; with a `grace` only hides, and `carry_out` erases.

        See erase.forget for what it raises, and forgets.forgettable for `history`. The receipt of a hidden one says
        when it will be erased; it may be undone before, by its id.
        """
        if not grace or dry_run:
            return erase.forget(
                *self._parts,
                ids=ids,
                filter=filter,
                dry_run=dry_run,
                history=history,
                # Whoever leaves time to undo names what is shown only.
                hidden=not grace,
                id=id,
                by=by,
                drop_indexed=self._drop_indexed,
                alone=self._revisions.settled(),
                relinks=self._revisions.relinks,
            )
        done, what = self._revisions.hide(ids, filter, by, id=id or str(uuid7()), history=history)
        if done is None:
            return erase.receipt("", what)
        marks = erase.marks_of(self._memories, self._queries, what)
        return erase.receipt(done.id, what, marks.values(), erased_at=done.at + grace)

    def finish(self, hidden_until: Micros | None) -> list[Receipt]:
        """What a crash or a full disk kept a forget or a move to the cold file from doing; and the forgets that have
        only hidden things, until then. The receipts of the latter. Raises as `forget`."""
        try:
            # First, since a cold file that is damaged stops the others each time.
            receipts = [] if hidden_until is None else self.carry_out(hidden_until)
            self.resume()
            if self._cold is not None:
                self._cold.resume()
        except EdgeError as error:
            self.unfinished = error
            raise
        self.unfinished = None
        return receipts

    def carry_out(self, until: Micros) -> list[Receipt]:
        """Erases what was hidden before `until`, each under the id that it was hidden under.

        Raises as `forget`, once all were tried: what keeps one from its end need not keep the others where they are.
        An Unfinished has the receipts of all that were carried out.
        """
        receipts: list[Receipt] = []
        failure: EdgeError | None = None
        for id, turns in self._revisions.due(until):
            try:
                # What these had replaced was seen to when they were hidden.
                receipts.append(
                    erase.forget(
                        *self._parts,
                        turns=turns,
                        id=id,
                        drop_indexed=self._drop_indexed,
                        alone=self._revisions.settled(),
                    )
                )
            except erase.Unfinished as error:  # noqa: PERF203  # see above
                receipts += error.receipts
                failure = failure or error
            except EdgeError as error:
                failure = error
        if isinstance(failure, erase.Unfinished):
            failure.receipts = receipts
        if failure is not None:
            raise failure
        return receipts

    def resume(self) -> None:
        """Finishes what a crash or a full disk left half done. Raises as `forget`."""
        erase.resume(*self._parts, drop_indexed=self._drop_indexed)
