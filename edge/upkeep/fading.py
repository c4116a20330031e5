"""The sweep: what nobody used for long goes to the archive and then the cold file; what is used again comes back.

docs/fading.md has the rules.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from edge.config import Decaying
from edge.errors import EdgeError
from edge.ledger.queries import Queries
from edge.ledger.revising import AT_ONCE
from edge.ledger.revisions import FORGOTTEN, RULE, Change
from edge.ports import Clock
from edge.space import Space
from edge.spaces import Spaces
from edge.types import MemoryState, Micros
from edge.upkeep.decay import ARCHIVE_STEADY, COLD_STEADY, Borders, Rules, archive_before, cold_before, steady

logger = logging.getLogger(__name__)

# Seconds between two sweeps of a space that is open, and of one that is opened for it.
_EVERY, _EVERY_CLOSED = 3600.0, 86_400.0
# Seconds for which whoever forgets or revises goes first, after so many slices.
_PAUSE = 0.005
_TOGETHER = 5


_Choose = Callable[[Space, Sequence[int], Borders, Queries], list[str]]


class Watched:
    """The clocks, looked at now and then: for how long they have gone alike. One thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = self._last = self._read()

    def look(self) -> Micros:
        """The wall clock. Where it went otherwise than the monotonic one since the last look, watching begins anew."""
        now = self._read()
        if not steady(self._last, now, 0):
            self._since = now
        self._last = now
        return now[0]

    def steady(self, seconds: float) -> bool:
        """Whether it was so for at least so many seconds, up to the last look."""
        return steady(self._since, self._last, seconds)

    def _read(self) -> tuple[Micros, float]:
        return self._clock.now(), self._clock.monotonic()


@dataclass(frozen=True, slots=True)
class Swept:
    """How many memories one sweep moved."""

    archived: int = 0
    restored: int = 0
    # Moved to the cold file, or deleted, as the config has it.
    cold: int = 0


class Fading:
    """Sweeps the spaces one after another, each in slices. Everything is an event of the log, and can be undone.

    A space that is closed is opened for its sweep once a day; one at a time, since an open one costs memory. `allowed`
    says whether the device has room for work that nobody waits for.
    """

    def __init__(
        self, spaces: Spaces, config: Decaying, clock: Clock, allowed: Callable[[], bool] = lambda: True
    ) -> None:
        """Raises InvalidArgument that names the key where the config is no rule."""
        self._rules = Rules.of(config)
        self._spaces = spaces
        self._cold = config.cold
        self._enabled = config.enabled and not spaces.read_only
        self._clock = clock
        self._allowed = allowed
        self._watched = Watched(clock)
        self._swept: dict[str, float] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """To be called every few minutes; does what is due by then. Blocks while it works."""
        now = self._watched.look()
        if not self._enabled or not self._watched.steady(ARCHIVE_STEADY) or not self._allowed():
            return
        for space in self._due():
            if self._stopping.is_set():
                return
            self._swept[space.name] = self._clock.monotonic()
            try:
                done = self.sweep(space, now, cold=self._watched.steady(COLD_STEADY))
            except EdgeError as error:
                logger.warning("space %s: not all is swept, and is tried again: %s", space.name, error.message)
                continue
            if done != Swept():
                logger.info(
                    "space %s: %d archived, %d brought back, %d cold",
                    space.name,
                    done.archived,
                    done.restored,
                    done.cold,
                )

    def stop(self) -> None:
        """A sweep that runs ends with its present slice."""
        self._stopping.set()

    def sweep(self, space: Space, now: Micros, *, cold: bool = False) -> Swept:
        """One space, as it is at `now`; also what becomes cold, if that is wanted.

        Raises DiskFull, Unavailable, …: what was moved till then stays so.
        """
        space.flush_accesses()
        unused, revisions, borders = space.unused, space.revisions, Borders(self._rules, now)
        restored = archived = 0
        for rowids in self._slices(space, unused.archived(), _TOGETHER * AT_ONCE):
            # What was used again, and what a wrong clock put there.
            done = revisions.move(self._choices(self._strong, space, rowids, borders), RULE, archived=False)
            restored += sum(len(one.changes) for one in done)
        for rowids in self._slices(space, unused.at_hand(self._latest(now)), _TOGETHER * AT_ONCE):
            done = revisions.move(self._choices(self._weak, space, rowids, borders), RULE, archived=True)
            archived += sum(len(one.changes) for one in done)
        return Swept(archived, restored, self._cool(space, borders, now) if cold else 0)

    def _due(self) -> Iterator[Space]:
        begun = self._clock.monotonic()

        def due(name: str, every: float) -> bool:
            return name not in self._swept or begun - self._swept[name] >= every

        open_ = self._spaces.all()
        yield from (space for space in open_ if due(space.name, _EVERY))
        closed = set(self._spaces.names()) - {space.name for space in open_}
        # Whoever was never swept since the start first.
        for name in sorted(closed, key=lambda name: self._swept.get(name, -1.0)):
            if due(name, _EVERY_CLOSED):
                space = self._spaces.find(name)
                if space is not None:
                    yield space
                return

    def _slices(self, space: Space, rowids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        for start in range(0, len(rowids), size):
            if start and self._stopping.wait(_PAUSE):
                return
            space.check_room()
            yield rowids[start : start + size]

    def _choices(
        self, choose: _Choose, space: Space, rowids: Sequence[int], borders: Borders
    ) -> Iterator[Callable[[Queries], list[str]]]:
        """For `Revisions.move`: a slice each, the first whatever happens."""
        for start in range(0, len(rowids), AT_ONCE):
            if start and self._stopping.is_set():
                return
            yield partial(choose, space, rowids[start : start + AT_ONCE], borders)

    def _latest(self, now: Micros) -> Micros:
        """What was used later than this is due by no rule."""
        rules = (self._rules.other, *self._rules.kinds.values())
        return max(archive_before(now, rule, 0.0, MemoryState.TEMPORARY) for rule in rules)

    def _weak(self, space: Space, rowids: Sequence[int], borders: Borders, _: Queries) -> list[str]:
        due: dict[str, Micros] = {}
        for uses in space.unused.uses(rowids, archived=False):
            border = borders(uses.nature)
            # Mostly all of one nature are due, or none is.
            if max(uses.used) <= border:
                due.update(dict.fromkeys(uses.ids, border))
            elif min(uses.used) <= border:
                due.update((id, border) for id, used in zip(uses.ids, uses.used, strict=True) if used <= border)
        for id, at in (space.unused.tended(list(due)) if due else {}).items():
            if at > due[id]:
                del due[id]
        return list(due)

    def _cool(self, space: Space, borders: Borders, now: Micros) -> int:
        if self._cold == "keep":
            return 0
        count = 0
        until = cold_before(now, self._rules.other)
        for turns in self._slices(space, space.unused.cold(until), AT_ONCE):
            choose = partial(self._faded, space, turns, borders, until)
            if self._cold == "file":
                done = space.cold.move(choose)
            else:
                # As a forget that may be undone: `Spaces.finish_forgets` erases it when its time is over.
                done = space.revisions.revise(partial(_hidden, space, choose), FORGOTTEN, RULE)
            count += len(done.changes) if done else 0
        return count

    def _faded(self, space: Space, turns: Sequence[int], borders: Borders, until: Micros) -> list[int]:
        """Those of the turns that are cold whole; some AT_ONCE memories at most, the others the next time."""
        whole = space.unused.whole(turns)
        tended = space.unused.tended([use[4] for uses in whole.values() for use in uses])
        found = []
        count = 0
        for turn, uses in whole.items():
            if count < AT_ONCE and all(
                use[3] <= 0 and max(use[5], tended.get(use[4], 0)) <= min(until, borders(use[:4])) for use in uses
            ):
                found.append(turn)
                count += len(uses)
        return found

    def _strong(self, space: Space, rowids: Sequence[int], borders: Borders, _: Queries) -> list[str]:
        found = space.unused.uses(rowids, archived=True)
        tended = space.unused.tended([id for uses in found for id in uses.ids])
        kept: list[str] = []
        for uses in found:
            border = borders(uses.nature)
            if min(uses.used) > border:
                kept += uses.ids
            elif tended or max(uses.used) > border:
                pairs = zip(uses.ids, uses.used, strict=True)
                kept += [id for id, used in pairs if max(used, tended.get(id, 0)) > border]
        ours = space.unused.put_away(kept) if kept else set()
        return [id for id in kept if id in ours]


def _hidden(space: Space, choose: Callable[[], Sequence[int]], queries: Queries) -> list[Change]:
    going = queries.by_ids(queries.of_turns(choose()).memory_ids)
    return [space.revisions.change(memory, state=MemoryState.FORGOTTEN) for memory in going.values()]
