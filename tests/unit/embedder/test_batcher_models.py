"""Several models behind one batcher: they share lanes, threads and bounds, and never a batch."""

import dataclasses

import pytest
from batcher_fakes import SOON, Clock, Governor, HandClock, ScriptedEmbedder
from hypothesis import given
from hypothesis import strategies as st

from edge.config import Config, Embedding
from edge.embedder import beside, engine
from edge.embedder.batcher import Batcher
from edge.embedder.calibrate import Calibration
from edge.embedder.fake import HashEmbedder
from edge.embedder.governor import Device, FixedGovernor
from edge.embedder.lanes import Served
from edge.errors import Exhausted, VectorRefused
from edge.types import Lane, ModelInfo, Pressure


class Other(ScriptedEmbedder):
    def __init__(self, dimension=6):
        super().__init__()
        self.info = ModelInfo("other", dimension, "cpu", 1, 0)

    def embed(self, batch):
        rows = super().embed(batch)
        return rows.repeat(2, axis=1)[:, : self.info.dimension]


@pytest.fixture
def model():
    return ScriptedEmbedder()


@pytest.fixture
def other():
    return Other()


@pytest.fixture
def make(model, other):
    made = []

    def build(governor=None, cost=1.0, **changes):
        config = Embedding(**({"workers": 1, "batch_tokens": 64} | changes))
        batcher = Batcher(model, governor or FixedGovernor(config), Clock(), config, beside=[Served(other, cost)])
        made.append(batcher)
        return batcher

    yield build
    model.gate.set()
    other.gate.set()
    for batcher in made:
        batcher.close(0)


def test_each_face_gives_the_vectors_of_its_own_model(make, model, other):
    with make() as batcher:
        assert list(batcher.faces) == ["scripted", "other"]
        first, second = batcher.of("scripted"), batcher.of("other")
        assert (first.info, second.info) == (model.info, other.info)
        assert batcher.info == model.info
        assert len(first.submit(["a"], Lane.INGEST)[0].result(SOON)) == 4
        assert len(second.submit(["a"], Lane.INGEST)[0].result(SOON)) == 6
        assert len(second.submit(["q"], Lane.RECALL)[0].result(SOON)) == 6
        assert (first.tokens("x:3"), second.tokens("x:5")) == (3, 5)
        assert first.status() == second.status() == batcher.status()
    with pytest.raises(KeyError):
        batcher.of("a third")


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=60))
def test_no_batch_is_of_two_models_and_every_text_gets_its_vector(texts):
    model, other = ScriptedEmbedder(), Other()
    config = Embedding(workers=1, batch_tokens=64)
    batcher = Batcher(model, FixedGovernor(config), Clock(), config, beside=[Served(other, 1.5)])
    futures = [
        batcher.of("other" if second else "scripted").submit([f"{'o' if second else 's'}{n}:{size}"], Lane.INGEST)[0]
        for n, (second, size) in enumerate(texts)
    ]
    with batcher:
        sizes = [len(future.result(SOON)) for future in futures]
    assert sizes == [6 if second else 4 for second, _ in texts]
    # ScriptedEmbedder knows no name that was encoded by another, and would have failed.
    assert {name[0] for batch in model.batches for name in batch} <= {"s"}
    assert {name[0] for batch in other.batches for name in batch} <= {"o"}


def test_a_recall_of_one_model_goes_before_ingests_of_the_other(make, model, other):
    batcher = make()
    batcher.start()
    model.gate.clear()
    ingests = batcher.submit(["running", "waiting"], Lane.INGEST)
    assert model.entered.acquire(timeout=SOON)
    recall = batcher.of("other").submit(["question"], Lane.RECALL)[0]
    recall.result(SOON)
    assert not any(future.done() for future in ingests)
    model.gate.set()
    assert [future.result(SOON) is not None for future in ingests] == [True, True]


def test_neither_model_starves_the_other(make, model, other):
    batcher = make(batch_tokens=8)
    many = batcher.submit([f"m{n}" for n in range(300)], Lane.INGEST)
    (few,) = batcher.of("other").submit(["few"], Lane.INGEST)
    later = batcher.submit([f"l{n}" for n in range(300)], Lane.INGEST)
    order = []
    few.add_done_callback(lambda _: order.append("few"))
    later[-1].add_done_callback(lambda _: order.append("last"))
    with batcher:
        for future in (*many, few, *later):
            future.result(SOON)
    assert order == ["few", "last"]


def test_a_batch_of_a_slower_model_is_shorter_and_is_reckoned_as_what_it_costs(make, other):
    governor = Governor(padded_tokens=64)
    batcher = make(governor, cost=2.0)
    futures = batcher.of("other").submit([f"t{n}" for n in range(8)], Lane.INGEST)
    with batcher:
        for future in futures:
            future.result(SOON)
    # Of 8 tokens each, 4 are 32, which cost 64.
    assert [len(batch) for batch in other.batches] == [4, 4]
    assert governor.observed == [64, 64]


def test_one_bound_holds_for_both(make, model):
    batcher = make(Governor(), ingest_drain=1.0)
    batcher.submit(["long:1900"], Lane.INGEST)
    with pytest.raises(Exhausted):
        batcher.of("other").submit(["more:200"], Lane.INGEST)


def test_one_models_refusal_is_not_the_others(make):
    with make() as batcher:
        with pytest.raises(VectorRefused):
            batcher.of("other").submit(["nan"], Lane.INGEST)[0].result(SOON)
        assert batcher.of("other").submit(["well"], Lane.INGEST)[0].result(SOON) is not None


class Holding(ScriptedEmbedder):
    def __init__(self, name, held):
        super().__init__()
        self.info = ModelInfo(name, 4, "cpu", 1, 0)
        self.held = held

    def release(self):
        return self.held


def test_buffers_count_as_memory_only_as_far_as_every_model_has_them(monkeypatch):
    class Watch:
        def __init__(self, sensors, interval, on_reading, *, busy):
            Watch.beat = staticmethod(on_reading)

        def start(self):
            pass

        def close(self):
            pass

    from edge.embedder.readings import Readings

    monkeypatch.setattr(engine, "SensorWatch", Watch)
    first, second, clock = Holding("first", 4096), Holding("second", 0), HandClock()
    config = Config(embedding=Embedding(workers=1))
    device = Device(threads=1, batch_tokens=64)
    with engine.running(first, device, config, clock, beside=[Served(second)]) as (_, governor):
        for _ in range(600):
            clock.time += 1
            Watch.beat(Readings(clock.monotonic(), memory_available=config.governor.memory_reserve))
        assert governor.state().budget.level is Pressure.CRITICAL
        second.held = 4096
        for _ in range(600):
            clock.time += 1
            Watch.beat(Readings(clock.monotonic(), memory_available=config.governor.memory_reserve))
        assert governor.state().budget.level is Pressure.NOMINAL


def measured(rate, bytes_per_token=50_000.0):
    return Calibration("", 1, "m", "stock", 2, 512, rate, bytes_per_token)


class Slow(HashEmbedder):
    """Takes so long for a token, by a processor clock of its own."""

    clock = 0.0

    def __init__(self, seconds, dimension=8, device="cpu"):
        super().__init__(dimension)
        self.seconds, self.device = seconds, device

    @property
    def info(self):
        return dataclasses.replace(super().info, device=self.device)

    def embed(self, batch):
        Slow.clock += self.seconds * sum(item.tokens for item in batch)
        return super().embed(batch)


@pytest.mark.parametrize(
    ("own", "first", "cost"),
    [(0.02, 0.01, 2.0), (0.01, 0.02, 0.5), (0.0, 0.01, 1.0), (0.01, 0.0, 1.0), (10.0, 0.01, 1.0)],
)
def test_a_token_costs_as_much_more_as_the_model_is_slower(own, first, cost):
    assert beside.cost(Slow(own), Slow(first), lambda: Slow.clock) == pytest.approx(cost)


def test_an_accelerators_work_is_not_compared_with_the_processors():
    assert beside.cost(Slow(0.02, device="cuda"), Slow(0.01), lambda: Slow.clock) == 1.0


def test_the_device_reckons_with_the_memory_of_the_hungriest_model():
    small = ModelInfo("small", 4, "cpu", 2, 0, window=512, batch_invariant=True)
    large = ModelInfo("large", 4, "cpu", 2, 0, window=1024)
    device = beside.together(measured(1.0).device(small), [(measured(1.0, 90_000.0), large)])
    assert (device.window, device.bytes_per_token, device.threads) == (1024, 90_000.0, 2)
    assert device.least_batch == measured(1.0).device(large).least_batch
    alone = measured(1.0).device(small)
    assert beside.together(alone, []) == alone
