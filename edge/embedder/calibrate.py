"""How many threads and which batches are fastest on this device, and what memory a run needs: measured, and kept.

Once at the first start, some seconds; and again when the device or what runs on it has changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from edge import __version__
from edge.config import Embedding
from edge.embedder import choice, hardware, heap, sentences
from edge.embedder.governor import BYTES_PER_TOKEN, Device
from edge.embedder.planner import plan
from edge.ports import Clock, Embedder, Encoded
from edge.types import Lane, Micros, ModelInfo

log = logging.getLogger(__name__)

# Another setting must be this much faster than the default one: less is a busy machine's noise.
CLEARLY = 1.1
# Seconds of measuring in all, and of one measurement at most.
_SECONDS, _SPELL = 3.0, 0.25
_ROUNDS = 2
_TEXTS, _SEED = 96, 7
# Padded tokens of a batch; of 1, each row runs alone.
_BATCHES = (1, 256, 512, 1024)
_FILE = "calibration.json"
# Padded tokens of a batch whose rows run alone, at least.
_ROWS_ALONE = 384
# Less growth than this a token, and the memory was there already; more than the second, and it was not the run's. The
# long windows of the largest model here come to some 2 MB.
_LEAST_BYTES, _MOST_BYTES = 8 * 1024.0, 16 * 1024 * 1024.0
# No device takes more at once; a record that says so is damaged.
_MOST_TOKENS = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One setting and what it gave; a batch of 1 token is a row alone."""

    workers: int
    batch_tokens: int
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is best on this device. `key` stands for the device and the versions; `at` 0: nothing was measured."""

    key: str
    at: Micros
    model: str
    variant: str
    workers: int
    batch_tokens: int
    tokens_per_second: float
    # Memory that a run needs for each padded token of a window of full length.
    bytes_per_token: float
    table: tuple[Row, ...] = ()

    def device(self, info: ModelInfo) -> Device:
        """For the governor."""
        device = Device(self.workers, self.batch_tokens, info.window, self.bytes_per_token)
        # Rows that run alone make a batch no slice: a recall has a thread of its own, and shorter batches only take
        # more of the interpreter's time, on every piece.
        return device if info.batch_invariant else dataclasses.replace(device, least_batch=_ROWS_ALONE)


def load_or_measure(embedder: Embedder, directory: Path, config: Embedding, clock: Clock) -> Calibration:
    """The calibration kept beside the model, if it is of this device; else a new one, kept for the next time.

    At most 5 s. Never raises: without a measurement the configured values stand. Two processes at once measure both,
    and either's result may stay.
    """
    try:
        default = _default(embedder, config)
        place = directory / default.model
        # A fake embedder or a model elsewhere has no files, and its speed says nothing of this device.
        if not config.calibrate or not place.is_dir():
            return default
        key = _key(embedder, place, default, config)
        kept = _read(place / _FILE, key)
        if kept is not None:
            return kept
        fresh = dataclasses.replace(measure(embedder, config), key=key, at=clock.now())
    except Exception:
        log.exception("this device could not be calibrated; the configured threads and batches stand")
        return _default(embedder, config)
    log.info(
        "calibrated: model=%s workers=%d batch_tokens=%d tokens_per_second=%.0f bytes_per_token=%.0f",
        embedder.info.id, fresh.workers, fresh.batch_tokens, fresh.tokens_per_second, fresh.bytes_per_token,
    )  # fmt: skip
    try:
        choice.replace(place / _FILE, (json.dumps(dataclasses.asdict(fresh), indent=1) + "\n").encode())
    except OSError as error:
        log.warning("the calibration cannot be kept (%s), so each start measures anew", error)
    return fresh


def measure(
    embedder: Embedder,
    config: Embedding,
    *,
    seconds: float = _SECONDS,
    now: Callable[[], float] = time.perf_counter,
    memory: Callable[[], int] | None = None,
) -> Calibration:
    """Some `seconds` of real runs on this device, without a key. `memory` tells the bytes this process holds."""
    default = _default(embedder, config)
    bytes_per_token = _memory_of_a_run(embedder, memory or (lambda: int(psutil.Process().memory_info().rss)))
    texts = sorted(embedder.encode(sentences.made(_TEXTS, _SEED), Lane.INGEST), key=lambda item: item.tokens)
    workers = [(count, default.batch_tokens) for count in _counts(default.workers, fixed=bool(config.workers))]
    batches = [(default.workers, tokens) for tokens in _BATCHES] if embedder.info.batch_invariant else []
    # Batches are compared at the default number of threads: which of them is best hardly depends on it.
    usual = (default.workers, default.batch_tokens)
    settings = list(dict.fromkeys([usual, *workers, *batches]))
    spell = min(_SPELL, seconds / (len(settings) * _ROUNDS))
    found: dict[tuple[int, int], list[float]] = {setting: [] for setting in settings}
    begun = now()
    for setting in settings * _ROUNDS:
        # On a slow device a batch takes longer than its spell: what there is no time for is not taken.
        if found[usual] and now() - begun >= seconds:
            break
        found[setting].append(throughput(embedder, texts, *setting, spell, now))
    # The better of two rounds: a neighbour takes time away, and nobody adds any.
    speed = {setting: max(rates) for setting, rates in found.items() if rates}
    count = _clearly_best({one: speed[one] for one in workers if one in speed}, usual)[0]
    tokens = _clearly_best({one: speed[one] for one in [usual, *batches] if one in speed}, usual)[1]
    return dataclasses.replace(
        default,
        workers=count,
        batch_tokens=tokens,
        tokens_per_second=max(speed[count, default.batch_tokens], speed[default.workers, tokens]),
        bytes_per_token=bytes_per_token,
        table=tuple(Row(*setting, round(rate, 1)) for setting, rate in speed.items()),
    )


def throughput(
    embedder: Embedder,
    texts: Sequence[Encoded],
    workers: int,
    batch_tokens: int,
    seconds: float,
    now: Callable[[], float] = time.perf_counter,
) -> float:
    """Tokens a second, padding not counted, of that many threads; `texts` sorted by length."""
    batches = _batches(texts, batch_tokens)
    # Short and long ones mixed, always in the same order, so that any stretch of it stands for all.
    random.Random(_SEED).shuffle(batches)  # noqa: S311  # a seed, not a secret
    begun = now()

    def work(number: int) -> int:
        done = 0
        at = number * len(batches) // workers
        while not done or now() - begun < seconds:
            batch = batches[at % len(batches)]
            embedder.embed(batch)
            done += sum(item.tokens for item in batch)
            at += 1
        return done

    with ThreadPoolExecutor(workers, "calibrate") as pool:
        done = sum(pool.map(work, range(workers)))
    return done / max(1e-9, now() - begun)


def _batches(texts: Sequence[Encoded], budget: int) -> list[list[Encoded]]:
    left, batches = list(texts), []
    while left:
        chosen = set(plan([item.tokens for item in left], 0.0, budget))
        batches.append([left[index] for index in sorted(chosen)])
        left = [item for index, item in enumerate(left) if index not in chosen]
    return batches


def _counts(most: int, *, fixed: bool) -> list[int]:
    """Threads to try: powers of two up to the most, and that; only that when the owner has set it."""
    return [most] if fixed else sorted({*(1 << power for power in range(most.bit_length()) if 1 << power < most), most})


def _clearly_best(speed: dict[tuple[int, int], float], usual: tuple[int, int]) -> tuple[int, int]:
    best = max(speed, key=lambda setting: speed[setting])
    return best if speed[best] > CLEARLY * speed[usual] else usual


def _memory_of_a_run(embedder: Embedder, memory: Callable[[], int]) -> float:
    """Bytes a padded token that this process grows by while a window of full length runs; the default where it is not.

    Best of all on an embedder that has not run such a window before.
    """
    window = embedder.info.window
    (item,) = embedder.encode(["edge " * 2 * window], Lane.INGEST)
    item = Encoded(item.windows[:1])
    # What loading the model let go of would be taken again unseen.
    heap.trim()
    before = peak = memory()
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.002):
            peak = max(peak, memory())

    watcher = threading.Thread(target=watch, name="calibrate-memory", daemon=True)
    watcher.start()
    try:
        embedder.embed([item])
    finally:
        ended.set()
        watcher.join()
    grown = (max(peak, memory()) - before) / max(1, item.tokens)
    return grown if _LEAST_BYTES <= grown <= _MOST_BYTES else BYTES_PER_TOKEN


def _default(embedder: Embedder, config: Embedding) -> Calibration:
    base, _, variant = embedder.info.id.partition("+")
    return Calibration(
        key="", at=0, model=base, variant=variant or choice.STOCK, workers=embedder.info.workers,
        batch_tokens=config.batch_tokens, tokens_per_second=0.0, bytes_per_token=BYTES_PER_TOKEN,
    )  # fmt: skip


def _key(embedder: Embedder, place: Path, default: Calibration, config: Embedding) -> str:
    """SHA-256 of everything that a measurement depends on."""
    import onnxruntime

    stock = default.variant == choice.STOCK
    graph = place / ("model.onnx" if stock else f"variants/{default.variant}.onnx")
    facts = {
        "hardware": dataclasses.asdict(hardware.here()),
        "device": embedder.info.device,
        "onnxruntime": onnxruntime.__version__,
        "edge": __version__,
        "model": embedder.info.id,
        "graph": hashlib.sha256(graph.read_bytes()).hexdigest(),
        "workers": config.workers,
        "batch_tokens": config.batch_tokens,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _read(path: Path, key: str) -> Calibration | None:
    """What is kept there; None when it is of another device, damaged, or not there."""
    try:
        raw: Any = json.loads(path.read_text("utf-8"))
        rows = tuple(Row(int(row["workers"]), int(row["batch_tokens"]), float(row["tokens_per_second"]))
                     for row in raw["table"])  # fmt: skip
        kept = Calibration(
            key=str(raw["key"]), at=int(raw["at"]), model=str(raw["model"]), variant=str(raw["variant"]),
            workers=int(raw["workers"]), batch_tokens=int(raw["batch_tokens"]),
            tokens_per_second=float(raw["tokens_per_second"]), bytes_per_token=float(raw["bytes_per_token"]),
            table=rows,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    sound = (
        1 <= kept.workers <= 256
        and 1 <= kept.batch_tokens <= _MOST_TOKENS
        and _LEAST_BYTES <= kept.bytes_per_token <= _MOST_BYTES
    )
    return kept if sound and kept.key == key else None
