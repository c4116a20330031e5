from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from edge.index.rwlock import ReadWriteLock


class Holder:
    """A thread that asks for the lock at once, and holds it until told."""

    def __init__(self, side: Callable[[], AbstractContextManager[None]]) -> None:
        self.has_it = threading.Event()
        self.release = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(side,))
        self.thread.start()

    def _run(self, side: Callable[[], AbstractContextManager[None]]) -> None:
        with side():
            self.has_it.set()
            assert self.release.wait(60)

    def end(self) -> None:
        self.release.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def waiting(lock: ReadWriteLock, readers: int, writers: int) -> None:
    """Returns once that many wait; the other threads get there without any timing."""
    while lock.waiting != (readers, writers):
        threading.Event().wait(0)


def test_readers_share_it() -> None:
    lock = ReadWriteLock()
    holders = [Holder(lock.read), Holder(lock.read)]
    assert all(h.has_it.wait(60) for h in holders)
    for holder in holders:
        holder.end()


def test_a_writer_waits_for_the_readers_inside_and_is_then_alone() -> None:
    lock = ReadWriteLock()
    reader = Holder(lock.read)
    assert reader.has_it.wait(60)
    writer = Holder(lock.write)
    waiting(lock, 0, 1)
    assert not writer.has_it.is_set()

    reader.end()
    assert writer.has_it.wait(60)

    second, late = Holder(lock.write), Holder(lock.read)
    waiting(lock, 1, 1)
    assert not second.has_it.is_set()
    assert not late.has_it.is_set()
    for holder in (writer, late, second):
        holder.end()


def test_a_writer_is_not_starved_by_readers_that_keep_coming() -> None:
    lock = ReadWriteLock()
    first = Holder(lock.read)
    assert first.has_it.wait(60)
    writer = Holder(lock.write)
    waiting(lock, 0, 1)

    late = Holder(lock.read)
    waiting(lock, 1, 1)
    first.end()

    assert writer.has_it.wait(60)
    assert not late.has_it.is_set()
    writer.end()
    assert late.has_it.wait(60)
    late.end()


def test_a_reader_waits_for_one_writer_however_many_are_queued() -> None:
    lock = ReadWriteLock()
    writers = [Holder(lock.write)]
    assert writers[0].has_it.wait(60)
    writers += [Holder(lock.write), Holder(lock.write)]
    waiting(lock, 0, 2)
    reader = Holder(lock.read)
    waiting(lock, 1, 2)

    writers[0].end()

    assert reader.has_it.wait(60)
    assert not any(writer.has_it.is_set() for writer in writers[1:])
    reader.end()
    for writer in writers[1:]:
        writer.release.set()
    for writer in writers[1:]:
        writer.end()


def test_it_is_let_go_when_the_holder_fails() -> None:
    lock = ReadWriteLock()
    with pytest.raises(ValueError, match="inside"), lock.read():
        raise ValueError("inside")
    with pytest.raises(ValueError, match="inside"), lock.write():
        raise ValueError("inside")

    with lock.write():
        pass


def test_a_writer_that_is_interrupted_while_it_waits_lets_the_readers_behind_it_go_on() -> None:
    lock = ReadWriteLock()
    reader = Holder(lock.read)
    assert reader.has_it.wait(60)
    original = lock._changed.wait
    late: list[Holder] = []

    def interrupted(timeout: float | None = None) -> bool:
        lock._changed.wait = original  # type: ignore[method-assign]  # only the writer's wait is interrupted
        late.append(Holder(lock.read))
        with released(lock._changed):
            waiting(lock, 1, 1)
        raise KeyboardInterrupt

    lock._changed.wait = interrupted  # type: ignore[method-assign]  # stands for a signal during the wait
    with pytest.raises(KeyboardInterrupt), lock.write():
        raise AssertionError("the reader still holds it")

    assert late[0].has_it.wait(60)
    late[0].end()
    reader.end()
    with lock.write():
        pass


@contextmanager
def released(condition: threading.Condition) -> Iterator[None]:
    condition.release()
    try:
        yield
    finally:
        condition.acquire()
