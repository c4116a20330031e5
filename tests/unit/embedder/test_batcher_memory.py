"""The batcher when memory is short: what is passed over, for how long, and what its callers are told."""

import threading

import numpy as np
import pytest
from batcher_fakes import SOON, Governor, HandClock, ScriptedEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.config import Embedding
from edge.embedder.batcher import Batcher
from edge.embedder.fake import HashEmbedder
from edge.embedder.lanes import ASIDE, Entry, LaneQueue, Served
from edge.errors import EdgeError, Exhausted, Unavailable, VectorRefused
from edge.ports import Budget, Encoded
from edge.types import Lane, Pressure


@pytest.fixture
def model():
    return ScriptedEmbedder()


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def make(model, clock):
    made = []

    def build(governor, **changes):
        config = Embedding(**({"workers": 1, "batch_tokens": 64, "ingest_drain": 1e6} | changes))
        batcher = Batcher(model, governor, clock, config, patience=60.0)
        made.append(batcher)
        return batcher

    yield build
    model.gate.set()
    for batcher in made:
        batcher.close(SOON)


def ran(model):
    return [name for batch in model.batches for name in batch]


def test_a_text_too_long_for_memory_is_passed_over_until_there_is_room(make, model):
    governor = Governor(row_tokens=50)
    with make(governor) as batcher:
        long = batcher.submit(["long:60"], Lane.INGEST)[0]
        for short in batcher.submit(["a", "b", "c:50"], Lane.INGEST):
            short.result(SOON)
        assert not long.done()
        assert batcher.status().ingests == 1
        assert batcher.status().ingest_tokens == 60
        governor.values["row_tokens"] = 60
        batcher.check()
        long.result(SOON)
    assert ran(model)[-1] == "long"
    assert batcher.status().ingests == batcher.status().ingest_tokens == 0


def test_once_its_patience_is_over_it_is_left_to_its_words(make, model, clock):
    with make(Governor(row_tokens=50)) as batcher:
        long = batcher.submit(["long:60"], Lane.INGEST)[0]
        batcher.submit(["short"], Lane.INGEST)[0].result(SOON)
        clock.time += 59
        batcher.check()
        assert not long.done()
        clock.time += 1
        batcher.check()
        refusal = long.exception(SOON)
        assert isinstance(refusal, VectorRefused)
        assert refusal.reason == "NO_MEMORY"
        assert "words" in refusal.message
        # The lane goes on as if nothing had been.
        batcher.submit(["later"], Lane.INGEST)[0].result(SOON)
    assert "long" not in ran(model)


def test_waiting_in_a_slow_lane_is_not_waiting_for_memory(make, model, clock):
    governor = Governor(duty=0.0)
    with make(governor) as batcher:
        long = batcher.submit(["long:60"], Lane.INGEST)[0]
        clock.time += 1000
        governor.values |= {"duty": 1.0, "row_tokens": 50}
        batcher.check()
        batcher.submit(["short"], Lane.INGEST)[0].result(SOON)
        batcher.check()
        assert not long.done()
        governor.values["row_tokens"] = 60
        batcher.check()
        long.result(SOON)


def test_patience_with_memory_runs_out_while_all_ingests_stand_still(make, model, clock):
    with make(Governor(duty=0.0, threads=0, row_tokens=20)) as batcher:
        long, short = batcher.submit(["long:60", "short"], Lane.INGEST)
        batcher.check()
        clock.time += 60
        batcher.check()
        assert long.exception(SOON).reason == "NO_MEMORY"
        assert not short.done()
    assert ran(model) == ["short"]


def test_the_oldest_are_let_go_when_too_many_would_wait(make, model):
    with make(Governor(row_tokens=50)) as batcher:
        long = batcher.submit([f"l{n}:60" for n in range(ASIDE + 3)], Lane.INGEST)
        batcher.submit(["short"], Lane.INGEST)[0].result(SOON)
        batcher.check()
        assert [future.exception(SOON).reason for future in long[:3]] == ["NO_MEMORY"] * 3
        assert not any(future.done() for future in long[3:])


def test_without_any_memory_nothing_runs_and_callers_are_sent_away(make, model):
    governor = Governor(row_tokens=0)
    with make(governor, ingest_drain=10.0) as batcher:
        waiting = batcher.submit(["a:10"], Lane.INGEST)[0]
        batcher.check()
        with pytest.raises(Exhausted) as full:
            batcher.submit(["b"], Lane.INGEST)
        assert full.value.retry_after == 60.0
        assert batcher.status().tokens_per_second == 0
        with pytest.raises(Unavailable) as refusal:
            batcher.submit(["question"], Lane.RECALL)
        assert refusal.value.reason == "NO_MEMORY"
        assert model.batches == []
        governor.values["row_tokens"] = 100
        batcher.check()
        waiting.result(SOON)
        batcher.submit(["question"], Lane.RECALL)[0].result(SOON)


def test_a_recall_for_which_memory_shrank_while_it_waited_is_told(make, model):
    governor = Governor()
    batcher = make(governor)
    batcher.start()
    model.gate.clear()
    first = batcher.submit(["first"], Lane.RECALL)[0]
    ingest = batcher.submit(["ingest"], Lane.INGEST)[0]
    assert model.entered.acquire(timeout=SOON)
    assert model.entered.acquire(timeout=SOON)
    second = batcher.submit(["second:60"], Lane.RECALL)[0]
    governor.values["row_tokens"] = 50
    model.gate.set()
    assert isinstance(second.exception(SOON), Unavailable)
    first.result(SOON)
    ingest.result(SOON)
    assert "second" not in ran(model)


def test_the_departed_are_not_kept_aside(make, model, clock):
    with make(Governor(row_tokens=50)) as batcher:
        long = batcher.submit(["long:60"], Lane.INGEST)[0]
        batcher.submit(["short"], Lane.INGEST)[0].result(SOON)
        assert long.cancel()
        batcher.check()
        assert batcher.status().ingests == 0


def test_closing_does_not_run_what_memory_has_no_room_for(make, model):
    batcher = make(Governor(row_tokens=50, threads=0, duty=0.0))
    long, short = batcher.submit(["long:60", "short"], Lane.INGEST)
    batcher.start()
    batcher.close(SOON)
    assert short.result(0) is not None
    assert isinstance(long.exception(0), Unavailable)
    assert ran(model) == ["short"]


@pytest.mark.parametrize("failure", [MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")])
def test_a_batch_that_memory_fails_is_split_and_only_the_text_that_fails_alone_goes_by_words(make, model, failure):
    model.failures["huge"] = failure
    with make(Governor()) as batcher:
        huge, fine = batcher.submit(["huge", "fine"], Lane.INGEST)
        assert fine.result(SOON) is not None
        assert huge.exception(SOON).reason == "NO_MEMORY"
    assert model.batches[0] == ["huge", "fine"]
    assert sorted(model.batches[1:]) == [["fine"], ["huge"]]


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        # 20,000 tokens wait, and a second of work is allowed, at 2,000 tokens a second and thread.
        ({"threads": 2, "duty": 1.0}, 16_000 / 4000),
        ({"threads": 1, "duty": 1.0}, 18_000 / 2000),
        ({"threads": 9, "duty": 0.5}, 18_000 / 2000),
        ({"threads": 1, "duty": 0.25, "level": Pressure.HOT}, 19_500 / 500),
        # The least and the most that is ever said.
        ({"threads": 1, "duty": 0.001, "level": Pressure.CRITICAL}, 60.0),
        ({"threads": 1, "duty": 0.0, "level": Pressure.CRITICAL}, 60.0),
        ({"threads": 0, "duty": 1.0}, 60.0),
        ({"threads": 2, "duty": 1.0, "row_tokens": 0}, 60.0),
    ],
)
def test_a_retry_hint_says_how_long_the_lane_takes_under_the_present_budget(make, budget, seconds):
    # Not started: what is submitted stays.
    batcher = make(Governor(**budget), workers=2, ingest_drain=1.0)
    batcher.submit(["big:20000"], Lane.INGEST)
    batcher.check()
    with pytest.raises(Exhausted) as full:
        batcher.submit(["more"], Lane.INGEST)
    assert full.value.retry_after == pytest.approx(seconds)
    status = batcher.status()
    rate = status.tokens_per_second
    assert status.drain_seconds == (pytest.approx(20_000 / rate) if rate else 60.0)


SIZES = st.integers(1, 40)


@given(st.data())
def test_the_lane_loses_nobody_and_gives_nothing_too_long(data):
    queue = LaneQueue(1.0)
    models = [Served(HashEmbedder(8)), Served(HashEmbedder(16), cost=data.draw(st.floats(0.1, 10)))]
    waiting, now = [], 0.0
    for _ in range(data.draw(st.integers(1, 12))):
        now += data.draw(st.floats(0, 40))
        drawn = data.draw(st.lists(st.tuples(SIZES, st.sampled_from(models)), max_size=90))
        new = [Entry(Encoded(((0,) * size,)), None, now, served) for size, served in drawn]
        queue.extend(new)
        waiting += new
        room = data.draw(st.integers(0, 45))
        if data.draw(st.booleans()):
            queue.pass_over(room, now)
        over = queue.sort_aside(room, now, 60.0)
        assert all(entry.row > room for entry in over)
        taken = queue.take(data.draw(st.integers(1, 100)), room, now)
        assert all(entry.row <= room for entry in taken)
        assert len({entry.served for entry in taken}) <= 1
        for entry in over + taken:
            waiting.remove(entry)
        assert len(queue) + queue.aside == len(waiting)
        assert queue.all_tokens == sum(entry.tokens for entry in waiting)
    assert sorted(map(id, queue.clear())) == sorted(map(id, waiting))


class Whims:
    """A budget after the other, for ever; each thread's last one stands for what it takes next."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = 0
        self.standing = threading.local()

    def budget(self):
        room = self.rows[self.asked % len(self.rows)]
        self.asked += 1
        self.standing.room = room
        return Budget(32, 2, 1.0, True, "", row_tokens=room)

    def observe(self, padded_tokens, seconds, cpu_seconds):
        pass


class Strict:
    """Says of every run whether its budget allowed it."""

    def __init__(self, governor):
        self.info = ScriptedEmbedder().info
        self.governor = governor
        self.trespasses = []

    def encode(self, texts, lane):
        return [Encoded(((1,) * int(text),)) for text in texts]

    def embed(self, batch):
        rows = [len(window) for item in batch for window in item.windows]
        if max(rows) > self.governor.standing.room:
            self.trespasses.append(rows)
        return np.ones((len(batch), 4), np.float32)

    def close(self):
        pass


@settings(max_examples=25)
@given(st.lists(st.integers(0, 45), min_size=1, max_size=8), st.lists(st.lists(SIZES, min_size=1), max_size=8))
def test_whatever_the_budgets_every_text_is_answered_and_none_runs_without_room(rows, calls):
    governor = Whims(rows)
    model = Strict(governor)
    futures = []
    batcher = Batcher(model, governor, HandClock(), Embedding(workers=2))
    with batcher:
        for number, sizes in enumerate(calls):
            try:
                futures += batcher.submit([str(size) for size in sizes], Lane(number % 2))
            except EdgeError as error:
                assert isinstance(error, Exhausted | Unavailable)  # each call is one of its own
            batcher.check()
        batcher.close(SOON)
    assert all(future.done() for future in futures)
    assert all(isinstance(future.exception(0), EdgeError | None) for future in futures)
    assert model.trespasses == []
