"""Many searches or one change at a time, and nobody waits for long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """A phase-fair read-write lock (Brandenburg and Anderson, ECRTS 2009): phases of readers and writers alternate.

    A reader that meets a waiting writer waits for that one writer and no other; a writer waits for the readers
    that were let in before it, and for writers before it, each with one phase of readers. So neither side starves.
    Not re-entrant: a thread that holds it must not ask again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._waiting_readers = 0
        self._waiting_writers = 0
        self._phase = 0

    @contextmanager
    def read(self) -> Iterator[None]:
        with self._changed:
            if self._writing or self._waiting_writers:
                self._wait_for_next_phase()
            else:
                self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._changed:
            self._waiting_writers += 1
            try:
                while self._writing or self._readers:
                    self._changed.wait()
                self._writing = True
            finally:
                self._waiting_writers -= 1
                if not (self._writing or self._waiting_writers):
                    # Interrupted while waiting (KeyboardInterrupt): those who waited for this writer go on.
                    self._next_phase()
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._next_phase()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many readers and writers wait just now."""
        with self._changed:
            return self._waiting_readers, self._waiting_writers

    def _wait_for_next_phase(self) -> None:
        mine = self._phase
        self._waiting_readers += 1
        try:
            while self._phase == mine:
                self._changed.wait()
        except BaseException:
            if self._phase == mine:
                self._waiting_readers -= 1
            else:
                self._readers -= 1
                self._changed.notify_all()
            raise

    def _next_phase(self) -> None:
        # The one who ends a phase lets the waiting readers in itself: no writer can slip in before they wake.
        self._phase += 1
        self._readers += self._waiting_readers
        self._waiting_readers = 0
        self._changed.notify_all()
