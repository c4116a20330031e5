"""What was to be kept while the box was away: a file each on this machine, delivered once when it is back.

A file is put in place whole and is its owner's alone. The request's id goes with it, so that a note which the box had
taken already, or which two gateways deliver at once, is kept once. Secrets are hidden before anything is written here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from edge.errors import EdgeError, Exhausted, ReadOnly
from edge.gateway.box import Note

_logger = logging.getLogger(__name__)

# Files, and bytes of them together.
_FILES, _BYTES = 1000, 16 * 1024 * 1024
# The same of what was set aside, of which the oldest goes when there is more.
_REFUSED_FILES, _REFUSED_BYTES = 100, 4 * 1024 * 1024
# Seconds in which a file is written.
_ABANDONED = 600.0
_SUFFIX, _REFUSED = ".json", ".refused"


class Outbox:
    """`directory` is made when something is first put there. `redact` hides the secrets of a text.

    Safe for several processes: no file is ever changed, and whoever delivered one removes it.
    """

    def __init__(self, directory: Path, redact: Callable[[str], str]) -> None:
        self._directory = directory
        self._redact = redact

    def put(self, note: Note) -> None:
        """On the disk when it returns. Raises Exhausted when the outbox is full, ReadOnly when it cannot be written."""
        waiting = self._files()
        if len(waiting) >= _FILES or sum(map(_size, waiting)) + len(note.content.encode()) > _BYTES:
            raise Exhausted(
                f"the box does not answer, and {len(waiting)} notes wait for it already in {self._directory}; start "
                "the box with `edge serve`, and they are delivered",
                reason="OUTBOX_FULL",
            )
        safe = replace(note, content=self._redact(note.content), tags=tuple(map(self._redact, note.tags)))
        staged = ""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made for its owner alone (mkstemp).
            descriptor, staged = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self._directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(asdict(safe), ensure_ascii=False).encode())
                file.flush()
                os.fsync(file.fileno())
            # Ascending by time, so that the oldest goes first.
            Path(staged).replace(self._directory / f"{note.occurred_at:020d}-{note.request_id}{_SUFFIX}")
            self._sync()
        except OSError as error:
            if staged:
                with contextlib.suppress(OSError):
                    Path(staged).unlink()
            raise ReadOnly(
                f"the box does not answer, and {self._directory} cannot be written ({error.strerror}); nothing was "
                "kept. Start the box with `edge serve` and say it again"
            ) from None

    def waiting(self) -> list[tuple[Path, Note]]:
        """The oldest first. What cannot be read is set aside, and named in the log."""
        found = []
        self._sweep()
        for path in self._files():
            note = self._read(path)
            if note is not None:
                found.append((path, note))
        return found

    def _sweep(self) -> None:
        """What a gateway that was killed had begun to write."""
        for path in self._directory.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()

    def _read(self, path: Path) -> Note | None:
        try:
            return _unpack(path.read_bytes())
        except FileNotFoundError:
            # Another gateway delivered it.
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            _logger.warning("%s is damaged (%s); it is set aside", path, type(error).__name__)
            self.set_aside(path)
            return None

    def empty(self) -> bool:
        return not self._files()

    def delivered(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    def set_aside(self, path: Path) -> Path:
        """Kept for its owner to look at, and not sent again; where it is now."""
        aside = path.with_suffix(_REFUSED)
        with contextlib.suppress(OSError):
            path.rename(aside)
        self._shed()
        return aside

    def _shed(self) -> None:
        """The oldest of what was set aside, beyond the bounds."""
        kept, held = 0, 0
        for path in reversed(self._files(_REFUSED)):
            kept, held = kept + 1, held + _size(path)
            if kept > _REFUSED_FILES or held > _REFUSED_BYTES:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files(self, suffix: str = _SUFFIX) -> list[Path]:
        try:
            return sorted(path for path in self._directory.iterdir() if path.suffix == suffix)
        except OSError:
            return []

    def _sync(self) -> None:
        """The name is on the disk too, not only what the file holds."""
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _unpack(raw: bytes) -> Note:
    """Raises ValueError, TypeError or KeyError for what is not one of our files."""
    said: Any = json.loads(raw)
    texts = [said[key] for key in ("request_id", "content", "source")]
    if not all(isinstance(text, str) for text in (*texts, *said["tags"])):
        raise ValueError("not a note")
    request_id, content, source = texts
    return Note(request_id, content, tuple(said["tags"]), float(said["weight"]), source, int(said["occurred_at"]))


def is_final(error: EdgeError) -> bool:
    """Whether the box will say the same of it whenever it is asked."""
    return error.code == "INVALID_ARGUMENT"
