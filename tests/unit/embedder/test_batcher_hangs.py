"""The batcher over a model that does not come back: it is named once, recalls go by words, the rest goes on."""

import threading

import pytest
from batcher_fakes import SOON, Governor, HandClock, ScriptedEmbedder

from edge.config import Embedding
from edge.embedder.batcher import Batcher
from edge.errors import Exhausted, Unavailable
from edge.types import Lane


class Sticky(ScriptedEmbedder):
    """A text named "hang…" stays in the model until `release`."""

    def __init__(self):
        super().__init__()
        self.release = threading.Event()
        self.inside = threading.Semaphore(0)

    def embed(self, batch):
        with self.lock:
            known = {number: name for name, number in self.names.items()}
        if any(known[item.windows[0][0]].startswith("hang") for item in batch):
            self.inside.release()
            assert self.release.wait(SOON)
        return super().embed(batch)


@pytest.fixture
def model():
    return Sticky()


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def make(model, clock):
    made = []

    def build(workers=2, threads=2, **changes):
        config = Embedding(workers=workers, batch_tokens=8, hang_seconds=20.0, **changes)
        batcher = Batcher(model, Governor(threads=threads, padded_tokens=8), clock, config)
        made.append(batcher)
        batcher.start()
        return batcher

    yield build
    model.release.set()
    for batcher in made:
        batcher.close(SOON)


def hang(batcher, model, lane, name="hang"):
    future = batcher.submit([name], lane)[0]
    assert model.inside.acquire(timeout=SOON)
    return future


def test_an_ingest_that_hangs_is_named_once_and_the_others_go_on(make, model, clock, caplog):
    batcher = make()
    stuck = hang(batcher, model, Lane.INGEST)
    clock.time += 19
    batcher.check()
    assert batcher.status().stalled == 0
    assert caplog.text == ""
    clock.time += 6
    batcher.check()
    batcher.check()
    assert len(caplog.records) == 1
    assert "embed-ingest" in caplog.text
    assert "ingest lane, 8 tokens, 25 s" in caplog.text
    assert "hang:" not in caplog.text
    assert batcher.status().stalled == 25
    batcher.submit(["other"], Lane.INGEST)[0].result(SOON)
    batcher.submit(["question"], Lane.RECALL)[0].result(SOON)
    model.release.set()
    assert stuck.result(SOON) is not None
    assert batcher.status().stalled == 0


def test_one_that_hangs_does_not_hold_the_place_of_the_only_one_allowed(make, model, clock):
    batcher = make(threads=1)
    hang(batcher, model, Lane.INGEST)
    other = batcher.submit(["other"], Lane.INGEST)[0]
    clock.time += 21
    batcher.check()
    other.result(SOON)


def test_when_all_ingest_threads_hang_callers_are_sent_away_and_recalls_go_on(make, model, clock):
    batcher = make(ingest_drain=1.0)
    hang(batcher, model, Lane.INGEST, "hang1")
    hang(batcher, model, Lane.INGEST, "hang2")
    clock.time += 21
    batcher.check()
    waiting = batcher.submit(["waits"], Lane.INGEST)[0]
    with pytest.raises(Exhausted) as full:
        batcher.submit(["no"], Lane.INGEST)
    assert full.value.retry_after == 60.0
    batcher.submit(["question"], Lane.RECALL)[0].result(SOON)
    model.release.set()
    waiting.result(SOON)


def test_ingests_are_stuck_only_once_every_one_of_their_threads_hangs(make, model, clock):
    batcher = make()
    first = hang(batcher, model, Lane.INGEST)
    clock.time += 21
    assert not batcher.stuck()
    second = hang(batcher, model, Lane.INGEST, "hang2")
    assert not batcher.stuck()
    clock.time += 21
    assert batcher.stuck()
    model.release.set()
    first.result(SOON)
    second.result(SOON)
    batcher.close(SOON)
    assert not batcher.stuck()


def test_a_recall_that_stands_still_is_let_go_long_before_it_is_said_to_hang(make, model, clock, caplog):
    batcher = make()
    stuck = hang(batcher, model, Lane.RECALL)
    clock.time += 1.9
    batcher.status()
    assert not stuck.done()
    clock.time += 0.2
    batcher.status()
    assert isinstance(stuck.exception(0), Unavailable)
    assert caplog.text == ""
    # Meanwhile an ingest thread answers.
    batcher.submit(["another"], Lane.RECALL)[0].result(SOON)


def test_those_that_wait_behind_one_that_stands_still_are_let_go_too(make, model, clock):
    batcher = make(workers=1, threads=1)
    hang(batcher, model, Lane.INGEST)
    hang(batcher, model, Lane.RECALL, "hang2")
    behind = batcher.submit(["behind"], Lane.RECALL)[0]
    clock.time += 2.5
    batcher.check()
    assert isinstance(behind.exception(0), Unavailable)
    assert batcher.status().recalls == 0


def test_once_every_thread_stands_still_recalls_are_refused_at_once(make, model, clock):
    batcher = make(workers=1, threads=1)
    hang(batcher, model, Lane.INGEST)
    stuck = hang(batcher, model, Lane.RECALL, "hang2")
    clock.time += 2.5
    for _ in range(100):
        with pytest.raises(Unavailable) as refusal:
            batcher.submit(["question"], Lane.RECALL)
        assert refusal.value.reason == "MODEL_HANGS"
    assert isinstance(stuck.exception(0), Unavailable)


def test_while_only_the_recall_thread_hangs_an_ingest_thread_answers(make, model, clock, caplog):
    batcher = make()
    stuck = hang(batcher, model, Lane.RECALL)
    clock.time += 21
    batcher.submit(["question"], Lane.RECALL)[0].result(SOON)
    assert "embed-recall" in caplog.text
    batcher.submit(["ingests go on"], Lane.INGEST)[0].result(SOON)
    model.release.set()
    stuck.exception(SOON)
    # Settled long ago; its thread is through once it takes the next.
    while batcher.status().stalled:
        model.entered.acquire(timeout=0.01)
    batcher.submit(["question"], Lane.RECALL)[0].result(SOON)
    assert "moves again" in caplog.text


def test_a_long_question_on_a_slow_device_is_no_standstill(make, model, clock):
    batcher = make()
    # 4,000 tokens at the first guess of 2,000 a second: usual is 2 s.
    slow = hang(batcher, model, Lane.RECALL, "hang:4000")
    clock.time += 10
    batcher.check()
    assert not slow.done()
    model.release.set()
    slow.result(SOON)


def test_a_run_that_hung_says_nothing_of_the_pace(make, model, clock):
    batcher = make(workers=1)
    stuck = hang(batcher, model, Lane.INGEST)
    before = batcher.status().tokens_per_second
    clock.time += 500
    batcher.check()
    model.release.set()
    stuck.result(SOON)
    # Once the next one is through, the only thread has done with the first.
    batcher.submit(["next"], Lane.INGEST)[0].result(SOON)
    assert batcher.status().tokens_per_second == before


def test_closing_answers_what_hangs(make, model, clock):
    batcher = make()
    stuck = [hang(batcher, model, Lane.INGEST), hang(batcher, model, Lane.RECALL, "hang2")]
    batcher.close(0)
    assert all(isinstance(future.exception(0), Unavailable) for future in stuck)
