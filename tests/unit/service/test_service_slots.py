"""Recalls in flight: a slot is taken for as long as somebody waits, and not a moment longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from edge.config import Config, Limits
from edge.errors import Exhausted, InvalidArgument
from edge.service.memory import MemoryService
from edge.types import Answer, Depth, Question
from edge.v1 import memory_pb2

REQUEST = memory_pb2.RecallRequest(query="问")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> int:
        return 1_750_000_000_000_000

    def monotonic(self) -> float:
        return self.seconds


class Spaces:
    """No space at all: what is looked at here comes before any."""

    def all(self) -> list[Any]:
        return []

    def names(self) -> list[str]:
        return []


class Recall:
    """Answers when the test opens the gate; asked questions are kept."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked: list[Question] = []

    def recall(self, question: Question, _: Mapping[str, Any]) -> Answer:
        self.asked.append(question)
        assert self.gate.wait(10)
        return Answer((), Depth.SHALLOW)


class Context:
    def __init__(self, remaining: float | None = None) -> None:
        self._remaining = remaining

    def time_remaining(self) -> float | None:
        return self._remaining


@pytest.fixture
def recall() -> Recall:
    return Recall()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def service(recall: Recall, clock: Clock) -> AsyncIterator[MemoryService]:
    config = Config(limits=Limits(recalls_in_flight=2))
    with ThreadPoolExecutor(1) as threads:
        yield MemoryService(Spaces(), recall, config, clock, threads, threads)  # type: ignore[arg-type]  # all of them that a recall without spaces touches
        recall.gate.set()


async def waiting(service: MemoryService) -> asyncio.Task[memory_pb2.RecallResponse]:
    task = asyncio.create_task(service.Recall(REQUEST, Context()))
    await asyncio.sleep(0)
    return task


async def test_more_recalls_than_slots_are_told_when_to_come_again(service: MemoryService, recall: Recall) -> None:
    running = [await waiting(service) for _ in range(2)]
    with pytest.raises(Exhausted) as caught:
        await service.Recall(REQUEST, Context())
    assert caught.value.retry_after
    recall.gate.set()
    await asyncio.gather(*running)
    await service.Recall(REQUEST, Context())


async def test_the_time_to_come_again_is_what_recalls_take_just_now(
    service: MemoryService, recall: Recall, clock: Clock
) -> None:
    recall.gate.set()
    for _ in range(20):
        running = await waiting(service)
        clock.seconds += 4
        await running
    recall.gate.clear()
    slow = [await waiting(service) for _ in range(2)]
    with pytest.raises(Exhausted) as caught:
        await service.Recall(REQUEST, Context())
    assert caught.value.retry_after == pytest.approx(4, rel=0.1)
    recall.gate.set()
    await asyncio.gather(*slow)


@pytest.mark.parametrize("which", [0, 1], ids=["one that is looked at", "one that waits for a thread"])
async def test_a_cancelled_recall_frees_its_slot(service: MemoryService, recall: Recall, which: int) -> None:
    running = [await waiting(service) for _ in range(2)]
    running[which].cancel()
    await asyncio.wait([running[which]])
    third = await waiting(service)
    assert not third.done()
    with pytest.raises(Exhausted):
        await service.Recall(REQUEST, Context())
    recall.gate.set()
    await third


async def test_a_recall_that_was_cancelled_before_its_turn_is_never_looked_at(
    service: MemoryService, recall: Recall
) -> None:
    first, second = [await waiting(service) for _ in range(2)]
    second.cancel()
    await asyncio.wait([second])
    recall.gate.set()
    await first
    await service.Recall(REQUEST, Context())
    assert len(recall.asked) == 2


async def test_a_bad_question_takes_no_slot(service: MemoryService, recall: Recall) -> None:
    for _ in range(5):
        with pytest.raises(InvalidArgument):
            await service.Recall(memory_pb2.RecallRequest(query=""), Context())
    recall.gate.set()
    await service.Recall(REQUEST, Context())


async def test_the_caller_s_deadline_reaches_the_recall(service: MemoryService, recall: Recall) -> None:
    recall.gate.set()
    await service.Recall(REQUEST, Context(None))
    await service.Recall(REQUEST, Context(5.0))
    without, with_one = recall.asked
    assert without.deadline is None
    assert with_one.deadline is not None
