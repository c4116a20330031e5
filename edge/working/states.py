"""The states of a box: one thread owns them, and answers futures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from edge.config import Limits
from edge.errors import Exhausted, InvalidArgument, NotFound, Unavailable
from edge.ports import Clock
from edge.types import Micros
from edge.working.store import StateStore
from edge.working.values import State, Value, check_key, check_prefix, redacted

_T = TypeVar("_T")
# Calls that wait for the disk at once; each may hold a value.
_WAITING = 256
_RETRY_SECONDS = 1.0
MAX_TTL: Micros = 3653 * 86_400 * 1_000_000


def _same(text: str) -> str:
    return text


def _anywhere(_: str) -> bool:
    return True


class States:
    """Task state in the file at `path`; safe from any thread. A future that is done is on the disk.

    Its futures fail with what StateStore raises. `redact` is applied to every text that comes in before it goes to
    the disk; `exists` says whether there is a space of this name, as long as its states are wanted.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        limits: Limits,
        scrub: Callable[[int], int],
        *,
        redact: Callable[[str], str] = _same,
        exists: Callable[[str], bool] = _anywhere,
        read_only: bool = False,
    ) -> None:
        self._store = StateStore(path, clock, scrub, most=limits.states, read_only=read_only)
        self._value_bytes = limits.state_bytes
        self._redact = redact
        self._exists = exists
        self._slots = threading.BoundedSemaphore(_WAITING)
        self._thread = ThreadPoolExecutor(1, "edge-states")

    def put(
        self, space: str, key: str, value: Value, *, expected: int | None = None, ttl: Micros | None = None
    ) -> Future[State]:
        """Keeps a value: a text, or the bytes of one msgpack value that was checked to be plain.

        `expected` is the revision that must be there, 0 for none. `ttl` is in microseconds, above 0, 10 years at most.
        Raises InvalidArgument; the future RevisionConflict, Exhausted, and NotFound for a space that is being deleted.
        """
        self.check(key, value, expected, ttl)
        clean = redacted(value, self._redact)

        def put() -> State:
            # Looked at here, for deleting a space and its states takes its turn on this thread too.
            if not self._exists(space):
                raise NotFound("space: it was deleted meanwhile; put again to have it anew", field="space")
            return self._store.put(space, key, clean, expected, ttl)

        return self._submit(put)

    def check(self, key: str, value: Value, expected: int | None, ttl: Micros | None) -> None:
        """Raises what `put` raises at once, without putting anything."""
        check_key(key)
        _check_revision(expected)
        if ttl is not None and not 0 < ttl <= MAX_TTL:
            raise InvalidArgument("ttl: must be above 0 and at most 10 years", field="ttl")
        size = len(value.encode() if isinstance(value, str) else value)
        if size > self._value_bytes:
            raise InvalidArgument(f"value: has {size} bytes, more than {self._value_bytes}; keep less", field="value")

    def get(self, space: str, key: str) -> Future[State | None]:
        check_key(key)
        return self._submit(lambda: self._store.get(space, key))

    def page(
        self, space: str, prefix: str, *, after: str = "", count: int, room: int
    ) -> Future[tuple[list[State], bool]]:
        """See StateStore.page."""
        check_prefix(prefix)
        return self._submit(lambda: self._store.page(space, prefix, after, count, room))

    def delete(self, space: str, key: str, *, expected: int | None = None) -> Future[None]:
        """Done when nothing of it is left in the file; fails with NotFound or RevisionConflict."""
        check_key(key)
        _check_revision(expected)
        return self._submit(lambda: self._store.delete(space, key, expected))

    def delete_space(self, name: str) -> None:
        """Erases every state of the space; blocks until nothing of them is in the file."""
        self._alone(lambda: self._store.delete_space(name)).result()

    def tend(self) -> None:
        """Removes what has expired and erases what was overwritten, in small steps between which others are served."""
        while self._alone(self._store.tend).result():
            pass

    def close(self) -> None:
        """Finishes what was asked for. May be called again."""
        self._thread.shutdown()
        self._store.close()

    def _submit(self, work: Callable[[], _T]) -> Future[_T]:
        if not self._slots.acquire(blocking=False):
            raise Exhausted(
                f"{_WAITING} calls for task state already wait for the disk; try again in a second",
                retry_after=_RETRY_SECONDS,
            )
        try:
            future = self._alone(work)
        except BaseException:
            self._slots.release()
            raise
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def _alone(self, work: Callable[[], _T]) -> Future[_T]:
        """On the one thread, whoever else waits."""
        try:
            return self._thread.submit(work)
        except RuntimeError:
            raise Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0) from None


def _check_revision(expected: int | None) -> None:
    if expected is not None and expected < 0:
        raise InvalidArgument(
            "expected_revision: must be 0 (only if there is none) or a revision", field="expected_revision"
        )
