"""How long to wait before trying again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from edge.errors import EdgeError

_FIRST = 0.1
_CEILING = 5.0


class Backoff:
    """Exponential with jitter, never shorter than what the box asks for (google.rpc.RetryInfo), for `patience` seconds.

    The patience is counted from the first failure after the last progress.
    """

    def __init__(
        self,
        patience: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        # Spreads clients over time; nothing secret hangs on it.
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._since = 0.0

    def progress(self) -> None:
        """Something worked: the next failure is the first again."""
        self._failures = 0

    def delay(self, error: EdgeError) -> float | None:
        """Seconds to wait after this failure; None when patience is over."""
        now = self._clock()
        if not self._failures:
            self._since = now
        step = min(_CEILING, _FIRST * 2.0 ** min(self._failures, 10))
        self._failures += 1
        wait = step * (0.5 + 0.5 * self._chance())
        if error.retry_after is not None:
            wait += error.retry_after
        return wait if now + wait - self._since <= self._patience else None
