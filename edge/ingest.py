"""The write path, top to bottom: turns in, one answer when the log has them, one when they can be found."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol, TypeVar

from edge.errors import EdgeError, FailedPrecondition, VectorRefused
from edge.futures import promise
from edge.types import Piece, Turn, TurnState

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TurnResult:
    """`error` says why a turn is FILTERED or REJECTED; beside SEARCHABLE, that it is found by its words only.

    `rule` names what FILTERED it: a rule of noise, or "forgotten". `hidden` counts the secrets that were taken out of
    what was kept, by class.
    """

    state: TurnState
    fingerprint: bytes = b""
    memory_ids: tuple[str, ...] = ()
    error: EdgeError | None = None
    rule: str = ""
    hidden: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """The first answer, in the order of the turns; and the second, to come."""

    results: tuple[TurnResult, ...]
    # Gives, by fingerprint, the turns of which something has no vector, with the reason.
    searchable: Future[Mapping[bytes, EdgeError]]

    def found(self) -> tuple[TurnResult, ...]:
        """The second answer's results, once `searchable` is done: what was STORED is SEARCHABLE now."""
        by_words = self.searchable.result()
        return tuple(
            replace(result, state=TurnState.SEARCHABLE, error=by_words.get(result.fingerprint))
            if result.state is TurnState.STORED
            else result
            for result in self.results
        )


class Noise(Protocol):
    """Why a turn is not worth keeping: by which rule, and in words that hold nothing of its text."""

    @property
    def rule(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Admitted(Protocol):
    """A turn as it may be kept; `hidden` counts what was taken out of it, by class."""

    @property
    def turn(self) -> Turn: ...
    @property
    def noise(self) -> Noise | None: ...
    @property
    def hidden(self) -> Mapping[str, int]: ...


class Gate(Protocol):
    """What of a turn may be kept; it sees the turns of a session in their order, and is safe from any thread."""

    def admit(self, turn: Turn, before: Callable[[Turn], tuple[int, str]]) -> Admitted:
        """`before` is Ledger.before."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn, cut into pieces and ready for the log."""

    turn: Turn
    fingerprint: bytes
    pieces: tuple[Piece, ...]
    hidden: Mapping[str, int] = field(default_factory=dict)
    noise: Noise | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into the log together. `tally` counts what does not: `noise/<rule>`, `secret/<class>`."""

    drafts: tuple[Draft, ...]
    tally: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sample:
    """A turn that a rule of noise kept out, for its owner to look up at its source. `length` is in characters."""

    rule: str
    source: str
    session: str
    seq: int
    length: int


class Ledger(Protocol):
    """What the write path asks of a space's ledger."""

    def append(self, decide: Callable[[], Batch]) -> Future[Future[tuple[int, ...]]]:
        """Runs `decide` where no other append runs, logs what it picks, and answers when that is on disk.

        The inner future gives the rowids of the drafts' pieces, when the database has them.
        """
        ...

    def known(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        """The memory ids of those that the database has."""
        ...

    def before(self, turn: Turn) -> tuple[int, str]:
        """(seq, end of the text) of what is kept of this turn or, where nothing is, of the one before it there;
        (-1, "") where there is none."""
        ...

    def forgotten(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Those that were forgotten, and must not come back by themselves."""
        ...

    def searchable(self, rowids: Sequence[int]) -> Future[dict[int, VectorRefused]]:
        """Done when these rows are in the index, but for those that it gives: they have no vector, and why."""
        ...

    def found(self, ids: Sequence[str]) -> Future[None]:
        """Done when these memories, logged before, are in the index."""
        ...


FORGOTTEN = "FORGOTTEN"
NOISE = "NOISE"
WORDS_ONLY = "WORDS_ONLY"
# Of each rule.
_SAMPLES = 3
# Turns that were kept out, and are not counted again when they are sent again: more than a client has on its way.
_COUNTED = 4096


@dataclass(eq=False)
class Ingest:
    """The write path of one space. `cut` makes the pieces of a text; all must be safe from any thread."""

    ledger: Ledger
    gate: Gate
    cut: Callable[[str], tuple[Piece, ...]]
    # Fingerprints that the log has and the database not yet; touched on the log's thread and the database's.
    _recent: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    _samples: dict[str, deque[Sample]] = field(default_factory=dict)
    # Fingerprints of what was kept out and counted, the newest last. Only here: of noise nothing is kept on the disk.
    _counted: dict[bytes, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def store(self, turns: Sequence[Turn]) -> Future[Stored]:
        """Fails as a whole only when the log cannot be written: DiskFull, ReadOnly. Nothing is kept then.

        Looks at every character of the turns before it returns: 50 ms for 1 MiB.
        """
        drafts = [self._draft(turn) for turn in turns]
        results: list[TurnResult] = []
        chosen: list[Draft] = []
        noise: dict[bytes, str] = {}

        def decide() -> Batch:
            results.extend(self._judge(drafts, chosen))
            with self._lock:
                self._recent.update((draft.fingerprint, _ids(draft)) for draft in chosen)
            noise.update(self._new_noise(results))
            return Batch(tuple(chosen), _tally(results, noise))

        answer: Future[Stored] = promise()

        def durable(logged: Future[Future[tuple[int, ...]]]) -> None:
            error = logged.exception()
            if error is not None:
                self._settled(chosen)
                with self._lock:
                    for print_ in noise:
                        self._counted.pop(print_, None)
                answer.set_exception(error)
                return
            own: Future[Mapping[bytes, EdgeError]] = promise()
            logged.result().add_done_callback(lambda rows: self._applied(rows, chosen, own))
            # A repeat's second answer may be relied on as much as a first-comer's.
            repeated = [id_ for result in results if result.state is TurnState.DUPLICATE for id_ in result.memory_ids]
            searchable = _after(own, self.ledger.found(repeated)) if repeated else own
            answer.set_result(Stored(tuple(results), searchable))

        self.ledger.append(decide).add_done_callback(durable)
        return answer

    def samples(self) -> tuple[Sample, ...]:
        """The last turns that each rule of noise kept out since the space was opened, the newest of a rule last."""
        with self._lock:
            return tuple(sample for samples in self._samples.values() for sample in samples)

    def forget_samples(self) -> None:
        """The names in them may be what is being forgotten."""
        with self._lock:
            self._samples.clear()
            self._counted.clear()

    def _draft(self, turn: Turn) -> Draft:
        admitted = self.gate.admit(turn, self.ledger.before)
        clean, noise = admitted.turn, admitted.noise
        # By what is kept: no hash of a secret stays behind, and sent again it is the same turn.
        pieces = self.cut(clean.text) if noise is None else ()
        return Draft(clean, clean.fingerprint(), pieces, admitted.hidden, noise)

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
                results.append(TurnResult(TurnState.FILTERED, print_, error=error, rule="forgotten"))
            elif print_ in seen:
                results.append(TurnResult(TurnState.DUPLICATE, print_, seen[print_]))
            elif draft.noise is not None:
                results.append(self._filtered(draft, draft.noise))
            else:
                seen[print_] = _ids(draft)
                chosen.append(draft)
                results.append(TurnResult(TurnState.STORED, print_, seen[print_], hidden=draft.hidden))
        return results

    def _filtered(self, draft: Draft, noise: Noise) -> TurnResult:
        turn, rule = draft.turn, noise.rule
        with self._lock:
            samples = self._samples.setdefault(rule, deque(maxlen=_SAMPLES))
            samples.append(Sample(rule, turn.source, turn.session, turn.seq, len(turn.text)))
        error = FailedPrecondition(
            f"kept out as noise ({rule}): {noise.reason}; to keep such turns, the box's owner adds {rule} to "
            "admission.keep in config.toml",
            reason=NOISE,
        )
        return TurnResult(TurnState.FILTERED, draft.fingerprint, error=error, rule=rule)

    def _new_noise(self, results: Sequence[TurnResult]) -> dict[bytes, str]:
        """What a rule of noise kept out, by fingerprint, and was not counted a moment ago; it is from now on."""
        found: dict[bytes, str] = {}
        with self._lock:
            for result in results:
                if result.error is not None and result.error.reason == NOISE:
                    if result.fingerprint not in self._counted:
                        found[result.fingerprint] = result.rule
                    self._counted.pop(result.fingerprint, None)
                    self._counted[result.fingerprint] = None
            for print_ in list(islice(self._counted, max(0, len(self._counted) - _COUNTED))):
                del self._counted[print_]
        return found

    def _applied(
        self,
        rows: Future[tuple[int, ...]],
        chosen: Sequence[Draft],
        searchable: Future[Mapping[bytes, EdgeError]],
    ) -> None:
        error = rows.exception()
        if error is not None:
            # The log has them, so their fingerprints stay known: a repeat must not be logged again.
            searchable.set_exception(error)
            return
        self._settled(chosen)
        rowids = rows.result()
        self.ledger.searchable(rowids).add_done_callback(
            lambda done: searchable.set_result(_words_only(chosen, rowids, done.result()))
        )

    def _settled(self, drafts: Sequence[Draft]) -> None:
        with self._lock:
            for draft in drafts:
                self._recent.pop(draft.fingerprint, None)


def _words_only(
    drafts: Sequence[Draft], rowids: Sequence[int], refused: Mapping[int, VectorRefused]
) -> Mapping[bytes, EdgeError]:
    """By fingerprint; `rowids` are those of the drafts' pieces, in order."""
    if not refused:
        return {}
    found: dict[bytes, EdgeError] = {}
    left = iter(rowids)
    for draft in drafts:
        why = [refused[rowid] for rowid in islice(left, len(draft.pieces)) if rowid in refused]
        if why:
            part = f"{len(why)} of the {len(draft.pieces)} pieces of this turn: " if len(draft.pieces) > 1 else ""
            found[draft.fingerprint] = FailedPrecondition(part + why[0].message, reason=WORDS_ONLY)
    return found


def _after(own: Future[_T], other: Future[None]) -> Future[_T]:
    """Done when both are, with the first one's result; or when one is met that failed, with its error."""
    done: Future[_T] = promise()

    def second(settled: Future[None]) -> None:
        error = settled.exception()
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(own.result())

    def first(settled: Future[_T]) -> None:
        error = settled.exception()
        if error is not None:
            done.set_exception(error)
        else:
            other.add_done_callback(second)

    own.add_done_callback(first)
    return done


def _tally(results: Sequence[TurnResult], noise: Mapping[bytes, str]) -> Mapping[str, int]:
    """What was kept out by a rule of noise, and what was taken out of what is kept."""
    counts: Counter[str] = Counter(f"noise/{rule}" for rule in noise.values())
    for result in results:
        for name, count in result.hidden.items():
            counts[f"secret/{name}"] += count
    return counts


def _ids(draft: Draft) -> tuple[str, ...]:
    return tuple(piece.id for piece in draft.pieces)
