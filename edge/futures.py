"""Answers that are owed."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any


def promise() -> Future[Any]:
    """A future that its reader cannot cancel: what it tells of goes on, whoever listens."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future
