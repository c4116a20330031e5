"""The write path, top to bottom: turns in, one answer when the log has them, one when they can be found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from edge.errors import EdgeError, FailedPrecondition
from edge.futures import promise
from edge.types import Piece, Turn, TurnState


@dataclass(frozen=True, slots=True)
class TurnResult:
    state: TurnState
    fingerprint: bytes = b""
    memory_ids: tuple[str, ...] = ()
    error: EdgeError | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """The first answer, in the order of the turns; and the second, to come."""

    results: tuple[TurnResult, ...]
    searchable: Future[None]

    def found(self) -> tuple[TurnResult, ...]:
        """The second answer's results: what was STORED is SEARCHABLE now."""
        return tuple(
            replace(result, state=TurnState.SEARCHABLE) if result.state is TurnState.STORED else result
            for result in self.results
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn, cut into pieces and ready for the log."""

    turn: Turn
    fingerprint: bytes
    pieces: tuple[Piece, ...]


class Ledger(Protocol):
    """What the write path asks of a space's ledger."""

    def append(self, decide: Callable[[], Sequence[Draft]]) -> Future[Future[tuple[int, ...]]]:
        """Runs `decide` where no other append runs, logs what it picks, and answers when that is on disk.

        The inner future gives the rowids of the drafts' pieces, when the database has them.
        """
        ...

    def known(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        """The memory ids of those that the database has."""
        ...

    def forgotten(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Those that were forgotten, and must not come back by themselves."""
        ...

    def searchable(self, rowids: Sequence[int]) -> Future[None]:
        """Done when these rows are in the index."""
        ...

    def found(self, ids: Sequence[str]) -> Future[None]:
        """Done when these memories, logged before, are in the index."""
        ...


FORGOTTEN = "FORGOTTEN"


@dataclass(eq=False)
class Ingest:
    """The write path of one space. `cut` makes the pieces of a text; both must be safe from any thread."""

    ledger: Ledger
    cut: Callable[[str], tuple[Piece, ...]]
    # Fingerprints that the log has and the database not yet; touched on the log's thread and the database's.
    _recent: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def store(self, turns: Sequence[Turn]) -> Future[Stored]:
        """Fails as a whole only when the log cannot be written: DiskFull, ReadOnly. Nothing is kept then."""
        drafts = [Draft(turn, turn.fingerprint(), self.cut(turn.text)) for turn in turns]
        results: list[TurnResult] = []
        chosen: list[Draft] = []

        def decide() -> Sequence[Draft]:
            results.extend(self._judge(drafts, chosen))
            with self._lock:
                self._recent.update((draft.fingerprint, _ids(draft)) for draft in chosen)
            return chosen

        answer: Future[Stored] = promise()

        def durable(logged: Future[Future[tuple[int, ...]]]) -> None:
            error = logged.exception()
            if error is not None:
                self._settled(chosen)
                answer.set_exception(error)
                return
            own: Future[None] = promise()
            logged.result().add_done_callback(lambda rows: self._applied(rows, chosen, own))
            # A repeat's second answer may be relied on as much as a first-comer's.
            repeated = [id_ for result in results if result.state is TurnState.DUPLICATE for id_ in result.memory_ids]
            waits = [own, self.ledger.found(repeated)] if repeated else [own]
            answer.set_result(Stored(tuple(results), _all(waits)))

        self.ledger.append(decide).add_done_callback(durable)
        return answer

    def _judge(self, drafts: Sequence[Draft], chosen: list[Draft]) -> list[TurnResult]:
        fingerprints = [draft.fingerprint for draft in drafts]
        # In this order: what leaves `recent` is in the database by then.
        with self._lock:
            recent = {print_: self._recent[print_] for print_ in fingerprints if print_ in self._recent}
        seen = {**self.ledger.known(fingerprints), **recent}
        forgotten = self.ledger.forgotten(fingerprints)
        results = []
        for draft in drafts:
            print_ = draft.fingerprint
            if print_ in forgotten:
                error = FailedPrecondition(
                    "this turn was forgotten and its source cannot bring it back; say it anew to keep it",
                    reason=FORGOTTEN,
                )
                results.append(TurnResult(TurnState.FILTERED, print_, error=error))
            elif print_ in seen:
                results.append(TurnResult(TurnState.DUPLICATE, print_, seen[print_]))
            else:
                seen[print_] = _ids(draft)
                chosen.append(draft)
                results.append(TurnResult(TurnState.STORED, print_, seen[print_]))
        return results

    def _applied(self, rows: Future[tuple[int, ...]], chosen: Sequence[Draft], searchable: Future[None]) -> None:
        error = rows.exception()
        if error is not None:
            # The log has them, so their fingerprints stay known: a repeat must not be logged again.
            searchable.set_exception(error)
            return
        self._settled(chosen)
        self.ledger.searchable(rows.result()).add_done_callback(lambda _: searchable.set_result(None))

    def _settled(self, drafts: Sequence[Draft]) -> None:
        with self._lock:
            for draft in drafts:
                self._recent.pop(draft.fingerprint, None)


def _all(futures: Sequence[Future[None]]) -> Future[None]:
    """Done when each of them is, or when the first that failed is met, with its error."""
    done: Future[None] = promise()
    left = iter(futures)

    def go_on(settled: Future[None] | None) -> None:
        while settled is None or (error := settled.exception()) is None:
            settled = next(left, None)
            if settled is None:
                done.set_result(None)
                return
            if not settled.done():
                settled.add_done_callback(go_on)
                return
        done.set_exception(error)

    go_on(None)
    return done


def _ids(draft: Draft) -> tuple[str, ...]:
    return tuple(piece.id for piece in draft.pieces)
