"""Workers of one run beside each other: who is alone has the room to itself, and the others share it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import alone
import pytest


def item(folder: Path, *, marked: bool, worker: bool = True) -> Any:
    config = SimpleNamespace(option=SimpleNamespace(basetemp=str(folder / "popen-gw0")))
    if worker:
        config.workerinput = {"workerid": "gw0"}
    return SimpleNamespace(config=config, get_closest_marker=lambda name: marked and name == "alone")


def may_go_in(folder: Path, name: str, how: int) -> bool:
    with (folder / name).open("a") as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_beside_a_test_that_is_alone_there_is_none(tmp_path: Path) -> None:
    with alone.turn(item(tmp_path, marked=True)):
        assert not may_go_in(tmp_path, "room.lock", fcntl.LOCK_SH)
    assert may_go_in(tmp_path, "room.lock", fcntl.LOCK_EX)


def test_others_run_beside_each_other_and_keep_out_who_would_be_alone(tmp_path: Path) -> None:
    with alone.turn(item(tmp_path, marked=False)), alone.turn(item(tmp_path, marked=False)):
        assert may_go_in(tmp_path, "room.lock", fcntl.LOCK_SH)
        assert not may_go_in(tmp_path, "room.lock", fcntl.LOCK_EX)
    assert may_go_in(tmp_path, "room.lock", fcntl.LOCK_EX)


@pytest.mark.parametrize("marked", [True, False])
def test_who_is_in_the_room_does_not_stand_in_the_door(tmp_path: Path, marked: bool) -> None:
    with alone.turn(item(tmp_path, marked=marked)):
        assert may_go_in(tmp_path, "door.lock", fcntl.LOCK_EX)


def test_a_test_that_fails_leaves_the_room(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone.turn(item(tmp_path, marked=True)):
        raise ZeroDivisionError
    assert may_go_in(tmp_path, "room.lock", fcntl.LOCK_EX)


def test_a_run_without_workers_needs_no_turns(tmp_path: Path) -> None:
    with alone.turn(item(tmp_path, marked=True, worker=False)):
        assert list(tmp_path.iterdir()) == []
