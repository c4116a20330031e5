"""One process at a time on a data directory."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType

from edge.errors import Locked

NAME = "edge.lock"
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class DataLock:
    """An flock on `<directory>/edge.lock`. The kernel drops it with its owner, so kill -9 leaves nothing that blocks.

    The file's words say who holds it; only the flock decides. A directory that cannot be written and has no lock
    file has never had a writer, and needs no lock. Raises Locked that names the owner.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._file: int | None = None
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            writable = True
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            try:
                file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
            writable = False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(file)
            os.close(file)
            raise Locked(
                f"{directory} is in use by {owner}; stop that process, or give another directory with --data"
            ) from None
        except OSError:
            os.close(file)
            raise
        self._file = file
        if writable:
            _sign(file)

    def close(self) -> None:
        # The file stays: removing it would let two processes lock two files of one name.
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> DataLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sign(file: int) -> None:
    words = {
        "pid": os.getpid(),
        "since": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "command": " ".join(sys.argv)[:200],
    }
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(words).encode() + b"\n", 0)
    except OSError:
        # A full disk takes the name off the lock, not the lock away.
        return


def _owner(file: int) -> str:
    try:
        words = json.loads(os.pread(file, 4096, 0))
        return f"process {int(words['pid'])}, running since {words['since']} as {words['command']!r}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
