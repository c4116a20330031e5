"""Appending to the last segment so that a line is either acknowledged and there, or refused and gone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from edge.ledger.cached import let_go
from edge.ledger.disk import sync, sync_directory, write_all
from edge.ledger.events import Erased, TurnSaid
from edge.ledger.segments import Segment, holds_turn, list_segments, rewrite, whole_bytes
from edge.ports import Clock


class SegmentWriter:
    """The open end of a log in `directory`. One thread at a time; all methods raise OSError as the disk has it."""

    def __init__(self, directory: Path, clock: Clock, segment_bytes: int) -> None:
        self._directory = directory
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._active: Segment | None = None
        self._file: int | None = None
        self._size = 0
        # Set while the file may hold more than was acknowledged: nothing is written before that is undone.
        self._undo_to: tuple[Segment | None, int] | None = None
        self._rotate = False

    def adopt(self, segment: Segment) -> None:
        """Goes on writing the segment, its torn tail cut off."""
        whole = whole_bytes(segment.path)
        file = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            if os.fstat(file).st_size > whole:
                os.ftruncate(file, whole)
                os.fsync(file)
        except OSError:
            os.close(file)
            raise
        self._active, self._file, self._size = segment, file, whole

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def append(self, lines: Sequence[bytes]) -> None:
        """All lines, on the disk, with one fsync a segment; on failure none of them stays."""
        if self._undo_to is not None:
            self._undo()
        elif self._file is None and self._active is not None:
            self.adopt(self._active)
        self._undo_to = (self._active, self._size)
        try:
            start = 0
            size = self._size
            for place, line in enumerate(lines):
                if self._file is None or self._rotate or (size and size + len(line) > self._segment_bytes):
                    self._flush(lines[start:place])
                    self._start_segment()
                    start, size = place, 0
                size += len(line)
            self._flush(lines[start:])
        except OSError:
            with contextlib.suppress(OSError):
                self._undo()
            raise
        self._undo_to = None

    def replace(self, segment: Segment, turns: Mapping[int, Erased | TurnSaid]) -> bool:
        """Puts the erasures in the place of their turns; whether there were any."""
        if self._undo_to is not None:
            self._undo()
        if not holds_turn(segment, turns):
            # Perhaps they were put there by a try whose new name never became durable.
            sync_directory(self._directory)
            return False
        active = self._active == segment
        if active:
            # The handle is of the old file: whatever happens now, the next line goes to the one of that name.
            self.close()
        try:
            rewrite(segment, turns)
        finally:
            if active:
                self.adopt(segment)
        return True

    def _flush(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        assert self._file is not None
        data = b"".join(lines)
        write_all(self._file, data)
        try:
            sync(self._file)
        except OSError:
            # The kernel may have dropped the pages and called them clean (LWN 752063, "fsyncgate"): never write on
            # behind them, even after they are cut off.
            self._rotate = True
            raise
        # Nobody reads the log while the box runs.
        let_go(self._file)
        self._size += len(data)

    def _start_segment(self) -> None:
        date = datetime.fromtimestamp(self._clock.now() / 1e6, timezone.utc).date()
        place = self._active.number + 1 if self._active else 1
        segment = Segment(self._directory / f"{date.isoformat()}-{place:06d}.jsonl", place)
        file = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.close()
        self._active, self._file, self._size, self._rotate = segment, file, 0, False
        sync_directory(self._directory)

    def _undo(self) -> None:
        """Back to the last acknowledged byte, by fresh handles. Raises OSError while the disk does not allow it."""
        assert self._undo_to is not None
        segment, size = self._undo_to
        self.close()
        for later in list_segments(self._directory):
            if segment is None or later.number > segment.number:
                later.path.unlink()
        self._active, self._size = segment, size
        if segment is not None:
            file = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.ftruncate(file, size)
                os.fsync(file)
            except OSError:
                os.close(file)
                raise
            self._file = file
        sync_directory(self._directory)
        self._rotate = self._rotate and segment is not None
        self._undo_to = None
