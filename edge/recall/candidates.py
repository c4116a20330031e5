"""Memories that some line of evidence found, and what each line says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from edge.recall.near import cosines_of, near, near_living
from edge.recall.view import SpaceView
from edge.types import Filter, Matrix, ModelInfo, RowIds, Vector

# By space: rows and their vectors.
Stored = Mapping[str, tuple[RowIds, Matrix]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The query in one model's eyes."""

    info: ModelInfo
    vector: Vector


@dataclass(eq=False, slots=True)
class Candidate:
    """`cosines` by model, of the models that the memory has a vector of; `words` is a WordHit's score, 0 for none."""

    space: str
    rowid: int
    words: float = 0.0
    cosines: dict[str, float] = field(default_factory=dict)


class Candidates:
    """All of one question, over all its spaces."""

    def __init__(self, rooms: Mapping[str, SpaceView]) -> None:
        self._rooms = rooms
        self._found: dict[tuple[str, int], Candidate] = {}

    def __len__(self) -> int:
        return len(self._found)

    def of(self, space: str, rowid: int) -> Candidate:
        """It is a candidate from now on."""
        key = (space, rowid)
        if key not in self._found:
            self._found[key] = Candidate(space, rowid)
        return self._found[key]

    def all(self) -> list[Candidate]:
        return list(self._found.values())

    def by_words(self, space: str, terms: Sequence[str], wanted: int, filter: Filter) -> None:
        """Nothing for a query without terms, such as "*"."""
        if terms:
            for hit in self._rooms[space].reader.search(terms, wanted, filter):
                candidate = self.of(space, hit.rowid)
                candidate.words = max(candidate.words, hit.score)

    def by_nearness(self, asked: Asked, wanted: int, filter: Filter, *, living: bool = False) -> None:
        """`living` looks behind rows that are archived, superseded or just forgotten."""
        for space, view in self._rooms.items():
            model = asked.info.id
            if model in view.indexes:
                look = near_living if living else near
                for rowid, cosine in look(view, model, asked.vector, wanted, filter).items():
                    self.of(space, rowid).cosines[model] = cosine

    def stored(self, model: str) -> Stored:
        """The stored vectors of the candidates whose cosine is not known."""
        missing: dict[str, list[int]] = {}
        for candidate in self._found.values():
            if model not in candidate.cosines:
                missing.setdefault(candidate.space, []).append(candidate.rowid)
        return {
            space: self._rooms[space].reader.vectors(model, np.array(sorted(rowids), np.int64))
            for space, rowids in missing.items()
        }

    def complete(self, asked: Asked, stored: Stored) -> None:
        """The true cosines of what other lines found."""
        for space, (rowids, rows) in stored.items():
            if len(rowids):
                for rowid, cosine in zip(rowids.tolist(), cosines_of(rows, asked.vector).tolist(), strict=True):
                    self.of(space, rowid).cosines.setdefault(asked.info.id, cosine)


def within(filter: Filter, since: int, until: int) -> Filter | None:
    """The filter, narrowed to a window of time; None when nothing is left of it."""
    since = since if filter.since is None else max(since, filter.since)
    until = until if filter.until is None else min(until, filter.until)
    return dataclasses.replace(filter, since=since, until=until) if since < until else None
