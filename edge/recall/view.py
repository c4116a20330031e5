"""One space as a recall sees it."""

from __future__ import annotations

from typing import Protocol

from edge.ports import MemoryReader, VectorIndex


class SpaceView(Protocol):
    """Both parts are safe from any thread."""

    @property
    def reader(self) -> MemoryReader: ...

    @property
    def index(self) -> VectorIndex: ...
