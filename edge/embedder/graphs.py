"""The same BERT, written anew for speed: fewer operators, numbers of eight bits, and no work that nobody reads.

Made from the full-precision file on the device itself, with the `onnx` package. Four things are done:

* Attention, layer normalisation and GELU are one operator each (onnxruntime's contrib operators).
* Where the vector is the first token's state ("cls"), the last layer is computed for that token alone; its keys and
  values still come from all. It is the same vector, for a fifth less work in a model of four layers.
* The table of word vectors is int8 with a scale a row: 11 MB instead of 43.
* The products of the layers run as `Scheme` says.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError

Array = NDArray[Any]
_CONTRIB = "com.microsoft"
# Of ONNX: LayerNormalization is an operator since 17, ReduceMax takes its axes as an input since 18.
_OPSET, _IR = 18, 9
_EPSILON = 1e-12
_BLOCK = 128


class Scheme(enum.Enum):
    """How the products of the layers are computed."""

    # Float.
    FLOAT = "float"
    # int8, one scale for all activations of a run (as the stock file): a row depends on its batch mates.
    TENSOR = "tensor"
    # int8, a scale for the activations of each token (a row of the product), taken as they come.
    ROW = "row"
    # int8, a scale for each channel, fixed beforehand: SmoothQuant (arXiv:2211.10438) with its alpha at 1, so that the
    # whole range of each channel is moved into the weights, which have a scale for each of their columns.
    STATIC = "static"
    # int8 weights in blocks with a scale each; activations are quantised block by block inside the operator.
    WEIGHTS = "weights"

    @property
    def batch_invariant(self) -> bool:
        return self is not Scheme.TENSOR


class Weights:
    """The parameters of a BERT as `torch.onnx` exports it; names are those of transformers.BertModel."""

    def __init__(self, raw: bytes) -> None:
        """Raises ModelError when it is laid out otherwise, or the `onnx` package is not there."""
        onnx = package()
        try:
            model = onnx.load_from_string(raw)
            constants: dict[str, Array] = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
            nodes = {node.name: node for node in model.graph.node}
            products: dict[str, str] = {name: node.input[1] for name, node in nodes.items() if node.op_type == "MatMul"}
            self._constants, self._products = constants, products
            self.layers = 1 + max(int(name.split(".")[2]) for name in constants if name.startswith("encoder.layer."))
            self.dimension = int(constants["embeddings.word_embeddings.weight"].shape[1])
            divisor = nodes["/encoder/layer.0/attention/self/Div"].input[1]
            # The scores are divided by the root of a head's size.
            size = onnx.numpy_helper.to_array(
                next(node.attribute[0].t for node in model.graph.node if node.output[0] == divisor)
            )
            self.heads = self.dimension // round(float(size) ** 2)
        except Exception as error:  # protobuf's and Python's own alike: a foreign layout can fail anywhere here
            raise ModelError(
                f"the full-precision file is not laid out as an exported BERT ({error}), so no graph can be made of "
                "it; the stock file goes on serving",
                field="model",
            ) from error

    def embedding(self, name: str) -> Array:
        return self._constants[f"embeddings.{name}"]

    def matrix(self, layer: int, name: str) -> Array:
        """(in, out)."""
        return self._constants[self._products[f"/encoder/layer.{layer}/{name}/MatMul"]]

    def vector(self, layer: int, name: str) -> Array:
        return self._constants[f"encoder.layer.{layer}.{name.replace('/', '.')}"]


def package() -> Any:
    """The `onnx` module, which only this needs. Raises ModelError with the way to get it."""
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as error:
        raise ModelError(
            f"the onnx package cannot be imported ({error}); get it with: pip install 'edge-memory[calibrate]'",
            field="onnx",
        ) from error
    return onnx


def write(
    weights: Weights, scheme: Scheme, *, pooling: str, top: int = 127, ranges: Mapping[str, Array] | None = None
) -> bytes:
    """The graph. `top` is the largest int8 weight: 63 where sums saturate (Hardware.saturates).

    `ranges` (for STATIC) is the largest absolute activation of each channel, by site, as a run of `write_taps` gives.
    """
    return _Writer(weights, scheme, pooling == "cls", top, ranges or {}, taps=False).graph()


def write_taps(weights: Weights) -> bytes:
    """The graph in float, whose outputs besides last_hidden_state are the activations of each site, by its name."""
    return _Writer(weights, Scheme.FLOAT, False, 127, {}, taps=True).graph()


class _Writer:
    def __init__(
        self, weights: Weights, scheme: Scheme, first_only: bool, top: int, ranges: Mapping[str, Array], *, taps: bool
    ) -> None:
        self._onnx = package()
        self._weights = weights
        self._scheme = scheme
        self._first_only = first_only
        self._top = top
        self._ranges = ranges
        self._taps = taps
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._sites: list[str] = []

    def graph(self) -> bytes:
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        hidden = self._embed()
        mask = self._op("Cast", "attention_mask", to=kinds.INT32)
        for layer in range(self._weights.layers):
            last = self._first_only and layer == self._weights.layers - 1
            hidden = self._layer(layer, hidden, mask, last)
        self._nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        describe = helper.make_tensor_value_info
        inputs = [describe(name, kinds.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
        outputs = [describe("last_hidden_state", kinds.FLOAT, ["batch", "states", self._weights.dimension])]
        outputs += [describe(site, kinds.FLOAT, None) for site in self._sites]
        graph = helper.make_graph(self._nodes, "bert", inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        raw: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=_IR).SerializeToString()
        return raw

    def _embed(self) -> str:
        weights = self._weights
        table = weights.embedding("word_embeddings.weight")
        kinds = self._onnx.TensorProto
        if self._scheme is Scheme.FLOAT:
            words = self._op("Gather", self._constant(table), "input_ids")
        else:
            # A scale a row; the sum of both roundings stays far below that of the layers.
            scale = _scale(table, 1, 127)
            rounded = self._constant(np.rint(table / scale).astype(np.int8))
            words = self._op("Cast", self._op("Gather", rounded, "input_ids"), to=kinds.FLOAT)
            words = self._op("Mul", words, self._op("Gather", self._constant(scale), "input_ids"))
        # One sentence a text, so its type is always the first.
        places = weights.embedding("position_embeddings.weight") + weights.embedding("token_type_embeddings.weight")[0]
        zero, one, two = (self._constant(np.array([n])) for n in (0, 1, 2))
        tokens = self._op("Slice", self._op("Shape", "input_ids"), one, two)
        here = self._op("Slice", self._constant(places), zero, tokens, zero)
        return self._normalised(
            self._op("Add", words, here),
            weights.embedding("LayerNorm.weight"),
            weights.embedding("LayerNorm.bias"),
        )

    def _layer(self, layer: int, hidden: str, mask: str, last: bool) -> str:
        weights = self._weights
        query, key, value = (weights.matrix(layer, f"attention/self/{part}") for part in ("query", "key", "value"))
        biases = [weights.vector(layer, f"attention/self/{part}.bias") for part in ("query", "key", "value")]
        site = f"{layer}.attention"
        if last:
            first = self._first(hidden)
            asked = self._product(first, query, site)
            known = self._product(hidden, np.concatenate([key, value], axis=1), site)
            parts = [asked, *self._split(known, 2)]
            hidden = first
        else:
            parts = self._split(self._product(hidden, np.concatenate([query, key, value], axis=1), site), 3)
        attended = self._op(
            "MultiHeadAttention",
            *parts,
            self._constant(np.concatenate(biases)),
            mask,
            domain=_CONTRIB,
            num_heads=weights.heads,
        )
        out = self._product(attended, weights.matrix(layer, "attention/output/dense"), f"{layer}.output")
        hidden = self._joined(layer, "attention/output", out, hidden)
        up = self._product(hidden, weights.matrix(layer, "intermediate/dense"), f"{layer}.up")
        bias = self._constant(weights.vector(layer, "intermediate/dense.bias"))
        up = self._op("BiasGelu", up, bias, domain=_CONTRIB)
        down = self._product(up, weights.matrix(layer, "output/dense"), f"{layer}.down")
        return self._joined(layer, "output", down, hidden)

    def _joined(self, layer: int, name: str, out: str, hidden: str) -> str:
        """Bias, residual and norm. Not SkipLayerNormalization: its loop is scalar, and cost four times as much here."""
        bias = self._constant(self._weights.vector(layer, f"{name}/dense.bias"))
        return self._normalised(
            self._op("Add", self._op("Add", out, bias), hidden),
            self._weights.vector(layer, f"{name}/LayerNorm.weight"),
            self._weights.vector(layer, f"{name}/LayerNorm.bias"),
        )

    def _normalised(self, hidden: str, weight: Array, bias: Array) -> str:
        return self._op("LayerNormalization", hidden, self._constant(weight), self._constant(bias), epsilon=_EPSILON)

    def _first(self, hidden: str) -> str:
        """(batch, tokens, n) to (batch, 1, n)."""
        zero, one = self._constant(np.array([0])), self._constant(np.array([1]))
        return self._op("Slice", hidden, zero, one, one)

    def _split(self, hidden: str, parts: int) -> list[str]:
        sizes = self._constant(np.array([self._weights.dimension] * parts))
        return self._ops("Split", [hidden, sizes], parts, axis=-1)

    def _product(self, hidden: str, matrix: Array, site: str) -> str:
        """hidden @ matrix, (batch, tokens, in) to (batch, tokens, out)."""
        if self._taps and site not in self._sites:
            self._sites.append(site)
            self._nodes.append(self._onnx.helper.make_node("Identity", [hidden], [site]))
        if self._scheme is Scheme.FLOAT:
            return self._op("MatMul", hidden, self._constant(matrix))
        if self._scheme is Scheme.WEIGHTS:
            return self._blocks(hidden, matrix)
        if self._scheme is Scheme.TENSOR:
            rounded, scale = self._rounded(matrix)
            return self._op("DynamicQuantizeMatMul", hidden, rounded, scale, domain=_CONTRIB)
        if self._scheme is Scheme.ROW:
            largest = self._op("ReduceMax", self._op("Abs", hidden), self._constant(np.array([-1])), keepdims=1)
            # A token whose activations are all zero stays so.
            largest = self._op("Max", largest, self._constant(np.array(1e-9, np.float32)))
            product = self._integer(self._op("Div", hidden, largest), np.float32(1 / 127), matrix)
            return self._op("Mul", product, largest)
        # Channels that calibration never saw move are kept from a division by zero.
        scale = np.maximum(self._ranges[site], 1e-6).astype(np.float32) / np.float32(127)
        scaled = self._op("Mul", hidden, self._constant(np.float32(1) / scale))
        return self._integer(scaled, np.float32(1), matrix * scale[:, None])

    def _integer(self, hidden: str, step: np.float32, matrix: Array) -> str:
        """The product after rounding `hidden` to whole steps. Activations are unsigned around 128, as kernels want."""
        size, middle = self._constant(np.array(step, np.float32)), self._constant(np.array(128, np.uint8))
        rounded, scale = self._rounded(matrix)
        quantised = self._op("QuantizeLinear", hidden, size, middle)
        return self._op("MatMulIntegerToFloat", quantised, rounded, size, scale, middle, domain=_CONTRIB)

    def _rounded(self, matrix: Array) -> tuple[str, str]:
        """int8 with a scale a column."""
        scale = _scale(matrix, 0, self._top)
        return self._constant(np.rint(matrix / scale).astype(np.int8)), self._constant(scale.reshape(-1))

    def _blocks(self, hidden: str, matrix: Array) -> str:
        inner, outer = matrix.shape
        block = math.gcd(inner, _BLOCK)
        blocks = np.ascontiguousarray(matrix.T).reshape(outer, inner // block, block)
        scale = _scale(blocks, 2, 127)
        rounded = (np.rint(blocks / scale) + 128).astype(np.uint8)
        return self._op(
            "MatMulNBits", hidden, self._constant(rounded), self._constant(scale.reshape(-1)),
            domain=_CONTRIB, K=inner, N=outer, bits=8, block_size=block, accuracy_level=4,
        )  # fmt: skip

    def _constant(self, array: Array) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self._ops(kind, list(inputs), 1, domain=domain, **attributes)[0]

    def _ops(self, kind: str, inputs: list[str], outputs: int, domain: str = "", **attributes: Any) -> list[str]:
        name = f"{kind}_{len(self._nodes)}"
        names = [f"{name}_{number}" for number in range(outputs)]
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, names, name, domain=domain, **attributes))
        return names


def _scale(array: Array, axis: int, top: int) -> NDArray[np.float32]:
    """What one step is worth along an axis, kept as an axis of 1; 1 where all is zero."""
    scale = np.abs(array).max(axis=axis, keepdims=True) / top
    return np.where(scale == 0, 1, scale).astype(np.float32)
