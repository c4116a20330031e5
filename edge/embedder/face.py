"""One model of a batcher, as those see it who want vectors of that model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from edge.embedder.lanes import Served
from edge.ports import QueueStatus
from edge.types import Lane, ModelInfo, Vector

Submit = Callable[[Served, Sequence[str], Lane, "float | None"], "list[Future[Vector]]"]


class Face:
    """ports.Vectorizer. Lanes, threads and status are the batcher's, and shared with its other models."""

    def __init__(self, served: Served, submit: Submit, status: Callable[[], QueueStatus]) -> None:
        self._served = served
        self._submit = submit
        self._status = status

    @property
    def info(self) -> ModelInfo:
        return self._served.embedder.info

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        """See Batcher.submit."""
        return self._submit(self._served, texts, lane, deadline)

    def tokens(self, text: str) -> int:
        """See ports.Vectorizer; the two that frame a window are counted."""
        return self._served.embedder.encode([text], Lane.INGEST)[0].tokens

    def status(self) -> QueueStatus:
        return self._status()
