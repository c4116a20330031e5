"""Which runs of the model are under way, and which of them hang. Not locked: the batcher's lock guards it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edge.embedder.lanes import Entry
from edge.types import Lane

# Seconds that a run may be in the model before it is said to stand still, and how many times longer than usual
# for its length: a long query on a slow device is no standstill.
STANDSTILL = 2.0
_TIMES_LONGER = 8.0


@dataclass(eq=False, slots=True)
class Run:
    """One batch in the model, since a time of the batcher's clock. `usual` is how many seconds it should take."""

    thread: str
    lane: Lane
    entries: Sequence[Entry]
    since: float
    usual: float
    named: bool = False

    @property
    def tokens(self) -> int:
        return sum(entry.tokens for entry in self.entries)


@dataclass(eq=False, slots=True)
class Watchdog:
    """`hang_seconds` as in config.Embedding."""

    hang_seconds: float
    _runs: set[Run] = field(default_factory=set)

    def begin(self, run: Run) -> Run:
        self._runs.add(run)
        return run

    def end(self, run: Run) -> None:
        self._runs.discard(run)

    def entries(self) -> list[Entry]:
        """All that are in some run."""
        return [entry for run in self._runs for entry in run.entries]

    def hangs(self, run: Run, now: float) -> bool:
        return now - run.since > self.hang_seconds

    def moving(self, lane: Lane, now: float) -> int:
        """Runs of this lane that do not hang."""
        return sum(run.lane is lane and not self.hangs(run, now) for run in self._runs)

    def hanging(self, now: float) -> list[Run]:
        return [run for run in self._runs if self.hangs(run, now)]

    def unnamed(self, now: float) -> list[Run]:
        """Runs that hang and of which nobody heard yet; each is given once."""
        found = [run for run in self.hanging(now) if not run.named]
        for run in found:
            run.named = True
        return found

    def standing_still(self, now: float) -> list[Run]:
        """Runs for which nobody should wait any more, long before they are said to hang."""
        return [
            run
            for run in self._runs
            if now - run.since > min(self.hang_seconds, STANDSTILL + _TIMES_LONGER * run.usual)
        ]

    def stalled(self, now: float) -> float:
        """Seconds that the longest run has taken, 0 while none hangs."""
        return max((now - run.since for run in self.hanging(now)), default=0.0)
