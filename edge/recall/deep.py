"""What a deep recall does beyond a shallow one: it looks beside its hits, and puts off what says the same again."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from edge.recall import fuse
from edge.recall.diverse import diverse
from edge.recall.neighbours import support
from edge.recall.search import Key, Ranked, Search
from edge.recall.stopwatch import Stopwatch
from edge.types import Matrix

# Hits whose neighbours are looked at; that many at once, so that a stage can end in time.
REACH = 24
_CHUNK = 12
# Candidates, for each hit that is asked for, among which likes are looked for.
_AMONG = 3

CUT_SHORT = "This deep recall looked beside {} of {} hits only, within {:.0f} ms; recall.stage_seconds allows it more."


class Deep:
    """The stages of one deep recall. The one that reads much ends when its time is up, and says so in `notes`."""

    def __init__(self, search: Search, stage_seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._search = search
        self._seconds = stage_seconds
        self._clock = clock
        self.notes: tuple[str, ...] = ()

    def run(self, found: Sequence[Ranked], count: int, watch: Stopwatch) -> list[Ranked]:
        """All that was found, in order, made into the best `count` in a better one."""
        lifted = self._beside(found)
        watch.lap("neighbours")
        chosen = self._unlike(lifted, count)
        watch.lap("diversity")
        return chosen

    def _beside(self, found: Sequence[Ranked]) -> list[Ranked]:
        search = self._search
        until = self._clock() + self._seconds
        known = {one.key: one for one in found}
        beside: dict[Key, list[Key]] = {}
        looked = 0
        for chunk in _chunks(found[:REACH], _CHUNK):
            if self._clock() >= until:
                self.notes += (CUT_SHORT.format(looked, min(len(found), REACH), self._seconds * 1000),)
                break
            self._look([one.key for one in chunk], beside)
            looked += len(chunk)
        else:
            # An answer may stand two turns from what finds it, with nothing between them that does.
            between = dict.fromkeys(key for one in found[:_CHUNK] for key in beside.get(one.key, ()))
            self._look([key for key in between if key not in beside], beside)
        fresh = [
            search.candidates.of(space, rowid)
            for space, rowid in dict.fromkeys(key for keys in beside.values() for key in keys)
            if (space, rowid) not in known
        ]
        for one in search.asked:
            search.candidates.complete(one, search.candidates.stored(one.info.id))
        search.weigh(fresh)
        known.update((one.key, one) for one in search.rank(search.fetch(fresh)))
        # Of a neighbour that is gone, or not of the filter, nothing is said.
        paths: dict[Key, list[Key]] = {}
        for key, keys in beside.items():
            for other in keys:
                if key in known and other in known:
                    paths.setdefault(key, []).append(other)
                    paths.setdefault(other, []).append(key)
        added = support({key: one.score for key, one in known.items()}, paths)
        return search.in_order([self._lifted(one, added.get(key, 0.0)) for key, one in known.items()])

    def _look(self, keys: Sequence[Key], beside: dict[Key, list[Key]]) -> None:
        by_space: dict[str, list[int]] = {}
        for space, rowid in keys:
            by_space.setdefault(space, []).append(rowid)
        for space, rowids in by_space.items():
            for rowid, neighbours in self._search.rooms[space].reader.around(rowids).items():
                beside[(space, rowid)] = [(space, other) for other in neighbours]

    def _lifted(self, one: Ranked, added: float) -> Ranked:
        """With its neighbours' support in the score; the signal shows as much of it as there is room for."""
        if not added:
            return one
        share = self._search.weights.association
        semantic, lexical, association, time, recency, frequency, weight = one.values
        if share:
            association = fuse.unit(association + added / share)
        values = (semantic, lexical, association, time, recency, frequency, weight)
        score = one.score + added
        return Ranked(one.candidate, one.memory, values, score, (-score, *one.order[1:]))

    def _unlike(self, found: Sequence[Ranked], count: int) -> list[Ranked]:
        among = list(found[: _AMONG * count])
        if not self._search.asked or len(among) < 2:
            return among[:count]
        # Likeness is between vectors of one model: that which knows most of them.
        best = max(self._search.asked, key=lambda one: sum(one.info.id in hit.candidate.cosines for hit in among))
        order = diverse([hit.score for hit in among], self._vectors(best.info.id, best.info.dimension, among), count)
        return [dataclasses.replace(among[at], score=left) for at, left in order]

    def _vectors(self, model: str, dimension: int, hits: Sequence[Ranked]) -> Matrix:
        rows = np.zeros((len(hits), dimension), np.float32)
        places: dict[str, dict[int, int]] = {}
        for place, hit in enumerate(hits):
            places.setdefault(hit.candidate.space, {})[hit.candidate.rowid] = place
        for space, wanted in places.items():
            reader = self._search.rooms[space].reader
            rowids, vectors = reader.vectors(model, np.array(sorted(wanted), np.int64))
            for rowid, vector in zip(rowids.tolist(), vectors, strict=True):
                rows[wanted[rowid]] = vector
        return rows


def _chunks(found: Sequence[Ranked], size: int) -> Iterator[Sequence[Ranked]]:
    return (found[at : at + size] for at in range(0, len(found), size))
