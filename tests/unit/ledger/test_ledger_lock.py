"""One process at a time has a data directory, and a dead one has none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edge.errors import Locked
from edge.ledger.lock import DataLock

HOLD = "import sys,pathlib,time; from edge.ledger.lock import DataLock; l = DataLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"  # noqa: E501  # one line for python -c


def test_the_second_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with DataLock(tmp_path), pytest.raises(Locked, match=rf"process {os.getpid()}, running since 2\d\d\d-.* as "):
        DataLock(tmp_path)
    DataLock(tmp_path).close()


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(Locked, match=f"process {process.pid},"):
        DataLock(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    DataLock(tmp_path).close()


def test_a_lock_file_with_anything_in_it_still_names_an_owner(tmp_path: Path) -> None:
    with DataLock(tmp_path) as lock:
        lock.path.write_bytes(b"\xff{")
        with pytest.raises(Locked, match="another process"):
            DataLock(tmp_path)


def test_a_directory_that_cannot_be_written_needs_no_lock_or_takes_the_one_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: object, flags: int, *rest: object, **names: object) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **names)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(os, "open", refuse)
    DataLock(tmp_path).close()
    assert not list(tmp_path.iterdir())
    (tmp_path / "edge.lock").write_bytes(b"")
    with DataLock(tmp_path), pytest.raises(Locked):
        DataLock(tmp_path)
