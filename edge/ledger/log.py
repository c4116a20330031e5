"""What was said, in the order it came: appended, fsynced, and only then acknowledged."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from edge.errors import EdgeError, ReadOnly, Unavailable
from edge.ledger.coldfiles import ColdFiles
from edge.ledger.disk import make_directory, refusal
from edge.ledger.events import Erased, Event, TurnSaid, encode, number, sound
from edge.ledger.segments import (
    Line,
    Segment,
    first_number,
    list_segments,
    read_lines,
)
from edge.ledger.writer import SegmentWriter
from edge.ports import Clock
from edge.types import Micros

_logger = logging.getLogger(__name__)
T = TypeVar("T")
# What one fsync may cover. More would make the first waiter wait for the last one's bytes.
_GROUP_PLANS = 512
_GROUP_BYTES = 4 * 1024 * 1024


class Allocator:
    """Gives a plan the numbers of its events, and the time they are logged at."""

    def __init__(self, last_n: int, at: Micros) -> None:
        self.last_n = last_n
        self.at = at

    def next(self) -> int:
        self.last_n += 1
        return self.last_n


Plan = Callable[[Allocator], tuple[Sequence[Event], T]]


@dataclass(frozen=True, slots=True)
class LogStats:
    bytes: int
    segments: int
    last_n: int
    damaged_lines: int


@dataclass(slots=True)
class _Appended:
    """A plan that has run: its lines wait for the disk, its future for its lines."""

    future: Future[Any]
    events: tuple[Event, ...]
    lines: list[bytes]
    result: Any


@dataclass(frozen=True, slots=True)
class _Job:
    future: Future[Any]
    plan: Plan[Any] | None
    work: Callable[[], Any] | None


class Log:
    """JSON-lines segments in `directory`, with one thread that writes them.

    `on_durable` gets the events of each commit, in order, on that thread: it must only hand them on. Opening repairs
    what a crash left: a last line without its newline is cut off, since nobody was told that it is stored. A whole
    line with a wrong checksum is never dropped; it is counted and passed over. Only the last segment is read.

    Raises ReadOnly when repairs are needed and the directory cannot be written; with `read_only` nothing is written,
    and a torn tail is only passed over. `on_damage` gets (file name, line number) of each damaged line met.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock,
        segment_bytes: int,
        on_durable: Callable[[list[Event]], None],
        read_only: bool = False,
        on_damage: Callable[[str, int], None] | None = None,
    ) -> None:
        self.directory = directory
        self.cold = ColdFiles(directory / "cold")
        self._clock = clock
        self._on_durable = on_durable
        self._read_only = read_only
        self._on_damage = on_damage
        self._damaged: dict[str, set[int]] = {}
        self._last_n = 0
        self._writer = SegmentWriter(directory, clock, segment_bytes)
        self._open()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ledger-log", daemon=True)
        self._thread.start()

    @property
    def last_n(self) -> int:
        """The number of the last durable event; 0 for none."""
        return self._last_n

    def submit(self, plan: Plan[T]) -> Future[tuple[tuple[Event, ...], T]]:
        """Runs the plan on the log's thread, appends its events; the future resolves when they are on the disk.

        Plans run one after another in the order of submitting, each to its end, so a check for duplicates inside a
        plan has no race; what an earlier plan decided may be undone only by a failure that also fails every plan
        whose future is not resolved yet. The future fails with DiskFull, ReadOnly or Unavailable, then nothing of
        the plan is kept; or with what the plan raised, which concerns no other plan. Raises Unavailable once closed.
        """
        return self._put(plan, None)

    def erase(self, turns: Mapping[int, Erased]) -> int:
        """Replaces the lines of these turns and returns how many segments were rewritten; blocks until it is durable.

        May be repeated: a line already replaced costs a reading, no writing. Each segment is a job of its own, so
        that appends go on between them. Raises DiskFull where there is no room for the rewritten copy of a segment;
        the segments before it are done, and the same call does the rest later.
        """
        return self.replace(turns)

    def replace(self, turns: Mapping[int, Erased | TurnSaid]) -> int:
        """The same with what is to stand in the place of each turn."""
        if not turns:
            return 0
        count = 0
        segments = list_segments(self.directory)
        firsts = [first_number(segment) or 0 for segment in segments]
        for place, segment in enumerate(segments):
            following = next((n for n in firsts[place + 1 :] if n), None)
            if any(n >= firsts[place] and (following is None or n < following) for n in turns):
                count += self._put(None, partial(self._rewrite, segment, turns)).result()
        return count

    def lines(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """The whole, sound lines of these events, as far as they are durable. Safe while the log is written."""
        wanted = {n for n in numbers if n <= self._last_n}
        found: dict[int, bytes] = {}
        segments = list_segments(self.directory)
        firsts = [first_number(segment) or 0 for segment in segments]
        for place, segment in enumerate(segments):
            following = next((n for n in firsts[place + 1 :] if n), None)
            if not any(n >= firsts[place] and (following is None or n < following) for n in wanted):
                continue
            with contextlib.suppress(FileNotFoundError), segment.path.open("rb") as file:
                for raw in file:
                    n = number(raw)
                    if n in wanted and n is not None and sound(raw):
                        found[n] = raw
        return found

    def replay(self, after_n: int = 0) -> Iterator[Event]:
        """The events after `after_n` that are durable now, oldest first. Safe while the log is written."""
        last_n = self._last_n
        segments = list_segments(self.directory)
        firsts = [first_number(segment) for segment in segments]
        for place, segment in enumerate(segments):
            following = next((n for n in firsts[place + 1 :] if n is not None), None)
            if following is not None and following <= after_n + 1:
                continue
            try:
                for line in read_lines(segment):
                    if line.event is None:
                        self._note_damage(segment, line)
                    elif line.n > last_n:
                        return
                    elif line.n > after_n:
                        yield line.event
            except FileNotFoundError:
                # A segment whose first write failed was taken back meanwhile: it held nothing durable.
                continue

    def stats(self) -> LogStats:
        segments = list_segments(self.directory)
        total = 0
        for segment in segments:
            with contextlib.suppress(FileNotFoundError):
                total += segment.path.stat().st_size
        return LogStats(total, len(segments), self._last_n, sum(map(len, list(self._damaged.values()))))

    def close(self) -> None:
        """Finishes what was submitted. May be called again."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # Opening.

    def _open(self) -> None:
        try:
            if not self._read_only:
                make_directory(self.directory)
                for leftover in self.directory.glob("*.tmp"):
                    leftover.unlink()
                self.cold.tidy()
            segments = list_segments(self.directory)
            if segments and not self._read_only:
                self._writer.adopt(segments[-1])
        except OSError as error:
            raise refusal(error, self.directory) from error
        # Behind the last sound line each damaged one had a number too, which views may know: never give it again.
        unknown = 0
        for segment in reversed(segments):
            last = None
            for line in read_lines(segment):
                if line.event is None:
                    self._note_damage(segment, line)
                last = line.n if line.event or last is not None else None
                unknown += last is None
            if last is not None:
                self._last_n = last + unknown
                return
        self._last_n = unknown

    def _note_damage(self, segment: Segment, line: Line) -> None:
        rows = self._damaged.setdefault(segment.path.name, set())
        if line.row not in rows:
            rows.add(line.row)
            _logger.warning(
                "line %d of %s does not match its checksum; it stays there and is passed over", line.row, segment.path
            )
            if self._on_damage:
                self._on_damage(segment.path.name, line.row)

    # The log's thread.

    def _put(self, plan: Plan[Any] | None, work: Callable[[], Any] | None) -> Future[Any]:
        future: Future[Any] = Future()
        with self._gate:
            if self._closed:
                raise Unavailable("the space is closed: the box is stopping, or it was deleted", retry_after=5.0)
            self._queue.put(_Job(future, plan, work))
        return future

    def _run(self) -> None:
        waiting: deque[_Job] = deque()
        open_ = True
        while open_ or waiting:
            try:
                while open_ and len(waiting) < _GROUP_PLANS:
                    job = self._queue.get(block=not waiting)
                    if job is None:
                        open_ = False
                    else:
                        waiting.append(job)
            except Empty:
                pass
            if waiting and waiting[0].work:
                self._work(waiting.popleft())
            elif waiting:
                self._append(waiting)
        self._writer.close()

    def _work(self, job: _Job) -> None:
        if job.work is None or not job.future.set_running_or_notify_cancel():
            return
        try:
            result = job.work()
        except OSError as error:
            job.future.set_exception(refusal(error, self.directory))
        except BaseException as error:  # noqa: BLE001  # it belongs to the waiter; the thread must live on
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    def _append(self, waiting: deque[_Job]) -> None:
        """Commits the plans at the head of the queue, as many as go into one group."""
        allocator = Allocator(self._last_n, self._clock.now())
        group: list[_Appended] = []
        size = 0
        while waiting and waiting[0].plan and size < _GROUP_BYTES:
            job = waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                done = self._plan(job, allocator)
                if done:
                    group.append(done)
                    size += sum(map(len, done.lines))
        lines = [line for done in group for line in done.lines]
        if lines:
            try:
                self._write(lines)
            except (OSError, EdgeError) as error:
                failure = refusal(error, self.directory) if isinstance(error, OSError) else error
                _logger.warning("%s", failure.message)
                for done in group:
                    done.future.set_exception(failure)
                return
            self._last_n = allocator.last_n
            self._tell([event for done in group for event in done.events])
        for done in group:
            done.future.set_result((done.events, done.result))

    def _plan(self, job: _Job, allocator: Allocator) -> _Appended | None:
        assert job.plan is not None
        before = allocator.last_n
        try:
            events, result = job.plan(allocator)
            lines = [encode(event) for event in events]
            if [event.n for event in events] != list(range(before + 1, allocator.last_n + 1)):
                raise ValueError("a plan must use each number it took, once and in order")
        except BaseException as error:  # noqa: BLE001  # it belongs to this plan's waiter; its neighbours go on
            allocator.last_n = before
            job.future.set_exception(error)
            return None
        return _Appended(job.future, tuple(events), lines, result)

    def _tell(self, events: list[Event]) -> None:
        try:
            self._on_durable(events)
        except Exception as error:  # noqa: BLE001  # the events are durable whatever the listener does; a restart replays them
            _logger.error(
                "the listener of the log failed with %s; a restart replays what it missed", type(error).__name__
            )

    def _write(self, lines: Sequence[bytes]) -> None:
        self._check_writable()
        self._writer.append(lines)

    def _rewrite(self, segment: Segment, turns: Mapping[int, Erased | TurnSaid]) -> int:
        self._check_writable()
        return int(self._writer.replace(segment, turns))

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnly(f"{self.directory} was opened for reading only; make it writable and start the box again")
