"""A space in memory: words by term counts, vectors by brute force; and a model whose vectors are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from edge.config import Recalling
from edge.lexicon.words import CharacterLexicon
from edge.ports import QueueStatus, Vectorizer, WordHit
from edge.recall.fuse import Weights
from edge.recall.near import matches
from edge.recall.recall import Recall
from edge.types import (
    DAY,
    Answer,
    Filter,
    Lane,
    Matrix,
    Memory,
    MemoryState,
    Micros,
    ModelInfo,
    Question,
    RowIds,
    Vector,
)

NOW: Micros = 1_767_225_600_000_000
FAKE = ModelInfo("fake", 4, "cpu", 1, 0, unrelated=0.25, related=0.55)


def unit(*values: float) -> Vector:
    vector = np.zeros(4, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def at_cosine(cosine: float) -> Vector:
    """A vector with this cosine to unit(1)."""
    return unit(cosine, float(np.sqrt(max(0.0, 1.0 - cosine * cosine))))


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
    """Reader and view in one, with an index for each of its models."""

    rows: dict[int, Memory] = field(default_factory=dict)
    stored: dict[str, dict[int, Vector]] = field(default_factory=lambda: {"fake": {}})
    fetched: list[list[int]] = field(default_factory=list)
    searched: list[int] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)
    looked_around: list[int] = field(default_factory=list)

    @property
    def reader(self) -> Room:
        return self

    @property
    def indexes(self) -> Mapping[str, RoomIndex]:
        return {model: RoomIndex(self, model) for model in self.stored}

    def keep(self, text: str, vector: Vector | None = None, *, model: str = "fake", **changes: object) -> Memory:
        rowid = len(self.rows) + 1
        self.rows[rowid] = memory(rowid, text, **changes)
        if vector is not None:
            self.stored.setdefault(model, {})[rowid] = vector
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

    def any_archived(self) -> bool:
        return any(row.archived for row in self.rows.values())

    def vectors(self, model: str, rowids: RowIds) -> tuple[RowIds, Matrix]:
        stored = self.stored.get(model, {})
        kept = [rowid for rowid in rowids.tolist() if rowid in stored]
        return np.array(kept, np.int64), np.stack([stored[n] for n in kept]) if kept else np.zeros((0, 4), np.float32)

    def fetch(self, rowids: Sequence[int]) -> dict[int, Memory]:
        self.fetched.append(list(rowids))
        return {
            rowid: self.rows[rowid]
            for rowid in rowids
            if rowid in self.rows and self.rows[rowid].state != MemoryState.SUPERSEDED
        }

    def around(self, rowids: Sequence[int]) -> dict[int, tuple[int, ...]]:
        self.looked_around += rowids
        found = {}
        for rowid in rowids:
            if rowid in self.rows:
                session = self._session(self.rows[rowid])
                at = session.index(rowid)
                beside = session[max(0, at - 1) : at] + session[at + 1 : at + 2]
                found[rowid] = tuple(other for other in beside if not self.rows[other].archived)
        return found

    def _session(self, row: Memory) -> list[int]:
        """All that is beside this memory, and itself, in the order in which it was said."""
        same = [
            other
            for other in self.rows.values()
            if (other.source, other.session) == (row.source, row.session) and other.state != MemoryState.SUPERSEDED
        ]
        return [other.rowid for other in sorted(same, key=lambda other: (other.seq, other.piece))]


@dataclass
class RoomIndex:
    room: Room
    model: str

    @property
    def _stored(self) -> dict[int, Vector]:
        return self.room.stored[self.model]

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        self.room.searched.append(k)
        pairs = sorted(((float(row @ vector), rowid) for rowid, row in self._stored.items()), reverse=True)[:k]
        return np.array([rowid for _, rowid in pairs], np.int64), np.array([c for c, _ in pairs], np.float32)

    def add(self, rowids: RowIds, vectors: Matrix) -> None:
        self._stored.update(zip(rowids.tolist(), vectors, strict=True))

    def remove(self, rowids: RowIds) -> None:
        for rowid in rowids.tolist():
            self._stored.pop(rowid, None)

    def __len__(self) -> int:
        return len(self._stored)


class Model:
    """Gives `vector` for every query, or fails with `error` (`at_once`: when asked), or never answers."""

    def __init__(
        self,
        vector: Vector | None = None,
        error: BaseException | None = None,
        at_once: BaseException | None = None,
        info: ModelInfo | None = None,
    ) -> None:
        self.info = info or FAKE
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


def recalling(
    *models: Vectorizer,
    config: Recalling | None = None,
    weights: Weights | None = None,
    route: Sequence[str] | None = None,
) -> Recall:
    """Over these models; a query goes to all of them, or to those of `route`."""
    routed = tuple(model.info.id for model in models) if route is None else tuple(route)
    by_id = {model.info.id: model for model in models}
    return Recall(by_id, lambda _: routed, CharacterLexicon(), Clock(), config or Recalling(), weights)


def ask(model: Vectorizer, rooms: Mapping[str, Room], query: str = "猫", **question: object) -> Answer:
    asked = Question(query, tuple(rooms), **question)  # type: ignore[arg-type]  # the tests name real fields
    return recalling(model).recall(asked, rooms)


def texts(answer: Answer) -> list[str]:
    return [hit.memory.text for hit in answer.hits]
