"""`edge bench rebuild`: the index from its snapshot, and made anew from the stored vectors."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np

from edge.cli.benches import machine
from edge.cli.benches.result import Ratio, Result, median, quotient
from edge.cli.demo.box import running
from edge.client import Client
from edge.clock import SystemClock
from edge.config import DEFAULT_MODEL, Storage
from edge.embedder import manifest
from edge.index.hnsw import EF_CONSTRUCTION, M
from edge.index.live import LiveIndex, Tuning
from edge.ledger.database import Database
from edge.ledger.events import Event, TurnSaid
from edge.ledger.log import Allocator, Log
from edge.ledger.memories import Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.lexicon.words import WordLexicon
from edge.types import Matrix, Piece, Turn

Say = Callable[[str], None]

_SEED = 20260703
_CLUSTERS = 200
# Standard deviation of a coordinate around its cluster's centre: cosines of some .7 to it, as among texts of one topic.
_SPREAD = 1.0
_BATCH = 500
_STARTS = 3
# What a start may take besides the index: the interpreter, the model, its check.
_ALLOWANCE = 2.0


def run(vectors: int, say: Say) -> Result:
    """Some six minutes on two cores for 100,000. Raises what the box and its client raise."""
    about = machine.describe()
    rows = clustered(vectors, manifest.load().get(DEFAULT_MODEL).dimension, _SEED)
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
        data = Path(folder) / "data"
        say(f"A data directory with {vectors:,} memories …")
        ledger = Ledger(data / "spaces" / "public")
        ledger.fill(rows, say)
        say("hnswlib alone …")
        raw = _insert(rows)
        say(f"{raw:.1f} s. The box's index, from the stored vectors …")
        built = ledger.build_index(vectors)
        say(f"{built:.1f} s. Starts …")
        ledger.close()
        (snapshot,) = (data / "spaces" / "public" / "index").glob("*.hnsw")
        loads = [_load(snapshot, rows.shape[1]) for _ in range(_STARTS)]
        starts = [_start(data) for _ in range(_STARTS)]
        size = snapshot.stat().st_size
    load, (ready, answered) = median(loads), (median([start[place] for start in starts]) for place in (0, 1))
    ratios = [
        Ratio(
            "restart_vs_load",
            quotient(max(0.0, answered - _ALLOWANCE), load),
            1.5,
            False,
            f"{load:.2f} s: load_index; the start took {answered:.2f} s, of which {_ALLOWANCE:g} s are allowed",
        ),
        Ratio("rebuild_vs_insert", quotient(raw, built), 0.9, True, f"{vectors / raw:.0f} rows/s: hnswlib add_items"),
    ]
    figures = {
        "vectors": vectors,
        "snapshot_mb": size / 1e6,
        "load_index_seconds": loads,
        "start_to_ready_seconds": ready,
        "start_to_first_recall_seconds": answered,
        "starts": starts,
        "insert_seconds": raw,
        "rebuild_seconds": built,
        "rebuild_rows_per_second": vectors / built,
    }
    return Result("rebuild", ratios, figures, about)


def clustered(count: int, dimension: int, seed: int) -> Matrix:
    """Unit rows around centres, as texts lie around topics, rounded to float16 as the ledger stores them."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((_CLUSTERS, dimension), np.float32)
    rows = np.empty((count, dimension), np.float32)
    for start in range(0, count, _BATCH):
        part = rows[start : start + _BATCH]
        part[:] = centres[random.integers(0, _CLUSTERS, len(part))]
        part += _SPREAD * random.standard_normal(part.shape, np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        part[:] = part.astype(np.float16)
    return rows


class Ledger:
    """The log and database of a space, filled without the model."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True)
        self._log = Log(
            directory / "log", clock=SystemClock(), segment_bytes=Storage().segment_bytes, on_durable=self._durable
        )
        self._database = Database(directory / "memory.sqlite", MIGRATIONS)
        self._memories = Memories(self._database, WordLexicon(), b"")
        self._rows: list[int] = []

    def _durable(self, events: list[Event]) -> None:
        self._memories.apply(events).add_done_callback(
            lambda done: self._rows.extend(row for rows in done.result().added.values() for row in rows)
        )

    def fill(self, vectors: Matrix, say: Say) -> None:
        """A turn, its memory and its vector for each row."""
        for start in range(0, len(vectors), _BATCH):
            count = min(_BATCH, len(vectors) - start)
            self._log.submit(lambda numbers, start=start, count=count: (_turns(numbers, start, count), None)).result()  # type: ignore[misc]  # mypy cannot type a lambda's default
            # Nothing in it, but behind all that was handed on.
            self._memories.apply([]).result()
            rowids = np.array(self._rows[start : start + count], np.int64)
            self._memories.put_vectors(DEFAULT_MODEL, rowids, vectors[start : start + count]).result()
            if (start // _BATCH) % 40 == 39:
                say(f"  {start + count:,}")

    def build_index(self, count: int) -> float:
        """Seconds to make the index from the stored vectors; its snapshot is saved after that."""
        queries = Queries(self._database)
        index = LiveIndex.open(
            self._directory / "index",
            DEFAULT_MODEL,
            manifest.load().get(DEFAULT_MODEL).dimension,
            queries,
            identity=queries.generation(),
            # It would rebuild by itself at once; the one that is timed is to be asked for.
            tuning=replace(Tuning(), flat_rows=count),
        )
        started = time.perf_counter()
        index.rebuild().result()
        took = time.perf_counter() - started
        index.close()
        return took

    def close(self) -> None:
        """Everything on the disk."""
        self._log.close()
        self._memories.close()
        self._database.close()


def _turns(numbers: Allocator, start: int, count: int) -> list[TurnSaid]:
    said = []
    for seq in range(start, start + count):
        text = f"编号{seq}的记忆，第{seq % 997}组。"
        turn = Turn("bench", "rebuild", seq, "user", numbers.at, text)
        piece = Piece(f"00000000-0000-7000-8000-{seq:012d}", 0, len(text))
        said.append(TurnSaid(numbers.next(), numbers.at, turn, turn.fingerprint(), (piece,)))
    return said


def _insert(rows: Matrix) -> float:
    """Seconds for hnswlib alone, with the box's parameters, all cores, and rows that lie ready in memory."""
    index: Any = hnswlib.Index("ip", rows.shape[1])
    index.init_index(len(rows), M=M, ef_construction=EF_CONSTRUCTION, random_seed=1)
    started = time.perf_counter()
    index.add_items(rows, np.arange(len(rows)), num_threads=machine.cores())
    return time.perf_counter() - started


def _load(snapshot: Path, dimension: int) -> float:
    index: Any = hnswlib.Index("ip", dimension)
    started = time.perf_counter()
    index.load_index(str(snapshot))
    return time.perf_counter() - started


def _start(data: Path) -> tuple[float, float]:
    """Seconds from starting a box to its being ready, and to its first answer. Fails when the answer is empty."""
    started = time.perf_counter()
    with running(data) as box:
        ready = time.perf_counter() - started
        with Client.connect(box.address) as client:
            hits = client.recall("编号77的记忆").hits
        answered = time.perf_counter() - started
        box.stop()
    assert hits, "the box found nothing among its memories"
    return ready, answered
