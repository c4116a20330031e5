"""A bge model in onnxruntime."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edge.config import Embedding
from edge.embedder import choice, heap, manifest, providers, reference, store
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

    It runs the variant that the owner took, if any: see `choice`. Raises NotFound for an unknown id, ModelError (with
    the way out) when the files are missing, damaged or foreign.
    """
    model = manifest.load().get(model_id)
    chosen = choice.taken(model, directory)
    if chosen is not None:
        tokenizer = store.read(model, directory)["tokenizer.json"]
        try:
            variant = open_graph(chosen.model, tokenizer, chosen.graph, config, runtime=runtime)
            chosen.reference.check(variant, chosen.model)
            variant.instruct(config.instruction)
        except ModelError as error:
            # What the stock file's errors advise, to pull it again, would not help.
            raise choice.unusable(model, error.message.split(";")[0], chosen.model.id) from error
        return variant
    embedder = load_unchecked(model, directory, config, runtime=runtime)
    reference.load(manifest.locate()).check(embedder, model)
    embedder.instruct(config.instruction)
    return embedder


def load_unchecked(
    model: Model, directory: Path, config: Embedding, *, runtime: providers.Runtime | None = None
) -> OnnxEmbedder:
    """As `load`, without the self-check: only for writing the vectors that the self-check compares with."""
    if model.kind != "onnx":
        raise ModelError(f"model {model.id} runs at an endpoint, not in this process", field="model")
    files = store.read(model, directory)
    return open_graph(model, files["tokenizer.json"], files["model.onnx"], config, runtime=runtime)


def open_graph(
    model: Model, tokenizer: bytes, graph: bytes, config: Embedding, *, runtime: providers.Runtime | None = None
) -> OnnxEmbedder:
    """A graph in a session of its own, as that model; neither its digest nor its vectors are looked at."""
    encoder = TextEncoder(tokenizer, model)

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
    return OnnxEmbedder(model, encoder, session, device, workers, len(graph), config.idle_release)


class OnnxEmbedder:
    """ports.Embedder over one session that all threads share."""

    def __init__(
        self,
        model: Model,
        encoder: TextEncoder,
        session: Any,
        device: str,
        workers: int,
        size: int,
        idle_release: float = 60.0,
    ) -> None:
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
        self._idle_release = idle_release
        # time.monotonic() of the last run; None: there was none since the buffers were given back.
        self._used: float | None = None
        # Padded tokens in runs now, and the most at once since the buffers were given back, for which there are some.
        self._running = self._held = 0
        self._lock = threading.Lock()
        self._info = ModelInfo(
            model.id,
            model.dimension,
            device,
            workers,
            size,
            model.max_tokens,
            model.batch_invariant,
            model.language,
            model.unrelated,
            model.related,
            model.behind,
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str], lane: Lane) -> list[Encoded]:
        return self._encoder.encode(texts, lane)

    def instruct(self, wanted: bool) -> None:
        """Whether the recall lane gets the model's instruction; it does until somebody says otherwise."""
        self._encoder.instructs = wanted

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

    def release(self) -> int:
        """See ports.Embedder. The buffers of a run in progress stay; its next ones are allocated anew.

        One run of two tokens asks onnxruntime for it, as there is no other way. Measured after 800 rows of up to 512
        tokens: 154 MB before, 108 MB after (105 MB is the session that never ran), 5 ms in all; the first row of 64
        tokens after it took 6.5 ms instead of 5.8, of 512 tokens 70 instead of 60.
        """
        used, session = self._used, self._session
        if used is None or session is None or time.monotonic() - used < self._idle_release:
            return self._held
        options = _onnxruntime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        session.run(["last_hidden_state"], self._feeds([(0, 0)])[0], options)
        heap.trim()
        # A run that began meanwhile has a time of its own, and is released after it.
        if self._used == used:
            self._used = None
        with self._lock:
            self._held = self._running
        return self._held

    def outputs(self, window: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Every output of the graph for one window, by name: what graphs are fitted by (see graphs.write_taps)."""
        names = [node.name for node in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, self._feeds([tuple(window)])[0]), strict=True))

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
        feeds, mask = self._feeds(windows)
        with self._lock:
            self._running += mask.size
            self._held = max(self._held, self._running)
            self._used = time.monotonic()
        try:
            (hidden,) = session.run(["last_hidden_state"], feeds)
        finally:
            with self._lock:
                self._running -= mask.size
                self._used = time.monotonic()
        pooled = pool(np.asarray(hidden, np.float32), mask, self._model.pooling)
        return unit(pooled) if self._model.normalise else pooled

    def _feeds(self, windows: Sequence[tuple[int, ...]]) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
        """The graph's inputs, padded to the longest window, and the mask: (n, longest) each."""
        ids = np.zeros((len(windows), max(map(len, windows))), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: array for name, array in feeds.items() if name in self._inputs}, mask


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
