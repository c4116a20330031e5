"""What the batcher's threads need to keep on working: a governor that never raises, and to stand back."""

from __future__ import annotations

import logging
import os
import sys
import threading

from edge.ports import Budget, Governor

log = logging.getLogger(__name__)

# Nice levels by which ingest threads stand back.
_STAND_BACK = 10


class Steady:
    """A governor whose failures are logged; then its last word stands, at first `last`."""

    def __init__(self, governor: Governor, last: Budget) -> None:
        self._governor = governor
        self.last = last

    def budget(self) -> Budget:
        try:
            self.last = self._governor.budget()
        except Exception:
            log.exception("the governor failed; its last budget stands")
        return self.last

    def observe(self, padded_tokens: int, seconds: float, cpu_seconds: float) -> None:
        try:
            self._governor.observe(padded_tokens, seconds, cpu_seconds)
        except Exception:
            log.exception("the governor failed on a measurement; it goes without")


def stand_back() -> None:
    """Lower the calling thread's priority: on Linux a nice value is a thread's."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _STAND_BACK)
        except OSError as error:
            log.debug("ingest threads keep their priority: %s", error)
