"""A bge model in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edge.config import Embedding
from edge.embedder import manifest, providers, reference, store
from edge.embedder.governor import worker_count
from edge.embedder.manifest import Model
from edge.embedder.tokens import TextEncoder
from edge.errors import EdgeError, ModelError, Unavailable
from edge.ports import Encoded
from edge.types import Lane, Matrix, ModelInfo

# Padded tokens of one run of a model whose rows may share it.
_RUN_TOKENS = 8192


def load(
    model_id: str, directory: Path, config: Embedding, *, runtime: providers.Runtime | None = None
) -> OnnxEmbedder:
    """The model from the models directory: digests checked, session opened, self-check passed.

    Raises NotFound for an unknown id, ModelError (with the way out) when the files are missing, damaged or foreign.
    """
    model = manifest.load().get(model_id)
    embedder = load_unchecked(model, directory, config, runtime=runtime)
    reference.load(manifest.locate()).check(embedder, model)
    return embedder


def load_unchecked(
    model: Model, directory: Path, config: Embedding, *, runtime: providers.Runtime | None = None
) -> OnnxEmbedder:
    """As `load`, without the self-check: only for writing the vectors that the self-check compares with."""
    if model.kind != "onnx":
        raise ModelError(f"model {model.id} runs at an endpoint, not in this process", field="model")
    files = store.read(model, directory)
    encoder = TextEncoder(files["tokenizer.json"], model)
    graph = files["model.onnx"]

    def probe(session: Any) -> Matrix:
        runner = OnnxEmbedder(model, encoder, session, "", 1, len(graph))
        return reference.embed(runner, [text for _, text in reference.SENTENCES])

    try:
        session, device = providers.open_session(runtime or _onnxruntime(), graph, model, config.device, probe)
    except EdgeError:
        raise
    except Exception as error:  # onnxruntime has its own exceptions, which share no base
        raise ModelError(
            f"model {model.id}: onnxruntime cannot load model.onnx ({error}); get a good copy with: "
            f"edge model pull {model.id}",
            field="model",
        ) from error
    # An accelerator is one queue: more threads only wait in line for it.
    workers = worker_count(config) if device == "cpu" else config.workers or 1
    return OnnxEmbedder(model, encoder, session, device, workers, len(graph))


class OnnxEmbedder:
    """ports.Embedder over one session that all threads share."""

    def __init__(self, model: Model, encoder: TextEncoder, session: Any, device: str, workers: int, size: int) -> None:
        """Raises ModelError when the graph is not a BERT's: token ids in, last_hidden_state (b, s, dimension) out."""
        inputs = {node.name for node in session.get_inputs()}
        outputs = {node.name: node.shape for node in session.get_outputs()}
        hidden = outputs.get("last_hidden_state", [None])
        if "input_ids" not in inputs or hidden[-1] != model.dimension:
            raise ModelError(
                f"model {model.id}: model.onnx is another model (inputs {sorted(inputs)}, outputs {outputs}); get the "
                f"right one with: edge model pull {model.id}",
                field="model",
            )
        self._model = model
        self._encoder = encoder
        self._session: Any = session
        self._inputs = inputs
        self._info = ModelInfo(
            model.id, model.dimension, device, workers, size, model.max_tokens, model.batch_invariant
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str], lane: Lane) -> list[Encoded]:
        return self._encoder.encode(texts, lane)

    def embed(self, batch: Sequence[Encoded]) -> Matrix:
        """(n, dimension): one unit row an item, or all NaN where there is none.

        An item of several windows gets the mean of their vectors, weighted by tokens. One without any token (an empty
        text) has no meaning to find, and gets NaN rather than the vector of [CLS][SEP], which is near to everything.
        """
        windows = [
            (item, window) for item, encoded in enumerate(batch) for window in encoded.windows if len(window) > 2
        ]
        sums = np.zeros((len(batch), self._model.dimension), np.float32)
        for run in self._runs(windows):
            vectors = self._run([window for _, window in run])
            for (item, window), vector in zip(run, vectors, strict=True):
                sums[item] += vector * np.float32(len(window))
        return unit(sums)

    def close(self) -> None:
        """Frees the weights once the runs in progress are over."""
        self._session = None

    def _runs(self, windows: list[tuple[int, tuple[int, ...]]]) -> list[list[tuple[int, tuple[int, ...]]]]:
        """What shares a run of the graph: nothing, unless the model's rows do not mind their mates."""
        if not self._model.batch_invariant:
            return [[window] for window in windows]
        runs: list[list[tuple[int, tuple[int, ...]]]] = []
        longest = 0
        for window in sorted(windows, key=lambda pair: len(pair[1])):
            longest = max(longest, len(window[1]))
            if not runs or (len(runs[-1]) + 1) * longest > _RUN_TOKENS:
                runs.append([])
                longest = len(window[1])
            runs[-1].append(window)
        return runs

    def _run(self, windows: Sequence[tuple[int, ...]]) -> Matrix:
        """(n, dimension), pooled; unit rows where the model is to be normalised."""
        session = self._session
        if session is None:
            raise Unavailable("the model was closed; the box is stopping")
        width = max(map(len, windows))
        ids = np.zeros((len(windows), width), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(
            ["last_hidden_state"], {name: array for name, array in feeds.items() if name in self._inputs}
        )
        pooled = pool(np.asarray(hidden, np.float32), mask, self._model.pooling)
        return unit(pooled) if self._model.normalise else pooled


def pool(hidden: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> Matrix:
    """(b, s, dimension) and (b, s) to (b, dimension): the first token's state for "cls", the mean of all for "mean"."""
    if pooling == "cls":
        return hidden[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    return cast(Matrix, (hidden * weights).sum(axis=1) / weights.sum(axis=1))


def unit(rows: Matrix) -> Matrix:
    """Rows of L2 norm 1; all NaN for a row that is zero or not finite."""
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        usable = np.isfinite(norms) & (norms > 0)
        scaled: Matrix = np.where(usable, rows / norms, np.float32(np.nan)).astype(np.float32, copy=False)
    return scaled


def _onnxruntime() -> providers.Runtime:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"onnxruntime cannot be imported ({error}); install it with: pip install 'edge-memory[cpu]'", field="model"
        ) from error
    return cast(providers.Runtime, onnxruntime)
