"""The parts of a box around some memories: their words, their vectors, and an index a model; no log, no network."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from edge.admission.chunk import chunk
from edge.cli.benches.quality_sets import Told
from edge.errors import VectorRefused
from edge.index.live import LiveIndex
from edge.ledger.database import Database
from edge.ledger.events import TurnSaid
from edge.ledger.memories import Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.ledger.rows import stored
from edge.ports import Embedder, Encoded, Lexicon, QueueStatus, VectorIndex
from edge.types import DAY, Answer, Lane, Micros, ModelInfo, Piece, Vector

Say = Callable[[str], None]
Route = Callable[[str], tuple[str, ...]]

_BATCH_TOKENS = 512
_TURNS = 256
# Seconds that the index's worker may take to put away what came in.
_SETTLE = 120.0
_SAY_EVERY = 500


class KnownVectors:
    """ports.Vectorizer that runs the model once a text; its futures are done when they come.

    `seconds` is the time that `submit` has spent in the model so far: what was not there yet.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.seconds = 0.0
        self._embedder = embedder
        self._known: dict[tuple[Lane, str], Vector] = {}
        self._lock = threading.Lock()

    @property
    def info(self) -> ModelInfo:
        return self._embedder.info

    def learn(self, texts: Sequence[str], lane: Lane, say: Say) -> None:
        """Runs the model on those that are new, on all its threads."""
        wanted = [text for text in dict.fromkeys(texts) if (lane, text) not in self._known]
        encoded = self._embedder.encode(wanted, lane)
        batches = _batches(encoded)
        done = 0
        executor = ThreadPoolExecutor(max(1, self.info.workers), "edge-bench-embed")
        try:
            rows = executor.map(lambda batch: self._embedder.embed([encoded[place] for place in batch]), batches)
            for batch, vectors in zip(batches, rows, strict=True):
                self._known.update(((lane, wanted[place]), row) for place, row in zip(batch, vectors, strict=True))
                if done // _SAY_EVERY < (done + len(batch)) // _SAY_EVERY:
                    say(f"  {done + len(batch):,} of {len(wanted):,}")
                done += len(batch)
        finally:
            # So that an interrupt waits for one batch a thread, not for all that are left.
            executor.shutdown(cancel_futures=True)

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:  # noqa: ARG002  # nobody waits here
        with self._lock:
            started = time.perf_counter()
            missing = [text for text in dict.fromkeys(texts) if (lane, text) not in self._known]
            if missing:
                rows = self._embedder.embed(self._embedder.encode(missing, lane))
                self._known.update(((lane, text), row) for text, row in zip(missing, rows, strict=True))
                self.seconds += time.perf_counter() - started
            return [_answer(self._known[lane, text]) for text in texts]

    def tokens(self, text: str) -> int:
        return self._embedder.encode([text], Lane.INGEST)[0].tokens

    def status(self) -> QueueStatus:
        """Nothing ever waits."""
        return QueueStatus(0, 0, 0, 0.0, 0.0)


class Pool:
    """recall's SpaceView over these memories. `folder` is its own, and the caller's to remove."""

    def __init__(
        self, folder: Path, told: Sequence[Told], vectors: Mapping[str, KnownVectors], route: Route, lexicon: Lexicon
    ) -> None:
        self.last: Micros = max(one.turn.occurred_at for one in told)
        self.size = len(told)
        self._places = {(one.turn.source, one.turn.session, one.turn.seq): place for place, one in enumerate(told)}
        with contextlib.ExitStack() as stack:
            database = Database(folder / "memory.sqlite", MIGRATIONS)
            stack.callback(database.close)
            self.reader = Queries(database)
            memories = Memories(database, lexicon, b"")
            stack.callback(memories.close)
            rows = _write(memories, told)
            self.indexes: dict[str, VectorIndex] = {}
            for model, known in vectors.items():
                index = LiveIndex(known.info.dimension, model, self.reader)
                stack.callback(index.close)
                self.indexes[model] = index
                _embed(memories, index, [(row, text) for row, text in rows if model in route(text)], known)
                index.settle(_SETTLE)
            self._closing = stack.pop_all()

    def close(self) -> None:
        self._closing.close()

    def asked_at(self, at: Micros | None) -> Micros:
        """When a question is asked that says nothing of it: a day after the last memory."""
        return self.last + DAY if at is None else at

    def order(self, answer: Answer, by_words: bool = False) -> list[int]:
        """Places of the memories, each once, where its first piece is; `by_words`: of those that have a word of it."""
        hits = (hit for hit in answer.hits if not by_words or hit.signals.lexical > 0)
        keys = ((hit.memory.source, hit.memory.session, hit.memory.seq) for hit in hits)
        return list(dict.fromkeys(self._places[key] for key in keys))


def texts(told: Sequence[Told]) -> list[str]:
    """All that is to be embedded for these: the pieces of their turns."""
    return [one.turn.text[start:end] for one in told for start, end in chunk(one.turn.text)]


def _write(memories: Memories, told: Sequence[Told]) -> list[tuple[int, str]]:
    """(rowid, text) of each piece. Its id follows from its place, so that equal scores come in one order every time."""
    rows: list[tuple[int, str]] = []
    for start in range(0, len(told), _TURNS):
        events = []
        for n, one in enumerate(told[start : start + _TURNS], start + 1):
            spans = chunk(one.turn.text)
            pieces = tuple(Piece(f"00000000-0000-7000-{k:04x}-{n:012x}", *span) for k, span in enumerate(spans))
            events.append(TurnSaid(n, one.turn.occurred_at, one.turn, one.turn.fingerprint(), pieces))
        added = memories.apply(events).result().added
        for event in events:
            cut = [event.turn.text[piece.start : piece.end] for piece in event.pieces]
            rows += zip(added[event.n], cut, strict=True)
    return rows


def _embed(memories: Memories, index: LiveIndex, rows: Sequence[tuple[int, str]], known: KnownVectors) -> None:
    """As a space does it: rounded to what the database keeps. A text that the model refuses has its words only."""
    answers = known.submit([text for _, text in rows], Lane.INGEST)
    done = [(row, answer.result()) for (row, _), answer in zip(rows, answers, strict=True) if not answer.exception()]
    if done:
        rowids, vectors = np.array([row for row, _ in done], np.int64), np.stack([vector for _, vector in done])
        memories.put_vectors(known.info.id, rowids, vectors).result()
        index.add(rowids, stored(vectors))


def _batches(encoded: Sequence[Encoded]) -> list[list[int]]:
    """Places in batches of some 512 padded tokens, longest first."""
    batches: list[list[int]] = []
    for place in sorted(range(len(encoded)), key=lambda place: -encoded[place].tokens):
        full = not batches or (len(batches[-1]) + 1) * encoded[batches[-1][0]].tokens > _BATCH_TOKENS
        if full:
            batches.append([])
        batches[-1].append(place)
    return batches


def _answer(row: Vector) -> Future[Vector]:
    answer: Future[Vector] = Future()
    if np.isnan(row).any():
        answer.set_exception(VectorRefused("the model makes no vector of this text; it is found by its words"))
    else:
        answer.set_result(row)
    return answer
