"""The thread that merges: when it works, when it waits, and what it leaves for later."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from edge.errors import DiskFull
from edge.types import Memory, MemoryState
from edge.upkeep import merging
from edge.upkeep.merger import Merger

CANDIDATE = MemoryState.CANDIDATE
# Waited for only when something is broken.
CAP = 60.0


def memory(rowid: int) -> Memory:
    return Memory(
        rowid, str(rowid), "turn", CANDIDATE, "", "s", "s", rowid, "user", 0, 0, 1.0, (), 0, 0, False, 0, 1, b""
    )


class Shelf:
    """A space whose memories need no more than a look."""

    def __init__(self, name: str = "public", count: int = 3) -> None:
        self.name = name
        self.indexes: Any = {"model": None}
        self.left = {rowid: memory(rowid) for rowid in range(1, count + 1)}
        self.failure: Exception | None = None
        self.done = threading.Event()
        self.tried = threading.Event()
        self.merges: Any = self
        self.revisions: Any = self
        self.queries: Any = None

    def unlooked(self, models: Sequence[str], limit: int) -> list[Memory]:
        assert tuple(models) == ("model",)
        self.tried.set()
        if self.failure is not None:
            raise self.failure
        if not self.left:
            self.done.set()
        return list(self.left.values())[:limit]

    def note(self, looked: Mapping[int, MemoryState]) -> Future[None]:
        assert set(looked.values()) <= {CANDIDATE}
        for rowid in looked:
            del self.left[rowid]
        noted: Future[None] = Future()
        noted.set_result(None)
        return noted

    def flush_accesses(self) -> None:
        """Nothing is recalled here."""

    def check_room(self) -> None:
        """There is enough."""

    def bring_back(self) -> None:
        """Nothing was replaced here."""

    def never(self, *_: Any) -> Any:
        raise AssertionError("only a look asks")

    kept = times_said = left_candidate = brought_back = known_by_rule = never


class Device:
    def __init__(self) -> None:
        self.allowed = True
        self.asked = threading.Event()

    def __call__(self) -> bool:
        self.asked.set()
        return self.allowed


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []

    def look(space: Any, one: Memory) -> bool:
        seen.append(one.rowid)
        return False

    monkeypatch.setattr(merging, "look", look)
    return seen


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def shelves() -> list[Shelf]:
    return []


@pytest.fixture
def merger(shelves: list[Shelf], device: Device, looked: list[int]) -> Iterator[Merger]:
    merger = Merger(lambda: shelves, device)
    merger.start()
    yield merger
    merger.close()


def test_each_memory_is_looked_at_once_there_is_news_of_its_space(
    merger: Merger, shelves: list[Shelf], looked: list[int]
) -> None:
    shelves += [Shelf(count=100), Shelf("work", 2)]
    merger.wake("public")
    assert shelves[0].done.wait(CAP)
    assert looked == list(range(1, 101)) and len(shelves[1].left) == 2


def test_a_large_space_does_not_keep_the_others_waiting(
    merger: Merger, shelves: list[Shelf], looked: list[int]
) -> None:
    shelves += [Shelf(count=1000), Shelf("work", 2)]
    left: list[int] = []
    unlooked = shelves[1].unlooked

    def remember(models: Sequence[str], limit: int) -> list[Memory]:
        left.append(len(shelves[0].left))
        return unlooked(models, limit)

    shelves[1].unlooked = remember  # type: ignore[method-assign]  # a fake's
    merger.wake("public")
    merger.wake("work")
    assert shelves[1].done.wait(CAP)
    assert left[0] > 0


def test_nothing_is_done_while_the_device_has_no_room_for_it(
    merger: Merger, shelves: list[Shelf], device: Device, looked: list[int]
) -> None:
    shelves.append(Shelf())
    device.allowed = False
    merger.wake("public")
    assert device.asked.wait(CAP)
    assert not looked
    device.allowed = True
    # The first may come before it is put back.
    while not shelves[0].done.wait(0.01):
        merger.tick()
    assert looked == [1, 2, 3]


def test_what_a_full_disk_keeps_it_from_is_tried_again(merger: Merger, shelves: list[Shelf], looked: list[int]) -> None:
    shelves.append(Shelf())
    shelves[0].failure = DiskFull("no room")
    merger.wake("public")
    assert shelves[0].tried.wait(CAP)
    shelves[0].failure = None
    while not shelves[0].done.wait(0.01):
        merger.tick()
    assert looked == [1, 2, 3]


def test_spaces_that_are_closed_are_passed_over(merger: Merger, shelves: list[Shelf], looked: list[int]) -> None:
    shelves.append(Shelf())
    for name in ("private/gone", "public"):
        merger.wake(name)
    assert shelves[0].done.wait(CAP)
    assert looked == [1, 2, 3]


def test_a_tick_without_anything_that_waits_wakes_nobody(merger: Merger, device: Device) -> None:
    merger.tick()
    merger.close()
    assert not device.asked.is_set()


def test_it_ends_while_there_is_still_work(shelves: list[Shelf], device: Device, looked: list[int]) -> None:
    shelves.append(Shelf(count=100_000))
    merger = Merger(lambda: shelves, device)
    merger.start()
    merger.wake("public")
    assert shelves[0].tried.wait(CAP)
    merger.close()
    assert shelves[0].left
    # As one that was never started does.
    Merger(lambda: shelves, device).close()
