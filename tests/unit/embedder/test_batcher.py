"""The batcher over a scripted model: order, failures, bounds and the end."""

import threading
import time
from concurrent.futures import CancelledError, wait

import numpy as np
import pytest
from batcher_fakes import SOON, Clock, Governor, HandClock, ScriptedEmbedder

from edge.config import Embedding
from edge.embedder.batcher import Batcher
from edge.embedder.governor import FixedGovernor, worker_count
from edge.errors import DeadlineExceeded, EdgeError, Exhausted, Unavailable, VectorRefused
from edge.ports import Budget
from edge.types import Lane


@pytest.fixture
def model():
    return ScriptedEmbedder()


@pytest.fixture
def make(model):
    made = []

    def build(governor=None, **changes):
        config = Embedding(**({"workers": 1, "batch_tokens": 64} | changes))
        batcher = Batcher(model, governor or FixedGovernor(config), Clock(), config)
        made.append(batcher)
        return batcher

    yield build
    model.gate.set()
    for batcher in made:
        batcher.close(0)


def test_every_text_gets_its_own_vector(make, model):
    with make() as batcher:
        futures = batcher.submit([f"t{n}" for n in range(50)], Lane.INGEST)
        assert [future.result(SOON)[0] for future in futures] == [model.names[f"t{n}"] for n in range(50)]


def test_a_recall_does_not_wait_for_the_ingest_batch_that_is_running(make, model):
    batcher = make()
    batcher.start()
    model.gate.clear()
    ingest = batcher.submit(["slow"], Lane.INGEST)[0]
    assert model.entered.acquire(timeout=SOON)
    recall = batcher.submit(["question"], Lane.RECALL)[0]
    assert model.entered.acquire(timeout=SOON), "the recall is in the model while the ingest still is"
    model.gate.set()
    recall.result(SOON)
    ingest.result(SOON)


def test_a_free_ingest_thread_helps_while_the_recall_thread_is_busy(make, model):
    batcher = make()
    batcher.start()
    model.gate.clear()
    futures = batcher.submit(["first"], Lane.RECALL)
    assert model.entered.acquire(timeout=SOON)
    futures += batcher.submit(["second"], Lane.RECALL)
    assert model.entered.acquire(timeout=SOON), "both recalls are in the model at once"
    model.gate.set()
    wait(futures, SOON)
    assert sorted(model.batches) == [["first"], ["second"]]


def test_waiting_recalls_go_before_waiting_ingests_on_an_ingest_thread(make, model):
    batcher = make()
    batcher.start()
    model.gate.clear()
    futures = batcher.submit(["running ingest"], Lane.INGEST)
    assert model.entered.acquire(timeout=SOON)
    futures += batcher.submit(["running recall"], Lane.RECALL)
    assert model.entered.acquire(timeout=SOON)
    futures += batcher.submit(["waiting ingest"], Lane.INGEST)
    futures += batcher.submit(["waiting recall 1", "waiting recall 2"], Lane.RECALL)
    model.gate.set()
    wait(futures, SOON)
    assert model.batches.index(["waiting ingest"]) > model.batches.index(["waiting recall 1"])


def test_like_lengths_share_a_batch_within_the_padded_budget(make, model):
    batcher = make()
    futures = batcher.submit(["a:30", "b:8", "c:30", "d:8", "e:8"], Lane.INGEST)
    batcher.start()
    wait(futures, SOON)
    assert model.batches == [["b", "d", "e"], ["a", "c"]]


def test_a_failing_batch_fails_only_the_texts_that_fail_alone_and_the_worker_lives_on(make, model, caplog):
    model.failures["bad"] = ValueError("no")
    with make() as batcher:
        good, bad, fine = batcher.submit(["good", "bad", "fine"], Lane.INGEST)
        assert good.result(SOON) is not None
        assert fine.result(SOON) is not None
        with pytest.raises(ValueError, match="no"):
            bad.result(SOON)
        assert batcher.submit(["later"], Lane.INGEST)[0].result(SOON) is not None
    assert "bad" not in caplog.text


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(1), StopIteration(), MemoryError()])
@pytest.mark.parametrize("lane", list(Lane))
def test_whatever_the_model_raises_the_waiter_is_answered_and_the_worker_lives_on(make, model, failure, lane):
    model.failures["bad"] = failure
    with make() as batcher:
        assert isinstance(batcher.submit(["bad"], lane)[0].exception(SOON), EdgeError | MemoryError)
        assert batcher.submit(["later"], lane)[0].result(SOON) is not None


def test_rows_of_the_wrong_shape_are_an_error_of_their_texts(make, model, monkeypatch):
    monkeypatch.setattr(model, "embed", lambda batch: np.zeros((len(batch), 3), np.float32))
    with make() as batcher:
        assert "shape" in str(batcher.submit(["x"], Lane.INGEST)[0].exception(SOON))


def test_a_row_of_nan_refuses_this_text_only(make):
    with make() as batcher:
        good, refused = batcher.submit(["good", "nan"], Lane.INGEST)
        assert np.isfinite(good.result(SOON)).all()
        assert isinstance(refused.exception(SOON), VectorRefused)


def test_a_callback_that_raises_does_not_hurt_the_worker(make):
    def callback(future):
        raise KeyboardInterrupt

    batcher = make()
    future = batcher.submit(["x"], Lane.INGEST)[0]
    future.add_done_callback(callback)
    with batcher:
        assert batcher.submit(["later"], Lane.INGEST)[0].result(SOON) is not None


def test_the_cancelled_and_the_expired_are_dropped_before_the_model_sees_them(make, model):
    batcher = make()
    cancelled = batcher.submit(["cancelled"], Lane.INGEST)[0]
    late = [batcher.submit(["late"], lane, deadline=time.monotonic() - 1)[0] for lane in Lane]
    wanted = batcher.submit(["wanted"], Lane.INGEST, deadline=time.monotonic() + 3600)[0]
    assert cancelled.cancel()
    with batcher:
        assert wanted.result(SOON) is not None
        assert all(isinstance(future.exception(SOON), DeadlineExceeded) for future in late)
        with pytest.raises(CancelledError):
            cancelled.result(SOON)
    assert model.batches == [["wanted"]]
    assert batcher.status().ingest_tokens == 0


def test_recalls_that_nobody_waits_for_any_more_say_nothing_of_the_pace(make):
    batcher = make()
    with batcher:
        batcher.submit(["wanted"], Lane.RECALL)[0].result(SOON)
        # One more, so that the first is surely counted: the thread takes it afterwards.
        batcher.submit(["late"], Lane.RECALL, deadline=time.monotonic() - 1)[0].exception(SOON)
        before = batcher._recall.rate
        for _ in range(20):
            batcher.submit(["late"], Lane.RECALL, deadline=time.monotonic() - 1)[0].exception(SOON)
        assert batcher._recall.rate == before


def rest(model, governor, seconds):
    """A batcher whose ingest thread rests after a batch of so many seconds, its clock, and a text that waits."""
    clock = HandClock()
    batcher = Batcher(model, governor, clock, Embedding(workers=1))
    batcher.start()
    model.gate.clear()
    first = batcher.submit(["first"], Lane.INGEST)[0]
    assert model.entered.acquire(timeout=SOON)
    clock.time += seconds
    model.gate.set()
    first.result(SOON)
    assert governor.seen.wait(SOON)
    return batcher, clock, batcher.submit(["second"], Lane.INGEST)[0]


def test_after_a_batch_that_slept_with_the_device_no_thread_rests_for_hours(model):
    batcher, clock, second = rest(model, Governor(duty=0.02), 15.0)
    clock.time += 61
    batcher.check()
    second.result(SOON)
    batcher.close(SOON)


def test_a_rest_ends_when_the_governor_allows_more(model):
    governor = Governor(duty=0.02)
    batcher, clock, second = rest(model, governor, 1.0)
    governor.values["duty"] = 0.5
    clock.time += 1.1
    batcher.check()
    second.result(SOON)
    batcher.close(SOON)


@pytest.mark.parametrize("lane", list(Lane))
def test_a_full_lane_says_when_to_come_back_and_an_empty_one_takes_anything(make, lane):
    batcher = make(recall_drain=1.0, ingest_drain=1.0)
    batcher.submit(["big:100000"], lane)
    with pytest.raises(Exhausted) as refusal:
        batcher.submit(["one more"], lane)
    assert refusal.value.retry_after > 10
    other = Lane.INGEST if lane is Lane.RECALL else Lane.RECALL
    batcher.submit(["the other lane has room"], other)


def test_a_refused_message_leaves_nothing_behind(make):
    batcher = make(ingest_drain=1.0)
    batcher.submit(["a:100"], Lane.INGEST)
    before = batcher.status()
    with pytest.raises(Exhausted):
        batcher.submit(["b:1", "c:100000"], Lane.INGEST)
    assert batcher.status() == before


def test_a_paused_governor_holds_ingests_and_lets_recalls_through(make, model):
    governor = Governor(duty=0.0)
    with make(governor) as batcher:
        held = batcher.submit(["held"], Lane.INGEST)[0]
        batcher.submit(["question"], Lane.RECALL)[0].result(SOON)
        assert not held.done()
        assert batcher.status().tokens_per_second == 0
        governor.values["duty"] = 1.0
        held.result(SOON)


def test_the_governor_bounds_the_ingest_batches_at_once(make, model):
    governor = Governor(threads=1, padded_tokens=8)
    with make(governor, workers=3) as batcher:
        model.gate.clear()
        futures = batcher.submit(["a", "b", "c"], Lane.INGEST)
        assert model.entered.acquire(timeout=SOON)
        assert len(model.batches) == 1
        model.gate.set()
        wait(futures, SOON)
        assert governor.seen.wait(SOON)
    assert governor.observed == [8, 8, 8]


def test_a_governor_that_raises_changes_nothing(make, monkeypatch):
    governor = FixedGovernor(Embedding(workers=1))
    monkeypatch.setattr(governor, "budget", lambda: 1 / 0)
    monkeypatch.setattr(governor, "observe", lambda *_: 1 / 0)
    with make(governor) as batcher:
        for _ in range(3):
            batcher.submit(["x"], Lane.INGEST)[0].result(SOON)


def test_closing_finishes_what_waits_and_then_refuses(make):
    batcher = make(Governor(duty=0.001))
    batcher.start()
    futures = batcher.submit([f"t{n}:60" for n in range(20)], Lane.INGEST)
    batcher.close(SOON)
    assert all(future.result(0) is not None for future in futures)
    with pytest.raises(Unavailable):
        batcher.submit(["x"], Lane.RECALL)


def test_closing_without_time_answers_the_running_and_the_waiting(make, model):
    batcher = make()
    batcher.start()
    model.gate.clear()
    futures = batcher.submit(["running:60"], Lane.INGEST)
    assert model.entered.acquire(timeout=SOON)
    futures += batcher.submit(["waiting:60"], Lane.INGEST)
    batcher.close(0)
    assert all(isinstance(future.exception(0), Unavailable) for future in futures)


def test_closing_one_that_was_never_started_answers_everybody(make):
    batcher = make()
    futures = batcher.submit(["a"], Lane.INGEST) + batcher.submit(["b"], Lane.RECALL)
    batcher.close(0)
    assert all(isinstance(future.exception(0), Unavailable) for future in futures)


def test_many_threads_that_submit_and_cancel_all_get_an_answer(make):
    batcher = make(workers=2, ingest_drain=1e6, recall_drain=1e6)
    futures = [[] for _ in range(4)]

    def flood(number):
        for round_ in range(50):
            mine = batcher.submit([f"{number}-{round_}-{n}:{1 + n * 7}" for n in range(4)], Lane(number % 2))
            mine[round_ % 4].cancel()
            futures[number] += mine

    with batcher:
        threads = [threading.Thread(target=flood, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
    everything = [future for mine in futures for future in mine]
    assert len(everything) == 800
    assert all(future.cancelled() or future.result(0) is not None for future in everything)
    assert batcher.status().ingests == batcher.status().recalls == batcher.status().ingest_tokens == 0


def test_one_worker_a_core_unless_configured():
    assert worker_count(Embedding(workers=3)) == 3
    assert worker_count(Embedding()) >= 1
    assert FixedGovernor(Embedding(workers=3, batch_tokens=99)).budget() == Budget(
        99, 3, 1.0, True, "fixed by the configuration"
    )
