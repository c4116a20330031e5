"""One space as a recall sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from edge.ports import MemoryReader, VectorIndex


class SpaceView(Protocol):
    """All parts are safe from any thread."""

    @property
    def reader(self) -> MemoryReader: ...

    @property
    def indexes(self) -> Mapping[str, VectorIndex]:
        """By the id of the model whose vectors each one holds."""
        ...
