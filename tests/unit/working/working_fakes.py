"""States in a file of their own, under a clock that is set by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge.config import Limits
from edge.ledger.scrub import scrub
from edge.types import Micros
from edge.working.states import States

SECOND = 1_000_000
START: Micros = 1_767_225_600 * SECOND


class SetClock:
    def __init__(self) -> None:
        self.time: Micros = START

    def now(self) -> Micros:
        return self.time

    def monotonic(self) -> float:
        return 0.0


def opened(folder: Path, clock: SetClock, limits: Limits | None = None, **more: Any) -> States:
    erase: Callable[[int], int] = more.pop("scrub", scrub)
    return States(folder / "box.sqlite", clock, limits or Limits(), erase, **more)


def bytes_of(folder: Path) -> bytes:
    """Of every file of the database."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("box.sqlite*")))


def rows(folder: Path) -> int:
    """How many there are in the file, the expired included."""
    connection = sqlite3.connect(folder / "box.sqlite")
    try:
        return int(connection.execute("SELECT count(*) FROM states").fetchone()[0])
    finally:
        connection.close()
