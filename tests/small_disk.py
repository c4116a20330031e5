"""A disk of a few megabytes, to be filled up or made read-only; needs root, as CI has it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A tmpfs; `path` is short enough for a unix socket below it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, leaving: int = 0) -> None:
        """Until so many bytes, or not one page, are free."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while shutil.disk_usage(self.path).free >= leaving:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink()

    def make_read_only(self) -> None:
        _run("mount", "-o", "remount,ro", str(self.path))

    def make_writable(self) -> None:
        _run("mount", "-o", "remount,rw", str(self.path))


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    with tempfile.TemporaryDirectory(prefix="edge-") as directory:
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory)
        try:
            yield SmallDisk(Path(directory))
        finally:
            _run("umount", "--lazy", directory)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(
            f"{' '.join(command)}: {done.stderr.strip()}; this test mounts a tmpfs, run it as root", pytrace=False
        )
