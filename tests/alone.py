"""Tests that cannot bear another beside them: each is marked `alone`, and then waits until no other worker runs one.

Workers of one run (pytest-xdist) meet at two locks in the folder that they share. Who wants to be alone waits in the
door, so that no test that comes later goes in before.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def _held(path: Path, how: int) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, how)
        try:
            yield
        finally:
            # By name, not by closing: a child that was forked meanwhile has the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)


@contextlib.contextmanager
def turn(item: pytest.Item) -> Iterator[None]:
    """While this test runs: none of another worker does, if it is to be alone; else none that is to be alone."""
    if not hasattr(item.config, "workerinput"):
        yield
        return
    # xdist gives each worker a folder of its own in the one of the run.
    folder = Path(item.config.option.basetemp).parent
    how = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
    with contextlib.ExitStack() as room:
        with _held(folder / "door.lock", fcntl.LOCK_EX):
            room.enter_context(_held(folder / "room.lock", how))
        yield
