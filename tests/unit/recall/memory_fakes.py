"""A space in memory: words by term counts, vectors by brute force; and a model whose vectors are written down."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from edge.lexicon.words import CharacterLexicon
from edge.ports import QueueStatus, WordHit
from edge.recall.near import matches
from edge.types import Filter, Lane, Matrix, Memory, MemoryState, Micros, ModelInfo, RowIds, Vector

NOW: Micros = 1_767_225_600_000_000
DAY: Micros = 86_400_000_000


def unit(*values: float) -> Vector:
    vector = np.zeros(4, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def memory(rowid: int, text: str, **changes: object) -> Memory:
    values: dict[str, object] = {
        "rowid": rowid, "id": f"id-{rowid:04}", "kind": "turn", "state": MemoryState.TEMPORARY, "text": text,
        "source": "chat", "session": "s", "seq": rowid, "role": "user", "occurred_at": NOW - DAY, "created_at": NOW,
        "weight": 1.0, "tags": (), "access_count": 0, "accessed_at": 0, "archived": False, "piece": 0, "pieces": 1,
        "attributes": b"", "space": "public",
    }  # fmt: skip
    return Memory(**{**values, **changes})  # type: ignore[arg-type]  # the tests say what they change


class Clock:
    def now(self) -> Micros:
        return NOW

    def monotonic(self) -> float:
        return 0.0


@dataclass
class Room:
    """Reader, index and view in one."""

    rows: dict[int, Memory] = field(default_factory=dict)
    stored: dict[int, Vector] = field(default_factory=dict)
    fetched: list[list[int]] = field(default_factory=list)
    searched: list[int] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)

    @property
    def reader(self) -> Room:
        return self

    @property
    def index(self) -> RoomIndex:
        return RoomIndex(self)

    def keep(self, text: str, vector: Vector | None = None, **changes: object) -> Memory:
        rowid = len(self.rows) + 1
        self.rows[rowid] = memory(rowid, text, **changes)
        if vector is not None:
            self.stored[rowid] = vector
        return self.rows[rowid]

    def search(self, terms: Sequence[str], limit: int, filter: Filter) -> list[WordHit]:
        self.looked_for = list(terms)
        hits = []
        for rowid, row in self.rows.items():
            said = CharacterLexicon().index_terms(row.text)
            count = sum(said.count(term) for term in terms)
            if count and matches(row, filter):
                hits.append(WordHit(rowid, float(count)))
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    def select(self, filter: Filter, limit: int) -> RowIds | None:
        rows = [rowid for rowid, row in self.rows.items() if matches(row, filter)]
        return None if len(rows) > limit else np.array(sorted(rows), np.int64)

    def vectors(self, model: str, rowids: RowIds) -> tuple[RowIds, Matrix]:
        kept = [rowid for rowid in rowids.tolist() if rowid in self.stored]
        rows = [self.stored[rowid] for rowid in kept]
        return np.array(kept, np.int64), np.stack(rows) if rows else np.zeros((0, 4), np.float32)

    def fetch(self, rowids: Sequence[int]) -> dict[int, Memory]:
        self.fetched.append(list(rowids))
        return {rowid: self.rows[rowid] for rowid in rowids if rowid in self.rows}


class RoomIndex:
    def __init__(self, room: Room) -> None:
        self.room = room

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        self.room.searched.append(k)
        pairs = sorted(((float(row @ vector), rowid) for rowid, row in self.room.stored.items()), reverse=True)[:k]
        return np.array([rowid for _, rowid in pairs], np.int64), np.array([c for c, _ in pairs], np.float32)

    def add(self, rowids: RowIds, vectors: Matrix) -> None:
        self.room.stored.update(zip(rowids.tolist(), vectors, strict=True))

    def remove(self, rowids: RowIds) -> None:
        for rowid in rowids.tolist():
            self.room.stored.pop(rowid, None)

    def __len__(self) -> int:
        return len(self.room.stored)


class Model:
    """Gives `vector` for every query, or fails with `error` (`at_once`: when asked), or never answers."""

    info = ModelInfo("fake", 4, "cpu", 1, 0)

    def __init__(
        self, vector: Vector | None = None, error: BaseException | None = None, at_once: BaseException | None = None
    ) -> None:
        self.vector = vector
        self.error = error
        self.at_once = at_once
        self.asked: list[tuple[str, Lane, float | None]] = []
        self.futures: list[Future[Vector]] = []

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        if self.at_once is not None:
            raise self.at_once
        self.asked += [(text, lane, deadline) for text in texts]
        self.futures = [Future() for _ in texts]
        for future in self.futures:
            if self.error is not None:
                future.set_exception(self.error)
            elif self.vector is not None:
                future.set_result(self.vector)
        return self.futures

    def tokens(self, text: str) -> int:
        return len(text) + 2

    def status(self) -> QueueStatus:
        return QueueStatus(0, 0, 0, 0.0, 0.0)
