"""Jobs that come round again, on one thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edge.ports import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    # Seconds between the end of one run and the start of the next.
    every: float
    run: Callable[[], None]


class Schedule:
    """After a sleep of the device an overdue job runs once, not as often as it was missed."""

    def __init__(self, jobs: Sequence[Job], clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edge-upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        due = {job.name: self._clock.monotonic() + job.every for job in self._jobs}
        while not self._closing.wait(min(job.every for job in self._jobs)):
            for job in self._jobs:
                if self._clock.monotonic() < due[job.name] or self._closing.is_set():
                    continue
                try:
                    job.run()
                except Exception as error:  # noqa: BLE001  # one job's failure is told, and must not end the others
                    logger.warning("%s failed and is tried again in %.0f s: %s", job.name, job.every, error)
                due[job.name] = self._clock.monotonic() + job.every
