"""What is known of one question: its words, its times, whom it speaks of; and what each memory makes of that. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edge.recall import fuse
from edge.recall.candidates import Asked, Candidate
from edge.recall.cues import Cue
from edge.recall.relevance import raised
from edge.recall.temporal import Times, tells_time
from edge.types import Memory, Micros

Values = tuple[float, float, float, float, float, float, float]
Told = tuple[float, float, float, float, float]

# What lies in a time that is named has of the time signal in a shallow recall: a hint. People also say "today" of what
# they tell, and ask nothing about that day (NDCG@10 of madial, as an addition to the score of .5, .1 and 0: .582, .596,
# .598; of memorybank with noise: .825, .803, .789).
HINT = 0.2
# What a memory that tells a time has of the time signal, when the question is when.
_TELLS = 0.3
# The same for the most recent, when the last one is wanted.
_LATEST = 0.6
# Of the association signal, for what opens a document: it says what the whole is about (lead bias; NDCG@10 of cmrc .951
# and .959, of drcd .963 and .968).
_OPENING = 0.1
# How far below `related` a cosine counts as near; see fuse.nearness.
_NEAR = 0.1


@dataclass(frozen=True, slots=True)
class Scale:
    """How the cosines of one model read: what is best among the candidates and how much nearer than usual those behind
    it are, and the model's own constants."""

    best: float
    raised: float
    unrelated: float
    near: float

    def nearness(self, cosine: float) -> float:
        return fuse.nearness(cosine, self.best, self.unrelated, self.near)


@dataclass(frozen=True, slots=True)
class Evidence:
    """`scales` by model; `named` says that some candidate was said by one whom the question names."""

    times: Times
    cue: Cue
    now: Micros
    half_life: float = fuse.HALF_LIFE_DAYS
    scales: Mapping[str, Scale] = field(default_factory=dict)
    best_words: float = 0.0
    named: bool = False
    # What lying in a time that is named makes of the time signal.
    window: float = 1.0

    def semantic(self, candidate: Candidate) -> float:
        """The greatest nearness that any model sees. What has no vector yet is judged by its words alone, or it could
        not be found until it has."""
        seen = -1.0
        for model, cosine in candidate.cosines.items():
            seen = max(seen, self.scales[model].nearness(cosine))
        return seen if seen >= 0 else self.lexical(candidate)

    def lexical(self, candidate: Candidate) -> float:
        return candidate.words / self.best_words if self.best_words > 0 else 0.0

    def told(self, memory: Memory) -> Told:
        """The signals of `Signals` behind nearness and words, which the row tells; as plain numbers, since of a hundred
        memories that are looked at a few are shown."""
        times = self.times
        return (
            max(self.cue.fit(memory.role, named=self.named), _OPENING * _opens(memory)),
            self.time(memory) if times.windows or times.latest or times.asks_when else 0.0,
            0.0 if times.windows else self._recency(memory),
            fuse.frequency(memory) if memory.access_count else 0.0,
            fuse.unit(memory.weight / 10),
        )

    def time(self, memory: Memory) -> float:
        latest = self.times.latest
        # Where the last one is wanted, what is within the year before is not all alike.
        windows = (window for window in self.times.windows if window.explicit or not latest)
        within = any(window.holds(memory.occurred_at) for window in windows)
        told = 0.0
        if latest:
            told = _LATEST * self._recency(memory)
        elif self.times.asks_when and tells_time(memory.text):
            told = _TELLS
        return max(self.window if within else 0.0, told)

    def answers(self, memory: Memory) -> bool:
        """Whether it lies in a time of which the question asks, and of nothing else."""
        return self.times.bare and any(window.holds(memory.occurred_at) for window in self.times.windows)

    def _recency(self, memory: Memory) -> float:
        return fuse.fading(fuse.said_at(memory, self.now), self.now, self.half_life)

    def most(self, weights: fuse.Weights) -> float:
        """What signals other than nearness and words may add to a score at the most, for this question."""
        speaker = bool(self.cue.speaker) or self.named
        timely = max(
            self.window if self.times.windows else 0.0,
            _LATEST if self.times.latest else 0.0,
            _TELLS if self.times.asks_when else 0.0,
        )
        return (
            weights.association * max(_OPENING, speaker)
            + weights.time * timely
            + weights.recency * (not self.times.windows)
            + weights.frequency
            + weights.weight
        )


def _opens(memory: Memory) -> bool:
    """Whether it is the first piece of the first part of a document; parts are counted from 0."""
    return memory.piece == 0 and memory.seq == 0 and memory.role == "document"


def hints(times: Times, now: Micros) -> Times:
    """What a shallow recall makes of a question's times: those that are over, and named with their bounds."""
    windows = tuple(window for window in times.windows if window.explicit and window.until <= now)
    return dataclasses.replace(times, windows=windows, latest=False)


def scales(candidates: Sequence[Candidate], asked: Sequence[Asked]) -> dict[str, Scale]:
    found = {}
    for one in asked:
        info = one.info
        cosines = sorted((c.cosines[info.id] for c in candidates if info.id in c.cosines), reverse=True)
        found[info.id] = Scale(
            cosines[0] if cosines else 0.0, raised(cosines, info.behind), info.unrelated, info.related - _NEAR
        )
    return found
