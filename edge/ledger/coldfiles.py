"""The cold files: what left the log for good but one place, compressed; zstdcat and jq read them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from edge.errors import Unavailable
from edge.ledger.disk import make_directory, refusal, sync, sync_directory, write_all
from edge.ledger.events import number

SUFFIX = ".jsonl.zst"
# Bytes of lines in one frame, so that reading takes little memory. A line may be longer.
_FRAME = 1 << 20


class ColdFiles:
    """`<YYYY-MM>.jsonl.zst` in `directory`: lines of the log, in zstd frames (RFC 8878), each with its checksum.

    A file changes in one step, by a new one of its name: whoever looks finds the old or the new. Safe from any thread.
    Methods raise DiskFull, ReadOnly or Unavailable as the disk has it; Unavailable (COLD_FILE_DAMAGED) too for a file
    that is damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()

    def tidy(self) -> None:
        """Removes what a crash left of a new file; the old one is there."""
        for leftover in self.directory.glob("*.tmp"):
            leftover.unlink()

    def append(self, month: str, lines: Sequence[bytes]) -> None:
        """Durable when it returns. Nothing is appended to a damaged file: behind the damage it could not be read."""
        path = self.directory / f"{month}{SUFFIX}"
        with self._lock, self._explained():
            make_directory(self.directory)
            before = path.read_bytes() if path.exists() else b""
            for _ in _lines(path, before):
                pass
            self._replace(path, before, lines)

    def find(self, numbers: Collection[int]) -> dict[int, bytes]:
        """The lines of these numbers, as far as they are here. A damaged one is told of only if some are missing."""
        wanted = set(numbers)
        found: dict[int, bytes] = {}
        damaged: Unavailable | None = None
        with self._lock:
            for path in paths(self.directory) if wanted else ():
                try:
                    found |= {n: line for line in read(path) if (n := number(line)) in wanted and n}
                except Unavailable as error:  # noqa: PERF203  # the others are whole
                    damaged = error
        if damaged is not None and len(found) < len(wanted):
            raise damaged
        return found

    def erase(self, numbers: Collection[int]) -> int:
        """Takes the lines of these numbers out; how many files were written anew. May be repeated.

        Where files are damaged nobody can tell whether they have them: they are left, and raised when the others are
        done.
        """
        gone = set(numbers)
        count = 0
        damaged: list[Path] = []
        with self._lock, self._explained():
            for path in paths(self.directory) if gone else ():
                try:
                    lines = list(read(path))
                except Unavailable:
                    damaged.append(path)
                    continue
                kept = [line for line in lines if number(line) not in gone]
                if len(kept) == len(lines):
                    continue
                count += 1
                if kept:
                    self._replace(path, b"", kept)
                else:
                    path.unlink()
                    sync_directory(self.directory)
        if damaged:
            raise _damaged(*damaged)
        return count

    def _replace(self, path: Path, before: bytes, lines: Iterable[bytes]) -> None:
        scratch = path.with_name(f"{path.name}.tmp")
        try:
            file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                write_all(file, before)
                for frame in _frames(lines):
                    write_all(file, frame)
                sync(file)
            finally:
                os.close(file)
            scratch.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                scratch.unlink()
            raise
        sync_directory(path.parent)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refusal(error, self.directory) from error


def paths(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{SUFFIX}"))


def read(path: Path) -> Iterator[bytes]:
    """The lines of a cold file, each with its newline. Raises Unavailable where a frame is damaged or not whole."""
    return _lines(path, path.read_bytes())


def _lines(path: Path, left: bytes) -> Iterator[bytes]:
    # Loaded when there are such files: most boxes have none.
    import zstandard

    while left:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            data = frame.decompress(left)
        except zstandard.ZstdError as error:
            raise _damaged(path) from error
        if not frame.eof or not data.endswith(b"\n"):
            raise _damaged(path)
        yield from data.splitlines(keepends=True)
        left = frame.unused_data


def _damaged(*paths: Path) -> Unavailable:
    # No DataLoss: making the views anew mends nothing here.
    which = f"{', '.join(map(str, paths))} {'is' if len(paths) == 1 else 'are'} damaged"
    return Unavailable(
        f"{which}; bring it back from a backup, or remove it if there is none",
        reason="COLD_FILE_DAMAGED",
    )


def _frames(lines: Iterable[bytes]) -> Iterator[bytes]:
    import zstandard

    compressor = zstandard.ZstdCompressor(write_checksum=True)
    part: list[bytes] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= _FRAME:
            yield compressor.compress(b"".join(part))
            part, size = [], 0
    if part:
        yield compressor.compress(b"".join(part))
