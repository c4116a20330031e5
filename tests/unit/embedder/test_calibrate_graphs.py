"""The graphs that are prepared on the device: the same network, whatever its numbers."""

from math import erf

import numpy as np
import pytest

from edge.embedder import graphs, onnx, providers
from edge.embedder.graphs import Scheme
from edge.errors import ModelError


class Small:
    """A BERT of random numbers, as graphs.Weights gives one: two layers, two heads of 16."""

    layers, heads, dimension = 2, 2, 32
    inner, words, places = 64, 50, 40

    def __init__(self):
        random = np.random.default_rng(5)
        self._made = {}
        self._random = random

    def _of(self, name, *shape):
        if name not in self._made:
            self._made[name] = self._random.normal(0, 1 / np.sqrt(shape[0]), shape).astype(np.float32)
        return self._made[name]

    def embedding(self, name):
        if name.startswith("LayerNorm"):
            return self._norm(name)
        rows = {"word": self.words, "position": self.places, "token": 2}[name.split("_")[0]]
        return self._of(name, rows, self.dimension)

    def _norm(self, name):
        centre = np.float32(name.endswith("weight"))
        return centre + np.float32(0.1) * self._of(name, self.dimension)

    def matrix(self, layer, name):
        inner = {"intermediate/dense": (self.dimension, self.inner), "output/dense": (self.inner, self.dimension)}
        return self._of(f"{layer}{name}", *inner.get(name, (self.dimension, self.dimension)))

    def vector(self, layer, name):
        if "LayerNorm" in name:
            return self._norm(f"{layer}{name}")
        return self._of(f"{layer}{name}", self.inner if name.startswith("intermediate") else self.dimension)


def by_hand(weights, ids):
    """(dimension,): the first token's state, as the paper has it (arXiv:1810.04805)."""

    def norm(x, gain, bias):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * gain + bias

    def gelu(x):
        return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    def join(layer, name, more, x):
        out = more @ weights.matrix(layer, f"{name}/dense") + weights.vector(layer, f"{name}/dense.bias")
        gain, bias = (weights.vector(layer, f"{name}/LayerNorm.{part}") for part in ("weight", "bias"))
        return norm(x + out, gain, bias)

    x = weights.embedding("word_embeddings.weight")[ids] + weights.embedding("token_type_embeddings.weight")[0]
    x = x + weights.embedding("position_embeddings.weight")[: len(ids)]
    x = norm(x, weights.embedding("LayerNorm.weight"), weights.embedding("LayerNorm.bias"))
    for layer in range(weights.layers):

        def dense(value, name, layer=layer):
            return value @ weights.matrix(layer, name) + weights.vector(layer, f"{name}.bias")

        query, key, value = (
            dense(x, f"attention/self/{part}").reshape(len(ids), weights.heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen = (shares @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        x = join(layer, "attention/output", seen, x)
        x = join(layer, "output", gelu(dense(x, "intermediate/dense")), x)
    return x[0] / np.linalg.norm(x[0])


def run(graph, rows):
    session = providers._session(onnx._onnxruntime(), graph, "cpu")
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for at, row in enumerate(rows):
        ids[at, : len(row)], mask[at, : len(row)] = row, 1
    (hidden,) = session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": mask})
    first = hidden[:, 0]
    return first / np.linalg.norm(first, axis=1, keepdims=True)


ROWS = [[1, 7, 3, 9, 2], [1, 2], [1, *range(5, 35), 2], [1, 40, 41, 2]]


@pytest.fixture(scope="module")
def small():
    return Small()


@pytest.fixture(scope="module")
def ranges(small):
    session = providers._session(onnx._onnxruntime(), graphs.write_taps(small), "cpu")
    names = [node.name for node in session.get_outputs()]
    found = {}
    for row in ROWS:
        feeds = {"input_ids": np.array([row]), "attention_mask": np.ones((1, len(row)), np.int64)}
        for name, values in zip(names, session.run(names, feeds), strict=True):
            largest = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            found[name] = np.maximum(found.get(name, 0), largest)
    return found


@pytest.mark.parametrize("top", [127, 63])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("scheme", list(Scheme), ids=lambda scheme: scheme.value)
def test_a_prepared_graph_is_the_same_network(small, ranges, scheme, pooling, top):
    made = run(graphs.write(small, scheme, pooling=pooling, top=top, ranges=ranges), ROWS)
    wanted = np.stack([by_hand(small, row) for row in ROWS])
    cosines = np.sum(made * wanted, axis=1)
    assert cosines.min() > (0.99999 if scheme is Scheme.FLOAT else 0.995)


@pytest.mark.parametrize("scheme", [Scheme.FLOAT, Scheme.ROW, Scheme.STATIC], ids=lambda scheme: scheme.value)
def test_a_row_does_not_depend_on_its_batch_mates(small, ranges, scheme):
    graph = graphs.write(small, scheme, pooling="cls", ranges=ranges)
    together = run(graph, ROWS)
    for at, row in enumerate(ROWS):
        assert float(together[at] @ run(graph, [row])[0]) > 0.99999


def test_only_the_first_state_is_made_where_only_that_is_read(small, ranges):
    graph = graphs.write(small, Scheme.STATIC, pooling="cls", ranges=ranges)
    session = providers._session(onnx._onnxruntime(), graph, "cpu")
    feeds = {"input_ids": np.array([ROWS[0]]), "attention_mask": np.ones((1, 5), np.int64)}
    assert session.run(None, feeds)[0].shape == (1, 1, Small.dimension)


def test_a_foreign_graph_is_refused_with_a_sentence():
    with pytest.raises(ModelError, match="not laid out as an exported BERT"):
        graphs.Weights(b"no graph at all")
