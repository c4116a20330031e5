"""What waits for a vector, lane by lane, and how long that will take. Not locked: the batcher's lock guards it."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from itertools import islice

from edge.embedder.planner import LOOK_AHEAD, plan
from edge.errors import EdgeError
from edge.ports import Encoded
from edge.types import Vector

# Tokens a second of one thread, until the first batch has been measured: that of a small box, so that the bound errs
# on the side of asking callers back.
FIRST_GUESS = 2000.0
_SMOOTHING = 0.2


@dataclass(slots=True, eq=False)
class Entry:
    """One text on its way. `deadline` is a time.monotonic() value, `since` one of the batcher's clock."""

    encoded: Encoded
    tokens: int
    deadline: float | None
    since: float
    future: Future[Vector]

    @property
    def expired(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def departed(self) -> bool:
        """Nobody waits for it any more."""
        return self.future.cancelled() or self.expired


class LaneQueue:
    """First in, first out as far as `plan` keeps to it. `tokens` is the sum of those waiting."""

    def __init__(self, drain: float) -> None:
        self.drain = drain
        self.tokens = 0
        # Tokens a second of one thread: an exponentially weighted mean over its batches.
        self.rate = FIRST_GUESS
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._entries.append(entry)
            self.tokens += entry.tokens

    def pop(self) -> list[Entry]:
        """The oldest alone, or nothing."""
        if not self._entries:
            return []
        entry = self._entries.popleft()
        self.tokens -= entry.tokens
        return [entry]

    def take(self, budget: int, now: float) -> list[Entry]:
        """The next batch of at most `budget` padded tokens, and with it those nobody waits for any more."""
        window = list(islice(self._entries, LOOK_AHEAD))
        # Asked once: the time may be up between two looks.
        departed = {entry for entry in window if entry.departed}
        waiting = [entry for entry in window if entry not in departed]
        taken = list(departed)
        if waiting:
            chosen = plan([entry.tokens for entry in waiting], now - waiting[0].since, budget)
            taken += [waiting[index] for index in chosen]
        gone = set(taken)
        for _ in window:
            self._entries.popleft()
        self._entries.extendleft(entry for entry in reversed(window) if entry not in gone)
        self.tokens -= sum(entry.tokens for entry in taken)
        return taken

    def clear(self) -> list[Entry]:
        """All of them; none are left."""
        entries = list(self._entries)
        self._entries.clear()
        self.tokens = 0
        return entries

    def measured(self, tokens: int, seconds: float) -> None:
        """One thread took this long for that many."""
        if seconds > 0:
            self.rate += _SMOOTHING * (tokens / seconds - self.rate)


def answer(future: Future[Vector], vector: Vector) -> None:
    """Give a future its vector, unless `close` has answered it meanwhile. Never raises."""
    # BaseException: set_result runs the caller's callbacks here, and theirs is not the worker's fault.
    with contextlib.suppress(InvalidStateError, BaseException):
        future.set_result(vector)


def fail(future: Future[Vector], error: BaseException) -> None:
    """Fail a future, unless it has its answer. Never raises."""
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        # An exit belongs to the thread it was raised in, and asyncio takes no StopIteration.
        error = EdgeError(f"the model failed with {type(error).__name__}; see the log")
    with contextlib.suppress(InvalidStateError, BaseException):
        future.set_exception(error)
