"""The write path over a ledger whose every step the test takes by hand."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import DataLoss, DiskFull, VectorRefused
from edge.futures import promise
from edge.ingest import Admitted, Batch, Draft, Ingest, Stored
from edge.types import Piece, Turn, TurnState

SAID = Turn("test", "s", 0, "user", 1_000_000, "说过的话")
STORED, DUPLICATE, FILTERED = TurnState.STORED, TurnState.DUPLICATE, TurnState.FILTERED


class Ledger:
    """Logs at once, and gives rows and vectors when the test says so."""

    def __init__(self) -> None:
        self.logged: list[Draft] = []
        self.tally: Counter[str] = Counter()
        self.log_error: Exception | None = None
        self.rows: list[tuple[Sequence[Draft], Future[tuple[int, ...]]]] = []
        self.table: dict[bytes, tuple[str, ...]] = {}
        self.erased: set[bytes] = set()
        self.searches: list[Future[Any]] = []
        self.asked: list[tuple[str, ...]] = []
        self.refused: dict[int, VectorRefused] = {}

    def append(self, decide: Callable[[], Batch]) -> Future[Future[tuple[int, ...]]]:
        batch = decide()
        drafts = list(batch.drafts)
        answer: Future[Future[tuple[int, ...]]] = promise()
        if self.log_error is not None:
            answer.set_exception(self.log_error)
            return answer
        self.logged += drafts
        self.tally.update(batch.tally)
        rows: Future[tuple[int, ...]] = promise()
        if drafts:
            self.rows.append((drafts, rows))
        else:
            rows.set_result(())
        answer.set_result(rows)
        return answer

    def apply(self) -> None:
        """The database takes the next batch."""
        drafts, rows = self.rows.pop(0)
        self.table.update((draft.fingerprint, tuple(piece.id for piece in draft.pieces)) for draft in drafts)
        rows.set_result(tuple(range(sum(len(draft.pieces) for draft in drafts))))

    def index(self) -> None:
        """All that is searched for can be found now."""
        while self.searches:
            self.searches.pop(0).set_result(dict(self.refused))

    def known(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        return {print_: self.table[print_] for print_ in fingerprints if print_ in self.table}

    def before(self, turn: Turn) -> tuple[int, str]:
        return turn.seq, "before"

    def forgotten(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        return self.erased & set(fingerprints)

    def searchable(self, rowids: Sequence[int]) -> Future[dict[int, VectorRefused]]:
        future: Future[dict[int, VectorRefused]] = promise()
        if rowids:
            self.searches.append(future)
        else:
            future.set_result({})
        return future

    def found(self, ids: Sequence[str]) -> Future[None]:
        self.asked.append(tuple(ids))
        future: Future[None] = promise()
        self.searches.append(future)
        return future


@dataclasses.dataclass
class Found:
    """A turn as the gate below lets it through."""

    turn: Turn
    noise: Rule | None = None
    hidden: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Rule:
    rule: str
    reason: str


class Gate:
    """Digits are secrets, and a text of dots is noise."""

    def admit(self, turn: Turn, before: Callable[[Turn], tuple[int, str]]) -> Admitted:
        assert before(turn) == (turn.seq, "before")
        digits = sum(map(str.isdigit, turn.text))
        clean = dataclasses.replace(turn, text=re.sub(r"\d", "#", turn.text))
        noise = Rule("dots", "it is dots") if not turn.text.strip(".") else None
        return Found(clean, noise, {"digit": digits} if digits else {})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def ingest(ledger: Ledger) -> Ingest:
    return Ingest(ledger, Gate(), cut)


def cut(text: str) -> tuple[Piece, ...]:
    return tuple(Piece(f"{text}-{n}", n, n + 1) for n in range(min(2, len(text))))


def turns(*texts: str) -> list[Turn]:
    return [dataclasses.replace(SAID, text=text, seq=seq) for seq, text in enumerate(texts)]


def states(stored: Stored) -> list[TurnState]:
    return [result.state for result in stored.results]


def test_a_turn_is_stored_once_logged_and_searchable_once_found(ingest: Ingest, ledger: Ledger) -> None:
    stored = ingest.store(turns("甲乙", "丙")).result(0)
    assert states(stored) == [STORED, STORED]
    assert stored.results[0].memory_ids == ("甲乙-0", "甲乙-1")
    assert stored.results[0].fingerprint == turns("甲乙")[0].fingerprint()
    ledger.apply()
    assert not stored.searchable.done()
    ledger.index()
    stored.searchable.result(0)
    assert [result.state for result in stored.found()] == [TurnState.SEARCHABLE] * 2


def test_a_turn_twice_in_one_message_is_logged_once(ingest: Ingest, ledger: Ledger) -> None:
    stored = ingest.store([SAID, SAID, SAID]).result(0)
    assert states(stored) == [STORED, DUPLICATE, DUPLICATE]
    assert len(ledger.logged) == 1
    assert len({result.memory_ids for result in stored.results}) == 1


def test_a_turn_that_the_log_has_and_the_database_not_yet_is_a_duplicate(ingest: Ingest, ledger: Ledger) -> None:
    first = ingest.store([SAID]).result(0)
    again = ingest.store([SAID]).result(0)
    assert states(again) == [DUPLICATE]
    assert again.results[0].memory_ids == first.results[0].memory_ids
    assert not again.searchable.done()
    ledger.apply()
    ledger.index()
    assert again.searchable.done()
    assert [result.state for result in again.found()] == [DUPLICATE]


def test_a_turn_that_the_database_has_is_a_duplicate(ingest: Ingest, ledger: Ledger) -> None:
    ingest.store([SAID]).result(0)
    ledger.apply()
    again = ingest.store([SAID]).result(0)
    assert states(again) == [DUPLICATE]
    assert ledger.asked == [again.results[0].memory_ids]


def test_what_the_log_could_not_take_is_not_known(ingest: Ingest, ledger: Ledger) -> None:
    ledger.log_error = DiskFull("no room")
    failed = ingest.store([SAID])
    with pytest.raises(DiskFull):
        failed.result(0)
    ledger.log_error = None
    assert states(ingest.store([SAID]).result(0)) == [STORED]


def test_what_the_database_could_not_take_stays_known_and_is_told(ingest: Ingest, ledger: Ledger) -> None:
    stored = ingest.store([SAID]).result(0)
    _, rows = ledger.rows.pop()
    rows.set_exception(DataLoss("damaged"))
    with pytest.raises(DataLoss):
        stored.searchable.result(0)
    assert states(ingest.store([SAID]).result(0)) == [DUPLICATE]
    assert len(ledger.logged) == 1


def test_a_turn_with_a_piece_that_has_no_vector_is_searchable_and_says_by_what(ingest: Ingest, ledger: Ledger) -> None:
    stored = ingest.store(turns("甲乙", "丙丁", "戊")).result(0)
    ledger.apply()
    # Rows 0 and 1 are the first turn's pieces, 2 and 3 the second's.
    ledger.refused = {3: VectorRefused("no vector", reason="NO_MEMORY"), 4: VectorRefused("none either")}
    ledger.index()
    whole, part, single = stored.found()
    assert [result.state for result in (whole, part, single)] == [TurnState.SEARCHABLE] * 3
    assert whole.error is None
    assert part.error is not None
    assert (part.error.reason, part.error.message) == ("WORDS_ONLY", "1 of the 2 pieces of this turn: no vector")
    assert single.error is not None
    assert single.error.message == "none either"


def test_a_forgotten_turn_does_not_come_back_by_itself(ingest: Ingest, ledger: Ledger) -> None:
    ledger.erased = {SAID.fingerprint()}
    other = dataclasses.replace(SAID, seq=1)
    stored = ingest.store([SAID, other]).result(0)
    assert states(stored) == [FILTERED, STORED]
    error = stored.results[0].error
    assert error is not None
    assert error.reason == "FORGOTTEN"
    assert [draft.turn for draft in ledger.logged] == [other]


def test_what_is_kept_is_what_the_gate_left_of_it_and_its_fingerprint_is_of_that(
    ingest: Ingest, ledger: Ledger
) -> None:
    (result,) = ingest.store(turns("门牌12号")).result(0).results
    (draft,) = ledger.logged
    assert (draft.turn.text, result.hidden) == ("门牌##号", {"digit": 2})
    assert result.fingerprint == draft.fingerprint == turns("门牌##号")[0].fingerprint()
    assert ledger.tally == {"secret/digit": 2}
    assert states(ingest.store(turns("门牌12号")).result(0)) == [DUPLICATE]
    assert ledger.tally == {"secret/digit": 2}


def test_noise_is_kept_out_by_its_rule_counted_once_and_its_neighbours_go_on(ingest: Ingest, ledger: Ledger) -> None:
    stored = ingest.store(turns("甲乙", "...", "丙")).result(0)
    assert states(stored) == [STORED, FILTERED, STORED]
    assert [draft.turn.text for draft in ledger.logged] == ["甲乙", "丙"]
    noise = stored.results[1]
    assert noise.error is not None
    assert (noise.rule, noise.error.reason, noise.memory_ids) == ("dots", "NOISE", ())
    assert noise.error.message.startswith("kept out as noise (dots): it is dots; ")
    # Sent again after a lost connection it is answered again, and counted once.
    assert states(ingest.store([dataclasses.replace(SAID, seq=1, text="...")]).result(0)) == [FILTERED]
    assert ledger.tally == {"noise/dots": 1}
    assert states(ingest.store([dataclasses.replace(SAID, seq=3, text="...")]).result(0)) == [FILTERED]
    assert ledger.tally == {"noise/dots": 2}
    ledger.apply()
    ledger.index()
    assert [result.state for result in stored.found()] == [TurnState.SEARCHABLE, FILTERED, TurnState.SEARCHABLE]


def test_the_last_three_of_each_rule_are_told_without_their_text(ingest: Ingest) -> None:
    for seq in range(5):
        ingest.store([dataclasses.replace(SAID, seq=seq, text="." * (seq + 1))]).result(0)
    assert [(one.rule, one.source, one.session, one.seq, one.length) for one in ingest.samples()] == [
        ("dots", "test", "s", seq, seq + 1) for seq in (2, 3, 4)
    ]
    ingest.forget_samples()
    assert ingest.samples() == ()


def test_what_was_kept_once_is_a_duplicate_also_when_it_would_be_noise_now(ingest: Ingest, ledger: Ledger) -> None:
    dots = dataclasses.replace(SAID, text="..")
    ledger.table[dots.fingerprint()] = ("kept",)
    (result,) = ingest.store([dots]).result(0).results
    assert (result.state, result.memory_ids) == (DUPLICATE, ("kept",))


def test_what_was_forgotten_says_so_before_anything_else(ingest: Ingest, ledger: Ledger) -> None:
    dots = dataclasses.replace(SAID, text="..")
    ledger.erased = {dots.fingerprint()}
    (result,) = ingest.store([dots]).result(0).results
    assert (result.state, result.rule) == (FILTERED, "forgotten")
    assert ledger.tally == {}


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), max_size=8), st.data())
def test_whatever_is_sent_again_each_turn_is_logged_once(batches: list[list[int]], data: st.DataObject) -> None:
    ledger = Ledger()
    ingest = Ingest(ledger, Gate(), cut)
    for batch in batches:
        stored = ingest.store([dataclasses.replace(SAID, seq=seq) for seq in batch]).result(0)
        assert set(states(stored)) <= {STORED, DUPLICATE}
        while ledger.rows and data.draw(st.booleans()):
            ledger.apply()
        if data.draw(st.booleans()):
            ledger.index()
    logged = [draft.turn.seq for draft in ledger.logged]
    assert sorted(logged) == sorted({seq for batch in batches for seq in batch})
