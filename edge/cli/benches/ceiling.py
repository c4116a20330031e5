"""The raw ceiling: the model alone, in onnxruntime sessions of our own, without any part of the box around it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from edge.cli.benches.machine import cores
from edge.config import DEFAULT_MODEL, models_directory
from edge.embedder import manifest, store
from edge.embedder.tokens import TextEncoder
from edge.types import Lane

ROWS_ALONE = 0
_BUDGETS = (ROWS_ALONE, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class Variant:
    """`budget` padded tokens a batch (0: each row alone), on `threads` threads of `intra` cores each."""

    budget: int
    threads: int
    intra: int

    def __str__(self) -> str:
        batch = f"batches of {self.budget} padded tokens" if self.budget else "rows alone"
        return f"{batch}, {self.threads} threads × {self.intra} cores"


class RawModel:
    """The default model's files, and a session for each number of cores."""

    def __init__(self) -> None:
        """Raises ModelError when the model was never fetched."""
        model = manifest.load().get(DEFAULT_MODEL)
        files = store.read(model, models_directory())
        self._graph = files["model.onnx"]
        self._encoder = TextEncoder(files["tokenizer.json"], model)
        self._sessions: dict[int, Any] = {}
        self.bytes = len(self._graph)
        self.dimension = model.dimension

    def session(self, intra: int) -> Any:
        """onnxruntime as it comes, but for the number of cores and the box's exact products (quantprecision)."""
        if intra not in self._sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = intra
            options.inter_op_num_threads = 1
            options.log_severity_level = 3
            options.add_session_config_entry("session.x64quantprecision", "1")
            self._sessions[intra] = onnxruntime.InferenceSession(
                self._graph, options, providers=["CPUExecutionProvider"]
            )
        return self._sessions[intra]

    def tokens(self, texts: Sequence[str], lane: Lane = Lane.INGEST) -> list[tuple[int, ...]]:
        """One window a text; those of the benches have no more."""
        return [encoded.windows[0] for encoded in self._encoder.encode(texts, lane)]

    def run(self, intra: int, windows: Sequence[tuple[int, ...]]) -> Any:
        """(n, dimension): unit rows of the first token's state."""
        width = max(map(len, windows))
        ids = np.zeros((len(windows), width), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self.session(intra).run(["last_hidden_state"], feeds)
        rows = hidden[:, 0]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self) -> None:
        """Frees the sessions."""
        self._sessions.clear()


def variants(count: int) -> list[Variant]:
    """What the search tries on a machine of so many cores."""
    splits = {(1, 1), (1, count), (count, 1)} | ({(count // 2, 2)} if count > 2 else set())
    return [Variant(budget, threads, intra) for threads, intra in sorted(splits) for budget in _BUDGETS]


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices, sorted by length so that nothing pads more than it must, longest first so that threads end together."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    found: list[list[int]] = []
    for index in order:
        # The first of a batch is its longest.
        if found and budget and (len(found[-1]) + 1) * lengths[found[-1][0]] <= budget:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def measure(model: RawModel, texts: Sequence[str], variant: Variant) -> float:
    """Seconds to tokenise all of the texts and embed them; the session is warm."""
    model.run(variant.intra, model.tokens(texts[:1]))
    started = time.perf_counter()
    windows = model.tokens(texts)
    left = batches([len(window) for window in windows], variant.budget)[::-1]
    _drain(model, variant, windows, left)
    return time.perf_counter() - started


def in_order(model: RawModel, texts: Sequence[str], size: int) -> float:
    """Seconds for batches of a fixed size in order of arrival, in one session with all cores: the plain way."""
    intra = cores()
    model.run(intra, model.tokens(texts[:1]))
    started = time.perf_counter()
    windows = model.tokens(texts)
    for start in range(0, len(windows), size):
        model.run(intra, windows[start : start + size])
    return time.perf_counter() - started


def search(model: RawModel, texts: Sequence[str], sample: int) -> tuple[Variant, dict[str, float]]:
    """The quickest, and texts a second of all: each on `sample` texts, the best three again on four times that."""
    few, more = texts[:sample], texts[: 4 * sample]
    rates = {variant: len(few) / measure(model, few, variant) for variant in variants(cores())}
    finalists = sorted(rates, key=rates.__getitem__, reverse=True)[:3]
    final = {variant: len(more) / measure(model, more, variant) for variant in finalists}
    return max(final, key=final.__getitem__), {str(variant): rate for variant, rate in {**rates, **final}.items()}


def _drain(model: RawModel, variant: Variant, windows: Sequence[tuple[int, ...]], left: list[list[int]]) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                # list.pop is one step under the interpreter's lock.
                batch = left.pop()
                model.run(variant.intra, [windows[index] for index in batch])
        except IndexError:
            return
        except BaseException as error:  # noqa: BLE001  # told on the calling thread
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(variant.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
