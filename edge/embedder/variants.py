"""How fast and how true each variant of a model is on this device, and which of them is worth taking.

A variant is the same network with other numbers or operators (`graphs.Scheme`), prepared here from the full-precision
file. It is true when its vectors are near to that file's.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge.config import Embedding
from edge.embedder import calibrate, choice, graphs, hardware, manifest, onnx, reference, sentences, store
from edge.embedder.graphs import Scheme
from edge.embedder.manifest import Model
from edge.embedder.onnx import OnnxEmbedder
from edge.errors import InvalidArgument, ModelError
from edge.ports import Encoded
from edge.types import Lane, Matrix

# Cosine to the full-precision vectors: what the stock file of the default model keeps (.987 and .977 in the table of
# benchmarks/README.md), so that no variant is taken that is further off than what everybody runs.
MEAN, WORST = 0.985, 0.975
# A row that moves less than this with its batch mates may share a run (ports.Embedder promises it).
INDEPENDENT = 0.9999
# Within this share of the fastest the truest is taken: less is noise, and not worth a vector.
NEARLY_AS_FAST = 0.9
# The graphs are fitted to other sentences than they are judged by.
_FIT, _FIT_ODD, _FIT_SEED = 300, 80, 1
_JUDGE, _JUDGE_SEED = 200, 2
_MATES = 8
# Timed: so many texts, each as often; the quickest counts.
_TIMED, _REPEATS = 32, 4
_SPELL, _ROUNDS = 0.4, 3
_FULL = "fp32"
# Those that can be prepared, besides the stock file.
NAMES = tuple(scheme.value for scheme in Scheme)

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table. Cosines are to the full-precision vectors, `batch` to the row alone; None: not known."""

    variant: str
    bytes: int
    # Tokens a second: rows alone on one thread, and with the threads and batches that are best here.
    single: float
    best: float
    workers: int
    batch_tokens: int
    mean: float | None
    worst: float | None
    batch: float
    verdict: str = ""

    @property
    def independent(self) -> bool:
        return self.batch >= INDEPENDENT

    @property
    def true(self) -> bool:
        return self.mean is not None and self.worst is not None and self.mean >= MEAN and self.worst >= WORST


@dataclass(frozen=True, slots=True)
class Comparison:
    """`best` is the variant worth taking; `left_out` has a sentence for each that could not be measured."""

    model: str
    rows: tuple[Measured, ...]
    best: str
    left_out: tuple[str, ...]
    graphs: dict[str, bytes] = dataclasses.field(repr=False)
    tokenizer: bytes = dataclasses.field(repr=False)


def compare(model: Model, directory: Path, config: Embedding, report: Report) -> Comparison:
    """Measures every variant that can be had here: a minute or two on two cores, and some 0.7 GB of memory.

    Raises ModelError when the stock or the full-precision file cannot be used. `report` gets a sentence at each step.
    """
    config = dataclasses.replace(config, device="cpu")
    files = store.read(model, directory)
    found, left_out = _prepared(model, directory, report)
    found = {choice.STOCK: files["model.onnx"], **found}
    opened: dict[str, OnnxEmbedder] = {}
    try:
        for name, graph in list(found.items()):
            # As if its rows could share a run: that is what the judging finds out.
            as_batches = choice.named(model, name, batch_invariant=True, precision="")
            try:
                opened[name] = onnx.open_graph(as_batches, files["tokenizer.json"], graph, config)
            except ModelError as error:
                left_out.append(f"{name} was left out, this onnxruntime cannot run it ({error.message.split(';')[0]})")
                del found[name]
        rows = _measured(opened, found, config, report)
    finally:
        for embedder in opened.values():
            embedder.close()
    best = worth_taking(rows)
    return Comparison(
        model.id, tuple(dataclasses.replace(row, verdict=_verdict(row, best)) for row in rows), best,
        tuple(left_out), found, files["tokenizer.json"],
    )  # fmt: skip


def worth_taking(rows: Sequence[Measured]) -> str:
    """Of the true ones that are nearly as fast as the fastest, the truest; the stock file where there is none. Pure."""
    able = [row for row in rows if row.variant != _FULL and (row.true or row.variant == choice.STOCK)]
    fastest = max((row.best for row in able), default=0.0)
    near = [row for row in able if row.best >= NEARLY_AS_FAST * fastest]
    if not near:
        return choice.STOCK
    return max(near, key=lambda row: (row.worst or 0.0, row.variant == choice.STOCK, row.best)).variant


def take(comparison: Comparison, variant: str, directory: Path) -> None:
    """Make a measured variant the one that the box starts with; `choice.STOCK` goes back.

    Raises InvalidArgument for one that was not measured or is too far off, ModelError when it cannot be kept.
    """
    model = manifest.load().get(comparison.model)
    row = next((row for row in comparison.rows if row.variant == variant), None)
    try:
        if variant == choice.STOCK:
            choice.go_back(model, directory)
            return
        if row is None or variant == _FULL:
            names = ", ".join(row.variant for row in comparison.rows if row.variant != _FULL)
            raise InvalidArgument(f"take: there is no variant {variant!r} here; there are {names}", field="take")
        if not row.true:
            raise InvalidArgument(
                f"take: the vectors of {variant} are too far from full precision (worst cosine {row.worst:.4f}, the "
                f"floor is {WORST}); take another",
                field="take",
            )
        precision = "fp32" if variant == Scheme.FLOAT.value else "int8"
        named = choice.named(model, variant, batch_invariant=row.independent, precision=precision)
        graph = comparison.graphs[variant]
        embedder = onnx.open_graph(named, comparison.tokenizer, graph, Embedding(device="cpu"))
        choice.take(model, directory, variant, graph, embedder, precision)
        embedder.close()
    except OSError as error:
        raise ModelError(
            f"the variant {variant} cannot be kept in {choice.folder(model, directory)} ({error}); make that folder "
            "writable, or free some space",
            field="take",
        ) from error


def full_precision(model: Model) -> Model | None:
    """The model of which this is the int8 file, by the manifest's names: `<id>` for `<id>-q`."""
    for other in manifest.load().models:
        if other.id == model.id.removesuffix("-q") and other.precision == "fp32" and other.id != model.id:
            return other
    return None


def _prepared(model: Model, directory: Path, report: Report) -> tuple[dict[str, bytes], list[str]]:
    """Graphs by variant, the full-precision file among them, and why others are not there."""
    full = full_precision(model)
    if full is None:
        raise ModelError(
            f"the manifest has no full-precision file of {model.id}, so there is nothing to prepare variants from; "
            "calibrate another model",
            field="model",
        )
    try:
        files = store.read(full, directory)
    except ModelError as error:
        raise ModelError(
            f"variants are prepared from the full-precision file and judged by it: {error.message}", field="model"
        ) from error
    raw = files["model.onnx"]
    found = {_FULL: raw}
    try:
        weights = graphs.Weights(raw)
        report(f"{model.id}: preparing graphs from {full.id}")
        ranges = _ranges(weights, full, files["tokenizer.json"])
    except ModelError as error:
        return found, [f"{', '.join(NAMES)} were left out: {error.message}"]
    top = 63 if hardware.here().saturates else 127
    for scheme in Scheme:
        found[scheme.value] = graphs.write(weights, scheme, pooling=model.pooling, top=top, ranges=ranges)
    return found, []


def _ranges(weights: graphs.Weights, full: Model, tokenizer: bytes) -> dict[str, NDArray[Any]]:
    """The largest absolute activation of each channel at each site, over the sentences that graphs are fitted to."""
    embedder = onnx.open_graph(full, tokenizer, graphs.write_taps(weights), Embedding(device="cpu"))
    windows = [item.windows[0] for item in embedder.encode(sentences.made(_FIT, _FIT_SEED), Lane.INGEST)]
    # Words that never stand together as well, so that what is rare is not cut off at what is common.
    chance = random.Random(_FIT_SEED)  # noqa: S311  # a seed, not a secret
    words = range(1, weights.embedding("word_embeddings.weight").shape[0])
    windows += [tuple(chance.choices(words, k=chance.randint(3, 100))) for _ in range(_FIT_ODD)]
    found: dict[str, NDArray[Any]] = {}
    try:
        for window in windows:
            for site, values in embedder.outputs(window).items():
                largest = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
                found[site] = np.maximum(found[site], largest) if site in found else largest
    finally:
        embedder.close()
    return found


def _measured(
    opened: dict[str, OnnxEmbedder], found: dict[str, bytes], config: Embedding, report: Report
) -> list[Measured]:
    some = next(iter(opened.values()))
    texts = [text for _, text in reference.SENTENCES] + sentences.made(_JUDGE, _JUDGE_SEED)
    items = some.encode(texts, Lane.INGEST)
    report(f"judging {len(opened)} variants by {len(items)} sentences")
    alone = {name: _alone(embedder, items) for name, embedder in opened.items()}
    moved = {name: _moved(embedder, items, alone[name]) for name, embedder in opened.items()}
    report("timing them, a text at a time and then with all threads")
    singles = _singles(opened, items[:: max(1, len(items) // _TIMED)])
    threaded = _threaded(opened, items, config, moved)
    rows = []
    for name in opened:
        workers, tokens, rate = threaded[name]
        truth = None if _FULL not in alone else np.sum(alone[name] * alone[_FULL], axis=1)
        rows.append(
            Measured(
                name, len(found[name]), singles[name], rate, workers, tokens,
                None if truth is None else float(np.mean(truth)), None if truth is None else float(np.min(truth)),
                moved[name],
            )
        )  # fmt: skip
    return rows


def _alone(embedder: OnnxEmbedder, items: Sequence[Encoded]) -> Matrix:
    with ThreadPoolExecutor(embedder.info.workers, "judge") as pool:
        return np.concatenate(list(pool.map(lambda item: embedder.embed([item]), items)))


def _moved(embedder: OnnxEmbedder, items: Sequence[Encoded], alone: Matrix) -> float:
    """The least cosine of a row to itself alone, when it shares its run with others of any length."""
    order = list(range(len(items)))
    random.Random(_JUDGE_SEED).shuffle(order)  # noqa: S311  # a seed, not a secret
    order = order[: len(order) // 2]
    least = 1.0
    for start in range(0, len(order), _MATES):
        chosen = order[start : start + _MATES]
        rows = embedder.embed([items[index] for index in chosen])
        least = min(least, float(np.min(np.sum(rows * alone[chosen], axis=1))))
    return least


def _singles(opened: dict[str, OnnxEmbedder], items: Sequence[Encoded]) -> dict[str, float]:
    """Tokens a second of one thread: text by text, variant after variant, so that all see the same busy moments."""
    quickest = {name: [float("inf")] * len(items) for name in opened}
    for _ in range(_REPEATS):
        for at, item in enumerate(items):
            for name, embedder in opened.items():
                begun = time.perf_counter()
                embedder.embed([item])
                quickest[name][at] = min(quickest[name][at], time.perf_counter() - begun)
    tokens = sum(item.tokens for item in items)
    return {name: tokens / sum(times) for name, times in quickest.items()}


def _threaded(
    opened: dict[str, OnnxEmbedder], items: Sequence[Encoded], config: Embedding, moved: dict[str, float]
) -> dict[str, tuple[int, int, float]]:
    """(threads, tokens of a batch, tokens a second) of each one's best setting; 1 token a batch: rows alone."""
    texts = sorted(items, key=lambda item: item.tokens)
    settings = [
        (name, embedder.info.workers, tokens)
        for name, embedder in opened.items()
        for tokens in ((1, config.batch_tokens) if moved[name] >= INDEPENDENT else (1,))
    ]
    rates = dict.fromkeys(settings, 0.0)
    for _ in range(_ROUNDS):
        for name, workers, tokens in settings:
            rate = calibrate.throughput(opened[name], texts, workers, tokens, _SPELL)
            rates[name, workers, tokens] = max(rates[name, workers, tokens], rate)
    found: dict[str, tuple[int, int, float]] = {}
    for (name, workers, tokens), rate in rates.items():
        if name not in found or rate > found[name][2]:
            found[name] = (workers, tokens, rate)
    return found


def _verdict(row: Measured, best: str) -> str:
    if row.variant == best:
        return "best"
    if row.variant == _FULL:
        return "the measure"
    if not row.true and row.mean is not None:
        return "below the floor"
    return "" if row.independent else "rows alone"
