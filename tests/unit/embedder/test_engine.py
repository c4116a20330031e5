"""The beat that feeds the governor, names hung runs and gives idle buffers back."""

import pytest
from batcher_fakes import SOON, HandClock, ScriptedEmbedder

from edge.config import Config, Embedding
from edge.embedder import engine
from edge.embedder.governor import Device
from edge.embedder.readings import Readings
from edge.types import Lane, Pressure


class Watch:
    """The sensors' watch, whose readings come when the test says so."""

    def __init__(self, sensors, interval, on_reading, *, busy):
        Watch.beat = staticmethod(on_reading)

    def start(self):
        pass

    def close(self):
        pass


class Releasing(ScriptedEmbedder):
    def __init__(self):
        super().__init__()
        self.released = 0
        self.held = 0

    def release(self):
        self.released += 1
        return self.held


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def model():
    return Releasing()


@pytest.fixture
def running(model, clock, monkeypatch):
    monkeypatch.setattr(engine, "SensorWatch", Watch)
    config = Config(embedding=Embedding(workers=1, hang_seconds=20.0))
    with engine.running(model, Device(threads=1, batch_tokens=64), config, clock) as parts:
        yield parts
        model.gate.set()


def test_every_reading_reaches_the_governor_and_gives_idle_buffers_back(running, model, clock):
    _, governor = running
    Watch.beat(Readings(clock.monotonic(), memory_available=0))
    assert governor.state().budget.level is Pressure.CRITICAL
    assert model.released == 1


def test_while_a_run_hangs_it_is_named_and_nothing_is_asked_of_the_model(running, model, clock, caplog):
    batcher, _ = running
    model.gate.clear()
    stuck = batcher.submit(["stuck"], Lane.INGEST)[0]
    assert model.entered.acquire(timeout=SOON)
    clock.time += 21
    Watch.beat(Readings(clock.monotonic()))
    assert "the model hangs" in caplog.text
    assert model.released == 0
    model.gate.set()
    stuck.result(SOON)
    # Once the next one is through, the only thread has done with the first.
    batcher.submit(["next"], Lane.INGEST)[0].result(SOON)
    Watch.beat(Readings(clock.monotonic()))
    assert model.released == 1


def test_memory_that_the_model_holds_for_its_runs_is_not_asked_for_twice(running, model, clock):
    _, governor = running
    reserve = Config().governor.memory_reserve
    Watch.beat(Readings(clock.monotonic(), memory_available=reserve))
    assert governor.state().budget.level is Pressure.CRITICAL
    model.held = 4096
    for _ in range(600):
        clock.time += 1
        Watch.beat(Readings(clock.monotonic(), memory_available=reserve))
    assert governor.state().budget.level is Pressure.NOMINAL
    assert governor.state().memory_available == reserve
