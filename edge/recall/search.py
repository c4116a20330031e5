"""One question under way: its candidates, what is known of them, and their order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from edge.recall import fuse
from edge.recall.candidates import Asked, Candidate, Candidates, Stored, within
from edge.recall.evidence import Evidence, Values, scales
from edge.recall.near import matches
from edge.recall.view import SpaceView
from edge.types import Filter, Memory, Signals

# Space and rowid.
Key = tuple[str, int]
_FIRST = 32
# More than sums of a few numbers of about 1 can be off by, so that equals are read too.
_ROUNDING = 1e-9


# What is left of the score of a memory that is itself a question: it has the words, and seldom the answer. (Of locomo's
# memories 24 % are questions, of those that answer 8 %; NDCG@10 .620 and .629, of memorybank .836 and .858.)
_ASKS = 0.95
_QUESTION = ("?", "？")


@dataclass(slots=True)
class Ranked:
    """A candidate with all that is known of it. Not frozen for the reason that types.Memory gives."""

    candidate: Candidate
    memory: Memory
    values: Values
    score: float
    # By which it stands among others; see fuse.order_key.
    order: tuple[float, int, str]

    @property
    def signals(self) -> Signals:
        return Signals(*self.values)

    @property
    def key(self) -> Key:
        return (self.candidate.space, self.candidate.rowid)


@dataclass(eq=False, slots=True)
class Search:
    rooms: Mapping[str, SpaceView]
    filter: Filter
    weights: fuse.Weights
    evidence: Evidence
    wanted: int
    candidates: Candidates = field(init=False)
    asked: Sequence[Asked] = ()
    # Of each candidate: nearness, words, and what they make together.
    _known: dict[Candidate, tuple[float, float, float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.candidates = Candidates(self.rooms)

    def by_words(self, terms: Sequence[str], wanted: int) -> None:
        for space in self.rooms:
            self.candidates.by_words(space, terms, wanted, self.filter)

    def by_nearness(self, stored: Mapping[str, Stored], *, living: bool = False) -> None:
        """`stored` by model: vectors of what the words found, read before."""
        for one in self.asked:
            self.candidates.by_nearness(one, self.wanted, self.filter, living=living)
            # What lies in a window of time may be far from the nearest of all times.
            for window in self.evidence.times.windows:
                narrowed = within(self.filter, window.since, window.until) if window.explicit else None
                if narrowed is not None and not living:
                    self.candidates.by_nearness(one, self.wanted, narrowed)
            self.candidates.complete(one, stored[one.info.id])
        if len(self.asked) > 1:
            # What one model found, the other may find nearer than all that it has looked at.
            for one in self.asked:
                self.candidates.complete(one, self.candidates.stored(one.info.id))
        self.know()

    def know(self) -> None:
        """What the scores are relative to, of the candidates as they are now."""
        found = self.candidates.all()
        best_words = max((candidate.words for candidate in found), default=0.0)
        self.evidence = dataclasses.replace(self.evidence, scales=scales(found, self.asked), best_words=best_words)
        self._known.clear()
        self.weigh(found)

    def weigh(self, candidates: Iterable[Candidate]) -> None:
        """What nearness and words make of each; before it is ranked."""
        evidence, weights = self.evidence, self.weights
        for one in candidates:
            semantic, lexical = evidence.semantic(one), evidence.lexical(one)
            self._known[one] = semantic, lexical, fuse.combine(weights, semantic, lexical)

    def rank(self, rows: Sequence[tuple[Candidate, Memory]]) -> list[Ranked]:
        """In the order of the rows."""
        result = []
        for candidate, memory in rows:
            semantic, lexical, _ = self._known[candidate]
            values = (semantic, lexical, *self.evidence.told(memory))
            score = fuse.combine(self.weights, *values) * (_ASKS if memory.text.endswith(_QUESTION) else 1.0)
            order = fuse.order_key(score, memory, self.evidence.now)
            result.append(Ranked(candidate, memory, values, score, order))
        return result

    @staticmethod
    def in_order(found: Iterable[Ranked]) -> list[Ranked]:
        return sorted(found, key=attrgetter("order"))

    def best(self, count: int) -> list[Ranked]:
        """The first `count` in order; all when `count` is 0.

        Rows are read for those only that could still come among them: what a row may add to nearness and words is
        bounded. Whether the question names a speaker is seen in the rows that are read first: _FIRST of them at least,
        so that it hardly hangs on `count`.
        """
        known = self._known
        based = sorted((-known[c][2], c.space, -c.rowid, c) for c in self.candidates.all())
        order = [candidate for *_, candidate in based]
        at, end = 0, max(_FIRST, 2 * count) if count else len(order)
        found: list[Ranked] = []
        while at < min(end, len(order)):
            rows = self.fetch(order[at:end])
            if at == 0:
                named = any(self.evidence.cue.names(memory.role) for _, memory in rows)
                self.evidence = dataclasses.replace(self.evidence, named=named)
            found = self.in_order([*found, *self.rank(rows)])[: count or None]
            at = end
            if len(found) < max(1, count) or self.weights.product:
                end = 2 * at
            else:
                least = found[-1].score - self.evidence.most(self.weights) - _ROUNDING
                while end < len(order) and -based[end][0] >= least:
                    end += 1
        return found

    def fetch(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, Memory]]:
        """Each with its memory, without those that are gone or not of the filter; one fetch a space."""
        wanted: dict[str, list[int]] = {}
        for candidate in candidates:
            wanted.setdefault(candidate.space, []).append(candidate.rowid)
        found = {space: self.rooms[space].reader.fetch(rowids) for space, rowids in wanted.items()}
        rows = []
        for candidate in candidates:
            memory = found[candidate.space].get(candidate.rowid)
            if memory is not None and matches(memory, self.filter):
                rows.append((candidate, memory))
        return rows
