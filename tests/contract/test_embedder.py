"""What every embedder promises: the same tests on the real model and on the fake."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.config import DEFAULT_MODEL, Embedding
from edge.embedder import manifest, onnx
from edge.embedder.batcher import Batcher
from edge.embedder.fake import HashEmbedder
from edge.embedder.governor import FixedGovernor
from edge.errors import Unavailable, VectorRefused
from edge.ports import Encoded
from edge.types import Lane

TEXTS = [
    "我家的猫叫豆包",
    "PostgreSQL is our Main Database",
    "周三下午把主库迁到新机房，回滚脚本在运维仓库。",
    "x",
    "重跑gen-itgc后50条",
    "the quick brown fox " * 20,
    "门禁口令是蓝色大象，" * 30,
    "🦄",
]


@pytest.fixture(scope="module")
def real(model_directory):
    embedder = onnx.load(DEFAULT_MODEL, model_directory, Embedding(device="cpu", instruction=True))
    yield embedder
    embedder.close()


@pytest.fixture(scope="module", params=["real", "fake"])
def embedder(request):
    return request.getfixturevalue("real") if request.param == "real" else HashEmbedder()


def vectors(embedder, *texts, lane=Lane.INGEST):
    return embedder.embed(embedder.encode(texts, lane))


def cosine(embedder, one, other):
    first, second = vectors(embedder, one, other)
    return float(first @ second)


def test_a_row_a_text_of_unit_length_in_float32(embedder):
    rows = vectors(embedder, *TEXTS)
    assert rows.shape == (len(TEXTS), embedder.info.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_without_its_instruction_a_question_reads_like_any_text(real, model_directory):
    plain = onnx.load(DEFAULT_MODEL, model_directory, Embedding(device="cpu", instruction=False))
    assert plain.encode(TEXTS, Lane.RECALL) == plain.encode(TEXTS, Lane.INGEST) == real.encode(TEXTS, Lane.INGEST)
    assert real.encode(TEXTS, Lane.RECALL) != real.encode(TEXTS, Lane.INGEST)
    plain.close()


def test_no_texts_are_no_rows(embedder):
    assert embedder.encode([], Lane.INGEST) == []
    assert embedder.embed([]).shape == (0, embedder.info.dimension)


@settings(max_examples=15)
@given(st.data())
def test_a_vector_does_not_depend_on_what_shares_its_batch(embedder, data):
    chosen = data.draw(st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=6))
    encoded = embedder.encode(TEXTS, Lane.INGEST)
    alone = np.concatenate([embedder.embed([encoded[index]]) for index in sorted(set(chosen))])
    together = embedder.embed([encoded[index] for index in chosen])
    rows = alone[[sorted(set(chosen)).index(index) for index in chosen]]
    assert np.all(np.sum(rows * together, axis=1) >= 0.9999)


def test_threads_at_once_get_the_same_vectors(embedder):
    encoded = embedder.encode(TEXTS, Lane.INGEST)
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda item: embedder.embed([item])[0], encoded * 4))
    assert np.all(np.sum(np.stack(rows) * np.tile(embedder.embed(encoded), (4, 1)), axis=1) >= 0.9999)


def test_capitals_do_not_matter(embedder):
    text = "PostgreSQL is our Main Database"
    assert cosine(embedder, text, text.lower()) >= 0.9999


def test_special_tokens_that_somebody_typed_are_text(embedder):
    for token in ("[SEP]", "[CLS]", "[MASK]", "[UNK]", "[PAD]"):
        assert (
            embedder.encode([f"a {token} b"], Lane.INGEST)[0].tokens > embedder.encode(["a b"], Lane.INGEST)[0].tokens
        )
        assert cosine(embedder, f"我 {token} 你", "我 你") < 0.9999


def test_long_runs_without_a_break_differ(embedder):
    assert cosine(embedder, "a" * 400, "b" * 400) < 0.99
    assert cosine(embedder, "a" * 400, "a" * 101 + "z" * 299) < 0.9999


def test_a_text_of_many_windows_has_one_vector_that_its_end_takes_part_in(embedder):
    long = "今天天气很好，我们去公园散步。" * 100
    encoded = embedder.encode([long], Lane.INGEST)[0]
    assert len(encoded.windows) > 1
    assert all(len(window) <= 512 for window in encoded.windows)
    assert cosine(embedder, long, long + "服务器的磁盘坏了，备份在哪里？" * 60) < 0.9999


def test_a_question_is_cut_at_eight_windows(embedder):
    assert len(embedder.encode(["词语" * 10_000], Lane.RECALL)[0].windows) == 8


@pytest.mark.parametrize("text", ["", " \t\n", "\u3000"])
def test_a_text_without_a_token_has_no_vector(embedder, text):
    rows = vectors(embedder, "before", text, "after")
    assert np.isnan(rows[1]).all()
    assert np.isfinite(rows[[0, 2]]).all()


@pytest.mark.parametrize("text", ["prefix\0suffix", "half \ud83d", "\u202egpj.exe", "\x1b[2J已清空", "שלום עולם"])
def test_odd_characters_are_embedded_or_refused_and_never_an_error(embedder, text):
    assert vectors(embedder, text).shape == (1, embedder.info.dimension)
    assert vectors(embedder, text, lane=Lane.RECALL).shape == (1, embedder.info.dimension)


def test_like_is_nearer_than_unlike(embedder):
    question = vectors(embedder, "我家的猫叫什么名字", lane=Lane.RECALL)[0]
    near, far = vectors(embedder, "我家的猫叫豆包", "数据库的备份每天凌晨三点运行")
    assert question @ near > question @ far


def test_through_the_batcher_a_text_without_a_vector_is_refused_and_its_neighbours_are_not(embedder):
    class Clock:
        def now(self):
            return 0

        def monotonic(self):
            return 0.0

    config = Embedding(workers=2)
    with Batcher(embedder, FixedGovernor(config), Clock(), config) as batcher:
        futures = batcher.submit([*TEXTS, ""], Lane.INGEST)
        rows = np.stack([future.result(60) for future in futures[:-1]])
        assert isinstance(futures[-1].exception(60), VectorRefused)
        assert batcher.tokens(TEXTS[0]) == embedder.encode([TEXTS[0]], Lane.INGEST)[0].tokens
    assert np.all(np.sum(rows * vectors(embedder, *TEXTS), axis=1) >= 0.9999)


def test_a_closed_embedder_says_so():
    embedder = HashEmbedder()
    encoded = embedder.encode(["x"], Lane.INGEST)
    embedder.close()
    with pytest.raises(Unavailable):
        embedder.embed(encoded)


def test_the_instruction_goes_before_questions_only(real):
    text = "我家的猫叫什么名字"
    document, question = (real.encode([text], lane)[0].tokens for lane in (Lane.INGEST, Lane.RECALL))
    assert question > document
    with_instruction = manifest.load().default.instruction + text
    assert real.encode([text], Lane.RECALL) == real.encode([with_instruction], Lane.INGEST)


def test_pictures_outside_the_vocabulary_differ(real):
    assert cosine(real, "🦄", "🪐") < 0.99


class _Numbers:
    """A graph that answers with numbers that a broken kernel could give."""

    def __init__(self, value):
        self.value = value

    def get_inputs(self):
        return [dataclasses.make_dataclass("Node", ["name"])("input_ids")]

    def get_outputs(self):
        return [dataclasses.make_dataclass("Node", ["name", "shape"])("last_hidden_state", ["b", "s", 512])]

    def run(self, names, feeds):
        assert set(feeds) == {"input_ids"}, "only what the graph takes is fed"
        return [np.full((*feeds["input_ids"].shape, 512), self.value, np.float32)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_a_row_that_is_not_a_direction_comes_back_as_nan(value):
    embedder = onnx.OnnxEmbedder(manifest.load().default, None, _Numbers(value), "cpu", 1, 0)
    assert np.isnan(embedder.embed([Encoded(((101, 5, 102),))])).all()
