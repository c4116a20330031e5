"""When a model's buffers go back to the system, with a session that is a script."""

from types import SimpleNamespace

import numpy as np
import pytest

from edge.embedder import heap, manifest, onnx
from edge.ports import Encoded

MODEL = manifest.load().default
ROW = Encoded(((101, 7, 102),))


class Session:
    """Notes for each run whether it was asked to shrink the arena."""

    def __init__(self):
        self.shrinks = []
        self.during = lambda: None

    def get_inputs(self):
        return [SimpleNamespace(name="input_ids"), SimpleNamespace(name="attention_mask")]

    def get_outputs(self):
        return [SimpleNamespace(name="last_hidden_state", shape=["b", "s", MODEL.dimension])]

    def run(self, outputs, feeds, options=None):
        self.shrinks.append(options is not None)
        if options is not None:
            self.during()
        return [np.ones((*feeds["input_ids"].shape, MODEL.dimension), np.float32)]


@pytest.fixture
def session():
    return Session()


@pytest.fixture
def clock(monkeypatch):
    """Seconds, to be moved on."""
    seconds = [100.0]
    monkeypatch.setattr(onnx.time, "monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def embedder(session, clock, monkeypatch):
    options = SimpleNamespace(add_run_config_entry=lambda key, value: None)
    monkeypatch.setattr(onnx, "_onnxruntime", lambda: SimpleNamespace(RunOptions=lambda: options))
    return onnx.OnnxEmbedder(MODEL, None, session, "cpu", 1, 0, idle_release=60.0)


def test_nothing_is_given_back_before_the_first_run(embedder, session):
    embedder.release()
    assert session.shrinks == []


def test_nothing_is_given_back_while_there_is_work(embedder, session, clock):
    embedder.embed([ROW])
    clock[0] += 59
    embedder.release()
    assert session.shrinks == [False]


def test_buffers_are_given_back_once_after_the_time_set(embedder, session, clock):
    embedder.embed([ROW])
    clock[0] += 61
    embedder.release()
    embedder.release()
    assert session.shrinks == [False, True]


def test_a_run_after_it_works_and_is_given_back_in_its_turn(embedder, session, clock):
    for _ in range(2):
        assert np.isfinite(embedder.embed([ROW])).all()
        clock[0] += 61
        embedder.release()
    assert session.shrinks == [False, True] * 2


def test_a_run_that_begins_meanwhile_is_not_forgotten(embedder, session, clock):
    embedder.embed([ROW])
    clock[0] += 61

    def begin():
        session.during = lambda: None
        embedder.embed([ROW])

    session.during = begin
    embedder.release()
    clock[0] += 61
    embedder.release()
    assert session.shrinks == [False, True, False, True]


def test_a_closed_model_has_nothing_to_give_back(embedder, session, clock):
    embedder.embed([ROW])
    embedder.close()
    clock[0] += 61
    embedder.release()
    assert session.shrinks == [False]


def test_bounding_and_trimming_the_heap_is_harmless_anywhere():
    heap.bound()
    heap.trim()


def test_it_tells_how_much_its_buffers_suffice_for(embedder, clock):
    assert embedder.release() == 0
    embedder.embed([ROW])
    assert embedder.release() == 3
    clock[0] += 61
    assert embedder.release() == 0
