"""How long each stage of a recall takes."""

from __future__ import annotations

import time


class Stopwatch:
    """Stages of one recall, in order; seconds."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """The time since the last lap was spent on this stage; laps of one stage add up."""
        now = time.perf_counter()
        self._stages[stage] = self._stages.get(stage, 0.0) + now - self._last
        self._last = now

    def timing(self) -> tuple[tuple[str, float], ...]:
        return (*self._stages.items(), ("total", time.perf_counter() - self._start))
