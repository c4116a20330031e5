"""How hard to work: the governor that never changes its mind."""

from __future__ import annotations

import os

from edge.config import Embedding
from edge.ports import Budget, GovernorState


def usable_cores() -> int:
    """The cores this process may run on, at least 1; a cpuset narrows them."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def worker_count(config: Embedding) -> int:
    """Ingest inference threads: what is configured, else one a core."""
    return config.workers or usable_cores()


class FixedGovernor:
    """The configured budget, always: for tests, benchmarks and devices that need no care."""

    def __init__(self, config: Embedding) -> None:
        self._budget = Budget(
            padded_tokens=max(1, config.batch_tokens),
            threads=worker_count(config),
            duty=1.0,
            background=True,
            reason="fixed by the configuration",
        )

    def budget(self) -> Budget:
        return self._budget

    def observe(self, padded_tokens: int, seconds: float) -> None:
        """Nothing is learnt from it: this budget is fixed."""

    def state(self) -> GovernorState:
        return GovernorState(self._budget, since=0, changes=0)
