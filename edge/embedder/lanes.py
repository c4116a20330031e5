"""What waits for a vector, lane by lane, and how long that will take. Not locked: the batcher's lock guards it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from edge.embedder.planner import LOOK_AHEAD, plan
from edge.ports import Embedder, Encoded
from edge.types import Vector

# Tokens a second of one thread, until the first batch has been measured: that of a small box, so that the bound errs
# on the side of asking callers back.
FIRST_GUESS = 2000.0
_SMOOTHING = 0.2
# Texts that are kept aside for want of memory; more of them would keep shorter ones out of the box.
ASIDE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A running model. One of its tokens takes as long as `cost` tokens of the first model."""

    embedder: Embedder
    cost: float = 1.0


@dataclass(slots=True, eq=False)
class Entry:
    """One text on its way. `deadline` is a time.monotonic() value, `since` one of the batcher's clock.

    `served` is the model it goes to.
    """

    encoded: Encoded
    deadline: float | None
    since: float
    served: Served
    future: Future[Vector] = field(default_factory=Future)
    tokens: int = field(init=False)
    # Of its longest window: the model runs one at least.
    row: int = field(init=False)
    # When it was first passed over for want of memory, by the batcher's clock.
    aside_since: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.tokens = max(1, self.encoded.tokens)
        self.row = max(1, *map(len, self.encoded.windows)) if self.encoded.windows else 1

    @property
    def expired(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def departed(self) -> bool:
        """Nobody waits for it any more."""
        return self.future.cancelled() or self.expired


class LaneQueue:
    """First in, first out as far as `plan` keeps to it. `tokens` is the sum of those waiting.

    What memory has no room for is passed over: it is kept aside, so that those behind it go on, and comes back first
    when there is room. It is neither in `len` nor in `tokens`.
    """

    def __init__(self, drain: float) -> None:
        self.drain = drain
        self.tokens = 0
        # Tokens a second of one thread: an exponentially weighted mean over its batches.
        self.rate = FIRST_GUESS
        self._entries: deque[Entry] = deque()
        self._aside: list[Entry] = []

    @property
    def aside(self) -> int:
        """How many are kept aside."""
        return len(self._aside)

    @property
    def all_tokens(self) -> int:
        """Of those that wait and those kept aside."""
        return self.tokens + sum(entry.tokens for entry in self._aside)

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

    def take(self, budget: int, row_tokens: int, now: float) -> list[Entry]:
        """The next batch of at most `budget` padded tokens, and with it those nobody waits for any more.

        It is of one model, that of the oldest; `budget` counts in tokens of the first model. None of its windows is
        longer than `row_tokens`. Empty when what it looked at had to be put aside.
        """
        window = list(islice(self._entries, LOOK_AHEAD))
        # Asked once: the time may be up between two looks.
        departed = {entry for entry in window if entry.departed}
        too_long = [entry for entry in window if entry.row > row_tokens and entry not in departed]
        self._put_aside(too_long, now)
        waiting = [entry for entry in window if entry.row <= row_tokens and entry not in departed]
        taken = list(departed)
        if waiting:
            served = waiting[0].served
            waiting = [entry for entry in waiting if entry.served is served]
            size = max(1, int(budget / served.cost))
            chosen = plan([entry.tokens for entry in waiting], now - waiting[0].since, size)
            taken += [waiting[index] for index in chosen]
        gone = {*taken, *too_long}
        for _ in window:
            self._entries.popleft()
        self._entries.extendleft(entry for entry in reversed(window) if entry not in gone)
        self.tokens -= sum(entry.tokens for entry in gone)
        return taken

    def pass_over(self, row_tokens: int, now: float) -> None:
        """Puts all aside for which there is no room, also those that `take` has not come to."""
        too_long = [entry for entry in self._entries if entry.row > row_tokens]
        if too_long:
            self.remove(too_long)
            self._put_aside(too_long, now)

    def sort_aside(self, row_tokens: int, now: float, patience: float) -> list[Entry]:
        """Puts those kept aside for which there is room now in front again; gives those that are to wait no longer.

        These are the departed, those kept aside for `patience` seconds, and the oldest that are too many, unless
        `row_tokens` is 0: nothing can run then, so they are in nobody's way.
        """
        if not self._aside:
            return []
        kept: list[Entry] = []
        back: list[Entry] = []
        over: list[Entry] = []
        for entry in self._aside:
            waited = now - (entry.since if entry.aside_since is None else entry.aside_since)
            if entry.departed or (entry.row > row_tokens and waited >= patience):
                over.append(entry)
            else:
                (back if entry.row <= row_tokens else kept).append(entry)
        excess = max(0, len(kept) - ASIDE) if row_tokens > 0 else 0
        over += kept[:excess]
        self._aside = kept[excess:]
        self._entries.extendleft(reversed(back))
        self.tokens += sum(entry.tokens for entry in back)
        return over

    def _put_aside(self, entries: Sequence[Entry], now: float) -> None:
        for entry in entries:
            # Kept from the first time, so that memory that comes and goes does not keep it waiting for ever.
            entry.aside_since = now if entry.aside_since is None else entry.aside_since
        self._aside += entries

    def remove(self, entries: Iterable[Entry]) -> None:
        """These wait no longer."""
        gone = set(entries)
        self._entries = deque(entry for entry in self._entries if entry not in gone)
        self.tokens = sum(entry.tokens for entry in self._entries)

    def older(self, than: float) -> list[Entry]:
        """Those that were there before that moment."""
        return [entry for entry in self._entries if entry.since < than]

    def clear(self) -> list[Entry]:
        """All of them, those kept aside too; none are left."""
        entries = [*self._entries, *self._aside]
        self._entries.clear()
        self._aside.clear()
        self.tokens = 0
        return entries

    def measured(self, tokens: int, seconds: float) -> None:
        """One thread took this long for that many."""
        if seconds > 0:
            self.rate += _SMOOTHING * (tokens / seconds - self.rate)
