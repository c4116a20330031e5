"""What one ingest stream does with its messages, and how much it lets in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from grpc_calls import field_of, message, reason_of, turn
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import DataLoss, DiskFull, EdgeError, InvalidArgument, Unavailable
from edge.futures import promise
from edge.ingest import Stored, TurnResult
from edge.service import ingesting
from edge.service.ingesting import IngestStream, Window
from edge.types import Turn, TurnState
from edge.v1 import memory_pb2, types_pb2

STORED, SEARCHABLE, REJECTED = (
    memory_pb2.INGEST_STATE_STORED,
    memory_pb2.INGEST_STATE_SEARCHABLE,
    memory_pb2.INGEST_STATE_REJECTED,
)


async def settled() -> None:
    """Everything that can go on without the outside has done so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_window_lets_in_what_fits_and_holds_up_the_rest() -> None:
    window = Window(10)
    await window.take(4)
    await window.take(6)
    waiting = asyncio.create_task(window.take(1))
    await settled()
    assert not waiting.done()
    window.give(4)
    await waiting


async def test_a_window_lets_one_oversized_portion_through_alone() -> None:
    window = Window(10)
    await window.take(1000)
    waiting = asyncio.create_task(window.take(1))
    await settled()
    assert not waiting.done()
    window.give(1000)
    await waiting
    big = asyncio.create_task(window.take(11))
    await settled()
    assert not big.done()
    window.give(1)
    await big


async def test_who_gives_up_waiting_takes_nothing() -> None:
    window = Window(10)
    await window.take(10)
    first, second = asyncio.create_task(window.take(10)), asyncio.create_task(window.take(10))
    await settled()
    first.cancel()
    await settled()
    window.give(10)
    await second
    window.give(10)
    await window.take(10)


@given(st.lists(st.integers(1, 15), max_size=30), st.integers(1, 12))
def test_whatever_is_asked_all_come_through_and_never_too_much_at_once(amounts: list[int], size: int) -> None:
    async def run() -> None:
        window = Window(size)
        inside: list[int] = []
        most = 0

        async def pass_through(amount: int) -> None:
            nonlocal most
            await window.take(amount)
            inside.append(amount)
            most = max(most, sum(inside) if len(inside) > 1 else 0)
            await asyncio.sleep(0)
            inside.remove(amount)
            window.give(amount)

        await asyncio.gather(*map(pass_through, amounts))
        assert most <= size

    asyncio.run(run())


class Desk:
    """An ingest stream whose log, database and reader are the test's own hands."""

    def __init__(self, *, bytes_window: int = 10**6, turns_window: int = 8, closed: Sequence[str] = ()) -> None:
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.stored: list[tuple[str, list[Turn], Future[Stored]]] = []
        self.answers: list[memory_pb2.IngestResponse] = []
        self.threads: list[int] = []
        self.refusal: EdgeError | None = None
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.bytes = Window(bytes_window)
        self.closed = set(closed)
        self.on_hold = ""
        stream = IngestStream(
            self._check,
            self._store,
            lambda space: space not in self.closed,
            self.bytes,
            turns_window,
            4,
            lambda: self.on_hold,
        )
        self.task = asyncio.create_task(stream.run(self._requests(), self._write))

    async def _requests(self) -> AsyncIterator[memory_pb2.IngestRequest]:
        while (item := await self.incoming.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def _check(self, wire: types_pb2.Turn) -> tuple[str, Turn]:
        if not wire.text:
            raise InvalidArgument("text: is empty", field="text")
        return wire.space or "public", Turn(wire.source, wire.session, wire.seq, wire.role, 0, wire.text)

    def _store(self, space: str, turns: Sequence[Turn]) -> Future[Stored]:
        if self.refusal is not None:
            raise self.refusal
        future: Future[Stored] = promise()
        self.stored.append((space, list(turns), future))
        self.threads.append(threading.get_ident())
        self._loop.call_soon_threadsafe(self._news.set)
        return future

    async def has_stored(self, count: int) -> None:
        while len(self.stored) < count:
            await self._news.wait()
            self._news.clear()

    async def _write(self, response: memory_pb2.IngestResponse) -> None:
        self.answers.append(response)

    def log(self, number: int = 0) -> Callable[[], Future[dict[bytes, EdgeError]]]:
        """The log answers the first open batch; gives what makes it searchable."""
        _, turns, future = self.stored.pop(number)
        searchable: Future[dict[bytes, EdgeError]] = promise()
        future.set_result(Stored(tuple(TurnResult(TurnState.STORED, b"f", ("m",)) for _ in turns), searchable))
        return lambda: searchable

    def states(self) -> list[list[int]]:
        return [[result.state for result in answer.results] for answer in self.answers]


def said(*texts: str, ref: str = "", space: str = "") -> memory_pb2.IngestRequest:
    return message(*(turn(text, space=space) for text in texts), ref=ref)


async def test_each_message_is_answered_twice_in_order() -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("a", "b", ref="1"))
    desk.incoming.put_nowait(said("c", ref="2"))
    desk.incoming.put_nowait(None)
    await settled()
    assert not desk.answers
    first, second = desk.log(), desk.log()
    await settled()
    assert [answer.client_ref for answer in desk.answers] == ["1", "2"]
    second().set_result({})
    await settled()
    first().set_result({})
    await desk.task
    # Found in another order than stored: each is told as soon as it is so.
    assert [answer.client_ref for answer in desk.answers] == ["1", "2", "2", "1"]
    assert desk.states() == [[STORED, STORED], [STORED], [SEARCHABLE], [SEARCHABLE, SEARCHABLE]]


async def test_a_bad_turn_keeps_its_place_among_its_neighbours() -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("a", "", "c"))
    desk.incoming.put_nowait(None)
    await settled()
    desk.log()().set_result({})
    await desk.task
    assert desk.states() == [[STORED, REJECTED, STORED], [SEARCHABLE, REJECTED, SEARCHABLE]]
    assert [result.index for result in desk.answers[0].results] == [0, 1, 2]
    assert field_of(desk.answers[0].results[1].error) == "text"


async def test_a_message_of_bad_turns_alone_is_answered_twice_too() -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("", ""))
    desk.incoming.put_nowait(None)
    await desk.task
    assert desk.states() == [[REJECTED, REJECTED]] * 2
    assert not desk.stored


async def test_spaces_are_stored_apart_and_answered_together() -> None:
    desk = Desk()
    request = message(turn("a", space="work"), turn("b"), turn("c", space="work"))
    desk.incoming.put_nowait(request)
    desk.incoming.put_nowait(None)
    await settled()
    assert [(space, [turn.text for turn in turns]) for space, turns, _ in desk.stored] == [
        ("work", ["a", "c"]),
        ("public", ["b"]),
    ]
    desk.log()().set_result({})
    await settled()
    assert not desk.answers
    desk.log()().set_result({})
    await desk.task
    assert desk.states() == [[STORED] * 3, [SEARCHABLE] * 3]


async def test_a_space_that_is_not_open_yet_is_opened_off_the_loop() -> None:
    desk = Desk(closed=["work"])
    desk.incoming.put_nowait(message(turn("a", space="work"), turn("b")))
    desk.incoming.put_nowait(None)
    await desk.has_stored(2)
    assert desk.threads[0] != threading.get_ident() == desk.threads[1]
    desk.log()().set_result({})
    desk.log()().set_result({})
    await desk.task


async def test_reading_stops_while_too_many_turns_are_under_way() -> None:
    desk = Desk(turns_window=4)
    for ref in "12345":
        desk.incoming.put_nowait(said("a", "b", ref=ref))
    desk.incoming.put_nowait(None)
    await settled()
    assert len(desk.stored) == 2
    found = desk.log()
    await settled()
    # Stored, but not searchable: still under way.
    assert len(desk.stored) == 1
    found().set_result({})
    await settled()
    assert len(desk.stored) == 2
    while desk.stored:
        desk.log()().set_result({})
        await settled()
    await desk.task
    assert [answer.client_ref for answer in desk.answers] == [ref for ref in "12345" for _ in range(2)]


async def test_bytes_are_given_back_when_the_log_has_answered() -> None:
    desk = Desk(bytes_window=1)
    for _ in range(3):
        desk.incoming.put_nowait(said("a"))
    desk.incoming.put_nowait(None)
    for _ in range(3):
        await settled()
        assert len(desk.stored) == 1
        desk.log()().set_result({})
    await desk.task
    await desk.bytes.take(1)


async def test_bytes_are_given_back_when_the_client_is_gone() -> None:
    desk = Desk(bytes_window=1)
    desk.incoming.put_nowait(said("a"))
    await settled()
    desk.task.cancel()
    await asyncio.wait([desk.task])
    taking = asyncio.create_task(desk.bytes.take(1))
    await settled()
    assert not taking.done()
    desk.log()
    await taking


@pytest.mark.parametrize("count", [0, 5])
async def test_a_message_of_the_wrong_size_ends_the_stream_once_the_rest_is_answered(count: int) -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("a"))
    desk.incoming.put_nowait(said(*["x"] * count))
    await settled()
    assert not desk.task.done()
    desk.log()().set_result({})
    with pytest.raises(InvalidArgument, match=r"^turns: "):
        await desk.task
    assert desk.states() == [[STORED], [SEARCHABLE]]


async def test_what_the_log_cannot_take_is_rejected_with_the_reason() -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("a"))
    desk.incoming.put_nowait(said("b"))
    await settled()
    desk.stored.pop(0)[2].set_exception(DiskFull("no room", retry_after=1.0))
    desk.log()().set_result({})
    desk.incoming.put_nowait(None)
    await desk.task
    assert sorted(desk.states()) == sorted([[REJECTED], [REJECTED], [STORED], [SEARCHABLE]])
    rejected = next(answer.results[0] for answer in desk.answers if answer.results[0].state == REJECTED)
    assert rejected.error.message == "no room"


@pytest.mark.parametrize("error", [DataLoss("the database is damaged"), RuntimeError("secret words of a memory")])
async def test_what_is_stored_and_cannot_be_found_stays_stored_and_says_why(error: Exception) -> None:
    desk = Desk()
    desk.incoming.put_nowait(said("a"))
    await settled()
    desk.log()().set_exception(error)
    await settled()
    desk.incoming.put_nowait(said("b"))
    await settled()
    desk.log()().set_result({})
    desk.incoming.put_nowait(None)
    await desk.task
    assert desk.states() == [[STORED], [STORED], [STORED], [SEARCHABLE]]
    assert not desk.answers[0].results[0].HasField("error")
    assert desk.answers[1].results[0].error.message
    assert "secret" not in desk.answers[1].results[0].error.message


async def test_a_space_that_takes_nothing_rejects_its_turns_alone() -> None:
    desk = Desk()
    desk.refusal = DiskFull("space: too many", field="space")
    desk.incoming.put_nowait(said("a"))
    await settled()
    desk.refusal = None
    desk.incoming.put_nowait(said("b"))
    await settled()
    desk.log()().set_result({})
    desk.incoming.put_nowait(None)
    await desk.task
    assert sorted(desk.states()) == sorted([[REJECTED], [REJECTED], [STORED], [SEARCHABLE]])


async def test_a_box_that_is_stopping_ends_the_stream_so_that_its_client_comes_again() -> None:
    desk = Desk()
    desk.refusal = Unavailable("stopping")
    desk.incoming.put_nowait(said("a"))
    with pytest.raises(Unavailable):
        await desk.task
    assert not desk.answers


async def test_a_reader_that_fails_ends_the_stream() -> None:
    desk = Desk()

    async def broken(_: memory_pb2.IngestResponse) -> None:
        raise ConnectionError("gone")

    stream = IngestStream(desk._check, desk._store, lambda _: True, desk.bytes, 8, 4)
    task = asyncio.create_task(stream.run(desk._requests(), broken))
    desk.task.cancel()
    desk.incoming.put_nowait(said("a"))
    await settled()
    desk.log()
    with pytest.raises(ConnectionError):
        await task


async def test_while_nothing_is_embedded_turns_are_still_stored_and_told_that_they_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingesting, "_LOOK", 0.001)
    monkeypatch.setattr(ingesting, "_ON_HOLD", 0.002)
    desk = Desk(turns_window=1)
    desk.on_hold = "91 C of 85 C"
    for text in "abc":
        desk.incoming.put_nowait(said(text))
    desk.incoming.put_nowait(None)
    for _ in range(3):
        # The window holds one turn: the next is read because the one before had its second answer.
        await desk.has_stored(1)
        desk.log()
    await desk.task
    seconds = [answer for answer in desk.answers if answer.results[0].HasField("error")]
    assert len(desk.answers) == 6
    assert [answer.results[0].state for answer in seconds] == [STORED] * 3
    assert all(reason_of(answer.results[0].error) == ingesting.EMBEDDED_LATER for answer in seconds)
    assert all("91 C of 85 C" in answer.results[0].error.message for answer in seconds)
