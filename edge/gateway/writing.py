"""Keeping a note: at the box, or in the outbox until the box is back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge.errors import DeadlineExceeded, EdgeError, Unavailable
from edge.gateway.box import Box, Kept, Note
from edge.gateway.outbox import Outbox, is_final

_logger = logging.getLogger(__name__)

# Seconds between looks at whether the box is back; the last goes on.
_WAITS = (1.0, 2.0, 5.0)
# Seconds for which a search waits for what is being delivered.
_CATCH_UP = 1.5
# Of what was refused since it was last told, the last so many are named.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Refused:
    """A note that the box refused for good: what it says, why, and the file that it is in now."""

    content: str
    why: str
    path: Path


class Writer:
    """One for each identity that writes. `start` inside the event loop; `close` leaves what waits where it is."""

    def __init__(self, box: Box, outbox: Outbox, *, now: Callable[[], float] = time.time) -> None:
        self._box = box
        self._outbox = outbox
        self._now = now
        self._wake, self._tried = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._refused: list[Refused] = []
        self._refusals = 0

    def start(self) -> None:
        """Delivers what an earlier gateway left, and what is put there from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def keep(self, content: str, tags: Sequence[str], weight: float, source: str) -> Kept | None:
        """What it became; None when the box is away and it waits in the outbox. Raises edge.errors."""
        note = Note(str(uuid.uuid4()), content, tuple(tags), weight, source, int(self._now() * 1e6))
        try:
            kept = await self._box.keep(note)
        except (Unavailable, DeadlineExceeded):
            # Perhaps the box has it, and only its answer was lost: its id tells.
            await asyncio.to_thread(self._outbox.put, note)
            self._wake.set()
            return None
        self.box_answered()
        return kept

    def box_answered(self) -> None:
        """It is there: what waits need not wait longer."""
        self._wake.set()

    async def catch_up(self) -> bool:
        """Whether anything that waited was delivered just now; the box is there."""
        if self._task is None or self._outbox.empty():
            return False
        self._tried.clear()
        self._wake.set()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._tried.wait(), _CATCH_UP)
        return True

    def refusals(self) -> tuple[int, list[Refused]]:
        """How many notes the box refused for good since this was last asked, and the last few of them."""
        told = self._refusals, self._refused
        self._refusals, self._refused = 0, []
        return told

    async def _run(self) -> None:
        tries = 0
        while True:
            try:
                tries = 0 if await self._deliver() else tries + 1
            except Exception as error:  # noqa: BLE001  # whatever it is, what waits is tried again
                # Once, and not every few seconds of a night.
                if not tries:
                    why = error.message if isinstance(error, EdgeError) else type(error).__name__
                    _logger.warning("what waits in the outbox goes on waiting: %s", why)
                tries += 1
            self._tried.set()
            wait = _WAITS[min(tries, len(_WAITS)) - 1] if tries else None
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    async def _deliver(self) -> bool:
        """Whether nothing waits any more."""
        if self._outbox.empty():
            return True
        for path, note in await asyncio.to_thread(self._outbox.waiting):
            await self._deliver_one(path, note)
        return self._outbox.empty()

    async def _deliver_one(self, path: Path, note: Note) -> None:
        try:
            await self._box.keep(note)
        except EdgeError as error:
            if not is_final(error):
                raise
            aside = self._outbox.set_aside(path)
            _logger.warning("the box refused a note that waited for it, now in %s: %s", aside, error.message)
            self._refusals += 1
            self._refused = [*self._refused, Refused(note.content, error.message, aside)][-_NAMED:]
        else:
            self._outbox.delivered(path)
