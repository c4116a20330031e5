"""From rows to vectors, with a space and a model whose every step the test takes by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from edge.backlog import Backlog
from edge.errors import DeadlineExceeded, Exhausted, VectorRefused
from edge.futures import promise
from edge.types import Lane, Matrix, ModelInfo, RowIds, Vector

SECONDS = 10.0


class Clock:
    """Moves when the test says so; a backlog that waits for it is woken by the next `wake`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shelf:
    """Rows in a dict; what has a vector, was refused one or is gone is pending no more."""

    def __init__(self, name: str, rows: dict[int, str]) -> None:
        self._name = name
        self.rows = dict(rows)
        self.vectors: dict[int, float] = {}
        self.refused: dict[int, str] = {}
        self.reads: list[int] = []
        self.fail_reads: list[Exception] = []
        self.fail_keeps: list[Exception] = []
        self.before_answer: Any = lambda: None

    @property
    def name(self) -> str:
        return self._name

    def pending(self, model: str, after: int, limit: int) -> list[tuple[int, str]]:
        self.reads.append(after)
        if self.fail_reads:
            raise self.fail_reads.pop(0)
        open_rows = [row for row in sorted(self.rows) if row > after and row not in self.vectors | self.refused]
        found = [(row, self.rows[row]) for row in open_rows][:limit]
        self.before_answer()
        return found

    def keep(self, model: str, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        if self.fail_keeps:
            raise self.fail_keeps.pop(0)
        for rowid, vector in zip(rowids.tolist(), vectors, strict=True):
            if rowid in self.rows:
                self.vectors[rowid] = float(vector[0])
        kept: Future[RowIds] = promise()
        kept.set_result(np.array([row for row in rowids.tolist() if row in self.rows], np.int64))
        return kept

    def refuse(self, model: str, rowids: Sequence[int], reason: str) -> Future[None]:
        self.refused |= dict.fromkeys(rowids, reason)
        done: Future[None] = promise()
        done.set_result(None)
        return done


class Model:
    """Answers a text when the test says so; the text itself tells the vector's first number."""

    info = ModelInfo("fake", 2, "cpu", 1, 0)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open: dict[str, Future[Vector]] = {}
        self.full = 0
        self._news = threading.Condition()

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        assert lane is Lane.INGEST
        with self._news:
            if self.full:
                self.full -= 1
                raise Exhausted("full", retry_after=0.001)
            futures: list[Future[Vector]] = []
            for text in texts:
                self.asked.append(text)
                self.open[text] = Future()
                futures.append(self.open[text])
            self._news.notify_all()
            return futures

    def tokens(self, text: str) -> int:
        return len(text)

    def status(self) -> Any:
        raise AssertionError("the backlog asks no status")

    def wait_until_asked(self, count: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.asked) >= count, SECONDS), self.asked

    def answer(self, *texts: str) -> None:
        for text in texts:
            self.open.pop(text).set_result(np.array([float(text[1:]), 0.0], np.float32))

    def fail(self, text: str, error: Exception) -> None:
        self.open.pop(text).set_exception(error)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backlog(model: Model, clock: Clock) -> Iterator[Backlog]:
    backlog = Backlog({"fake": model}, monotonic=clock)
    backlog.start()
    yield backlog
    for text in list(model.open):
        model.answer(text)
    backlog.close()


def rows(*numbers: int) -> dict[int, str]:
    return {number: f"t{number}" for number in numbers}


def test_every_row_gets_its_vector(backlog: Backlog, model: Model) -> None:
    shelf = Shelf("a", rows(1, 2, 3))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1, 2, 3]})
    model.wait_until_asked(3)
    assert not done.done()
    model.answer("t2", "t3", "t1")
    done.result(SECONDS)
    assert shelf.vectors == {1: 1.0, 2: 2.0, 3: 3.0}
    assert model.asked == ["t1", "t2", "t3"]


def test_who_waits_hears_as_soon_as_its_own_rows_are_there(backlog: Backlog, model: Model, clock: Clock) -> None:
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    one, both = backlog.wait("a", {"fake": [1]}), backlog.wait("a", {"fake": [1, 2]})
    model.wait_until_asked(2)
    model.answer("t1")
    # Old enough to be flushed, without waiting for more.
    clock.now += 1
    backlog.wake("a")
    one.result(SECONDS)
    assert not both.done()
    model.answer("t2")
    both.result(SECONDS)


def test_nobody_waits_for_rows_that_have_their_vectors_or_never_were(backlog: Backlog, model: Model) -> None:
    backlog.attach(Shelf("a", rows(1)))
    model.wait_until_asked(1)
    model.answer("t1")
    backlog.wait("a", {"fake": [1, 99]}).result(SECONDS)
    backlog.wait("a", {"fake": []}).result(0)
    backlog.wait("no such space", {"fake": [1]}).result(0)


def test_more_rows_than_fit_at_once_all_come(backlog: Backlog, model: Model) -> None:
    shelf = Shelf("a", rows(*range(1, 701)))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": range(1, 701)})
    most = 0
    for count in range(1, 701):
        model.wait_until_asked(count)
        most = max(most, len(model.open))
        model.answer(f"t{count}")
    done.result(SECONDS)
    assert len(shelf.vectors) == 700
    assert most <= 256
    assert len(model.asked) == 700


def test_a_full_model_is_asked_again(backlog: Backlog, model: Model, clock: Clock) -> None:
    model.full = 3
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1, 2]})
    while len(model.asked) < 2:
        clock.now += 1
        backlog.wake("a")
    model.answer("t1", "t2")
    done.result(SECONDS)


def test_a_refused_text_is_noted_and_nobody_waits_for_it(backlog: Backlog, model: Model) -> None:
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1, 2]})
    model.wait_until_asked(2)
    model.fail("t1", VectorRefused("no vector for this"))
    model.answer("t2")
    done.result(SECONDS)
    assert {row: why.message for row, why in done.result(0).items()} == {1: "no vector for this"}
    assert shelf.refused == {1: "VECTOR_REFUSED"}
    assert shelf.vectors == {2: 2.0}


def test_a_text_that_memory_had_no_room_for_is_told_of_and_comes_again_later(
    backlog: Backlog, model: Model, clock: Clock
) -> None:
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    first, both = backlog.wait("a", {"fake": [1]}), backlog.wait("a", {"fake": [1, 2]})
    model.wait_until_asked(2)
    model.fail("t1", VectorRefused("no room", reason="NO_MEMORY"))
    assert set(first.result(SECONDS)) == {1}
    model.answer("t2")
    assert set(both.result(SECONDS)) == {1}
    # Not written down: it is pending still, also for the next start.
    assert shelf.refused == {}
    # Who asks for it meanwhile waits for nothing.
    backlog.wait("a", {"fake": [1]}).result(SECONDS)
    assert model.asked == ["t1", "t2"]
    clock.now += 3600
    backlog.wake("a")
    model.wait_until_asked(3)
    done = backlog.wait("a", {"fake": [1]})
    model.answer("t1")
    assert done.result(SECONDS) == {}
    assert shelf.vectors == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize("error", [DeadlineExceeded("late"), RuntimeError("boom")])
def test_what_failed_in_passing_is_tried_again(backlog: Backlog, model: Model, clock: Clock, error: Exception) -> None:
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1, 2]})
    model.wait_until_asked(2)
    model.fail("t1", error)
    model.answer("t2")
    clock.now += 2
    backlog.wake("a")
    model.wait_until_asked(3)
    assert not done.done()
    model.answer("t1")
    done.result(SECONDS)
    assert shelf.vectors == {1: 1.0, 2: 2.0}


def test_a_failure_while_the_next_rows_are_read_is_not_forgotten(backlog: Backlog, model: Model, clock: Clock) -> None:
    shelf = Shelf("a", rows(1))
    backlog.attach(shelf)
    first = backlog.wait("a", {"fake": [1]})
    model.wait_until_asked(1)
    failed: list[bool] = []

    def fail_now() -> None:
        # The backlog is in the middle of reading on: it has noted how far it is, and does not know of this yet.
        if not failed:
            failed.append(True)
            model.fail("t1", RuntimeError("boom"))

    shelf.before_answer = fail_now
    shelf.rows[2] = "t2"
    second = backlog.wait("a", {"fake": [2]})
    model.wait_until_asked(2)
    model.answer("t2")
    assert not first.done()
    clock.now += 2
    backlog.wake("a")
    model.wait_until_asked(3)
    assert model.asked == ["t1", "t2", "t1"]
    model.answer("t1")
    first.result(SECONDS)
    second.result(SECONDS)


def test_a_space_that_cannot_be_read_is_tried_again_and_holds_up_no_other(
    backlog: Backlog, model: Model, clock: Clock
) -> None:
    broken, well = Shelf("a", rows(1)), Shelf("b", rows(2))
    broken.fail_reads = [OSError("gone"), OSError("gone")]
    backlog.attach(broken)
    backlog.attach(well)
    model.wait_until_asked(1)
    assert model.asked == ["t2"]
    model.answer("t2")
    backlog.wait("b", {"fake": [2]}).result(SECONDS)
    done = backlog.wait("a", {"fake": [1]})
    while not model.open:
        clock.now += 2
        backlog.wake("a")
    model.answer("t1")
    done.result(SECONDS)
    assert broken.vectors == {1: 1.0}


def test_vectors_that_could_not_be_kept_are_tried_again_later_and_not_made_twice(
    backlog: Backlog, model: Model, clock: Clock
) -> None:
    shelf = Shelf("a", rows(1))
    shelf.fail_keeps = [OSError("disk full")]
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1]})
    model.wait_until_asked(1)
    model.answer("t1")
    while not done.done():
        clock.now += 2
        backlog.wake("a")
    done.result(SECONDS)
    assert shelf.vectors == {1: 1.0}
    assert model.asked == ["t1"]


def test_nobody_waits_for_what_is_gone(backlog: Backlog, model: Model) -> None:
    shelf = Shelf("a", rows(1, 2))
    backlog.attach(shelf)
    done = backlog.wait("a", {"fake": [1, 2]})
    model.wait_until_asked(2)
    del shelf.rows[1]
    backlog.gone("a", [1])
    model.answer("t1", "t2")
    done.result(SECONDS)
    assert shelf.vectors == {2: 2.0}


def test_who_waits_on_a_space_that_is_closed_is_let_go(backlog: Backlog, model: Model) -> None:
    backlog.attach(Shelf("a", rows(1)))
    done = backlog.wait("a", {"fake": [1]})
    model.wait_until_asked(1)
    backlog.detach("a")
    done.result(SECONDS)
    # What comes back for it late disturbs nobody.
    model.answer("t1")
    well = Shelf("b", rows(2))
    backlog.attach(well)
    model.wait_until_asked(2)
    model.answer("t2")
    backlog.wait("b", {"fake": [2]}).result(SECONDS)


def test_a_large_space_does_not_starve_a_small_one(backlog: Backlog, model: Model) -> None:
    large, small = Shelf("large", rows(*range(1, 601))), Shelf("small", rows(9001))
    backlog.attach(large)
    model.wait_until_asked(128)
    backlog.attach(small)
    helpings = 4 * 128
    for count in range(1, helpings):
        model.wait_until_asked(count)
        if f"t{count}" in model.open:
            model.answer(f"t{count}")
    # Its turn came before the large one's fourth helping.
    assert "t9001" in model.asked[:helpings]
    model.answer("t9001")
    backlog.wait("small", {"fake": [9001]}).result(SECONDS)


def test_closing_stops_the_feeding(model: Model) -> None:
    backlog = Backlog({"fake": model})
    backlog.start()
    backlog.attach(Shelf("a", rows(1)))
    model.wait_until_asked(1)
    backlog.close()
    backlog.wake("a")
    assert model.asked == ["t1"]
    # Closing one that never ran is fine too.
    Backlog({"fake": model}).close()


# Several models.


class Two:
    """A model for texts in "z", one for those in "e"; "b" goes to both. A shelf that knows each one's own."""

    def __init__(self, clock: Clock) -> None:
        self.models = {"zh": Model(), "en": Model()}
        self.backlog = Backlog(self.models, self.route, clock)

    @staticmethod
    def route(text: str) -> tuple[str, ...]:
        return {"z": ("zh",), "e": ("en",), "b": ("zh", "en")}[text[0]]


class TwoShelf:
    name = "a"

    def __init__(self, *texts: str) -> None:
        self.shelves = {model: Shelf("a", {int(text[1:]): text for text in texts}) for model in ("zh", "en")}

    def pending(self, model: str, after: int, limit: int) -> list[tuple[int, str]]:
        return self.shelves[model].pending(model, after, limit)

    def keep(self, model: str, rowids: RowIds, vectors: Matrix) -> Future[RowIds]:
        return self.shelves[model].keep(model, rowids, vectors)

    def refuse(self, model: str, rowids: Sequence[int], reason: str) -> Future[None]:
        return self.shelves[model].refuse(model, rowids, reason)


@pytest.fixture
def two(clock: Clock) -> Iterator[Two]:
    two = Two(clock)
    two.backlog.start()
    yield two
    for model in two.models.values():
        for text in list(model.open):
            model.answer(text)
    two.backlog.close()


def test_each_model_is_given_its_texts_and_the_others_are_written_down_as_not_for_it(two: Two) -> None:
    shelf = TwoShelf("z1", "e2", "b3")
    two.backlog.attach(shelf)
    done = two.backlog.wait("a", {"zh": [1, 3], "en": [2, 3]})
    for model, texts in (("zh", ["z1", "b3"]), ("en", ["e2", "b3"])):
        two.models[model].wait_until_asked(2)
        assert two.models[model].asked == texts
        assert not done.done()
        two.models[model].answer(*texts)
    assert done.result(SECONDS) == {}
    assert set(shelf.shelves["zh"].vectors) == {1, 3} and shelf.shelves["zh"].refused == {2: "NOT_ROUTED"}
    assert set(shelf.shelves["en"].vectors) == {2, 3} and shelf.shelves["en"].refused == {1: "NOT_ROUTED"}


def test_who_waits_for_what_is_not_for_a_model_waits_for_nothing(two: Two) -> None:
    two.backlog.attach(TwoShelf(*(f"z{n}" for n in range(1, 100))))
    assert two.backlog.wait("a", {"en": range(1, 100)}).result(SECONDS) == {}
    assert two.models["en"].asked == []


def test_a_long_way_past_what_is_not_for_a_model_holds_up_no_other(two: Two) -> None:
    shelf = TwoShelf(*(f"e{n}" for n in range(1, 1001)), "z2000")
    two.backlog.attach(shelf)
    # Nothing comes back meanwhile but what is asked first, so that "en" is fed as often as "zh" is.
    for count in range(1, 1001):
        two.models["en"].wait_until_asked(count)
        two.models["en"].answer(f"e{count}")
        if two.models["zh"].asked:
            break
    two.models["zh"].wait_until_asked(1)
    two.models["zh"].answer("z2000")
    two.backlog.wait("a", {"zh": [2000]}).result(SECONDS)


def test_a_text_of_two_models_is_found_by_words_only_when_neither_has_a_vector(two: Two) -> None:
    two.backlog.attach(TwoShelf("b1", "b2"))
    done = two.backlog.wait("a", {"zh": [1, 2], "en": [1, 2]})
    for model in two.models.values():
        model.wait_until_asked(2)
        model.fail("b1", VectorRefused("none"))
    two.models["zh"].fail("b2", VectorRefused("none"))
    two.models["en"].answer("b2")
    assert set(done.result(SECONDS)) == {1}


def test_closing_a_space_lets_those_go_who_wait_for_several_models(two: Two) -> None:
    two.backlog.attach(TwoShelf("b1"))
    done = two.backlog.wait("a", {"zh": [1], "en": [1]})
    two.backlog.detach("a")
    assert done.result(SECONDS) == {}
