"""Making sure that what was written is on the disk, and saying so when it is not."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path

from edge.errors import DiskFull, EdgeError, ReadOnly, Unavailable

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def sync(file: int) -> None:
    """Returns when the file's bytes would survive a power cut."""
    if sys.platform == "darwin":
        # fsync alone leaves them in the drive's cache there: fcntl(2), F_FULLFSYNC.
        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
            os.fsync(file)
    else:
        os.fdatasync(file)


def sync_directory(directory: Path) -> None:
    """Makes the directory's names durable: a file's own fsync does not."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def left(directory: Path) -> int:
    """Bytes that may still be written there; very many where the file system does not say."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return sys.maxsize
    return found.f_bavail * found.f_frsize if found.f_blocks else sys.maxsize


def refusal(error: OSError, directory: Path) -> EdgeError:
    """The failure that a caller can act on."""
    if error.errno in _FULL:
        return DiskFull(
            f"no room left for {directory}; free some space and send it again, a restart is not needed", retry_after=5.0
        )
    if error.errno in _UNWRITABLE:
        return ReadOnly(f"{directory} cannot be written ({error.strerror}); make it writable, recalls go on meanwhile")
    return Unavailable(
        f"the disk did not take a write to {directory} ({error.strerror}); look at the system's log for its health",
        reason="DISK_FAILED",
        retry_after=5.0,
    )


def make_directory(directory: Path) -> None:
    """The directory and its parents, for the owner alone, durable; nothing where it exists."""
    if not directory.exists():
        make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        sync_directory(directory.parent)
