from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_box import ScriptedBox, serving

from edge.client import AsyncClient, Ingested, IngestState, turn
from edge.errors import InvalidArgument, Unavailable


def turns(count: int, **fields: Any) -> list[Any]:
    return [turn(f"sentence {seq}", source="test", session="s", seq=seq, **fields) for seq in range(count)]


async def collect(client: AsyncClient, given_turns: Any, **options: Any) -> list[Ingested]:
    return [result async for result in client.ingest(given_turns, **options)]


async def test_results_come_in_the_order_of_the_input(client: AsyncClient, box: ScriptedBox) -> None:
    results = await collect(client, turns(1000))
    assert [result.position for result in results] == list(range(1000))
    assert {result.state for result in results} == {IngestState.STORED}
    assert len(box.log) == 1000
    assert max(box.batches) <= 64


async def test_who_waits_until_searchable_hears_that(client: AsyncClient) -> None:
    results = await collect(client, turns(200), wait="searchable")
    assert {result.state for result in results} == {IngestState.SEARCHABLE}
    assert all(result.memory_ids for result in results)


async def test_who_feeds_by_hand_goes_on_when_all_that_was_sent_settles_at_once(
    client: AsyncClient, box: ScriptedBox
) -> None:
    box.second_after = 8
    session = client.open_ingest(wait="searchable", batch=1, window=1)
    results: list[Ingested] = []
    for one in turns(20):
        session.offer(one)
        if session.full:
            results += await asyncio.wait_for(session.make_room(), 30)
    session.end()
    while ready := await asyncio.wait_for(session.next_results(), 30):
        results += ready
    assert [result.position for result in results] == list(range(20))
    await client.close_ingest(session)


async def test_a_rejected_turn_stops_nothing_and_names_its_field(client: AsyncClient) -> None:
    given_turns = turns(3)
    given_turns[1].text = " "
    results = await collect(client, given_turns, wait="searchable")
    states = [result.state for result in results]
    assert states == [IngestState.SEARCHABLE, IngestState.REJECTED, IngestState.SEARCHABLE]
    assert isinstance(results[1].error, InvalidArgument)
    assert results[1].error.field == "text"


async def test_a_turn_that_is_found_by_its_words_only_is_searchable_and_not_sent_again(
    client: AsyncClient, box: ScriptedBox
) -> None:
    given_turns = turns(3)
    given_turns[1].text = "no vector for this"
    box.by_words = {"no vector for this"}
    results = await collect(client, given_turns, wait="searchable")
    assert [result.state for result in results] == [IngestState.SEARCHABLE] * 3
    assert [result.error.reason if result.error else "" for result in results] == ["", "WORDS_ONLY", ""]
    assert sum(box.batches) == 3


async def test_what_cannot_be_sent_at_all_is_rejected_in_its_place(client: AsyncClient, box: ScriptedBox) -> None:
    given_turns: list[Any] = [
        {"text": "good", "source": "a", "session": "b", "seq": 0},
        {"text": "x" * 5_000_000, "source": "a", "session": "b", "seq": 1},
        {"text": "bad", "source": "a", "session": "b", "seq": "two"},
        {"text": "no seq", "source": "a", "session": "b"},
        {"text": "good too", "source": "a", "session": "b", "seq": 4},
    ]
    results = await collect(client, given_turns, batch=2)
    assert [result.state.name for result in results] == ["STORED", "REJECTED", "REJECTED", "REJECTED", "STORED"]
    assert [result.error.field for result in results if result.error] == ["text", "seq", "seq"]
    assert len(box.log) == 2


async def test_only_rejected_turns_are_fine_too(client: AsyncClient) -> None:
    results = await collect(client, [{"nonsense": 1}] * 200)
    assert {result.state for result in results} == {IngestState.REJECTED}
    assert len(results) == 200


async def test_no_turns_give_no_results(client: AsyncClient) -> None:
    assert await collect(client, []) == []


async def test_a_slow_input_goes_out_turn_by_turn(client: AsyncClient, box: ScriptedBox) -> None:
    heard: asyncio.Queue[Ingested] = asyncio.Queue()

    async def slow() -> AsyncIterator[Any]:
        for given_turn in turns(3):
            yield given_turn
            # The next comes only once this one is acknowledged.
            await heard.get()

    async for result in client.ingest(slow()):
        heard.put_nowait(result)
    assert box.batches == [1, 1, 1]


async def test_a_broken_connection_loses_nothing_and_doubles_nothing(client: AsyncClient, box: ScriptedBox) -> None:
    box.break_ingest_after = [0, 2, 1]
    results = await collect(client, turns(500), wait="searchable", batch=16)
    assert [result.position for result in results] == list(range(500))
    assert {result.state for result in results} <= {
        IngestState.STORED,
        IngestState.SEARCHABLE,
        IngestState.DUPLICATE,
    }
    assert sorted(stored.seq for stored in box.log.values()) == list(range(500))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(0, 60),
    batch=st.integers(1, 10),
    window=st.integers(1, 4),
    breaks=st.lists(st.integers(0, 6), max_size=4),
    wait=st.sampled_from(["stored", "searchable"]),
)
def test_whatever_breaks_every_turn_is_there_once_and_answered_once(
    socket: Path, count: int, batch: int, window: int, breaks: list[int], wait: str
) -> None:
    async def run() -> None:
        box = ScriptedBox()
        box.break_ingest_after = list(breaks)
        async with serving(box, socket) as address, AsyncClient.connect(address) as client:
            results = await collect(client, turns(count), wait=wait, batch=batch, window=window)
        assert [result.position for result in results] == list(range(count))
        assert sorted(stored.seq for stored in box.log.values()) == list(range(count))

    asyncio.run(run())


async def test_ingest_survives_a_restart_of_the_box(box: ScriptedBox, socket: Path) -> None:
    first_heard, box_is_gone = asyncio.Event(), asyncio.Event()

    async def source() -> AsyncIterator[Any]:
        for given_turn in turns(300):
            if given_turn.seq == 100:
                await box_is_gone.wait()
            yield given_turn

    async def run(client: AsyncClient) -> list[Ingested]:
        results = []
        async for result in client.ingest(source(), batch=10):
            results.append(result)
            first_heard.set()
        return results

    async with AsyncClient.connect(f"unix:{socket}") as client:
        async with serving(box, socket):
            running = asyncio.create_task(run(client))
            await first_heard.wait()
        box_is_gone.set()
        async with serving(box, socket):
            results = await running
    assert [result.position for result in results] == list(range(300))
    assert len(box.log) == 300


async def test_a_box_that_was_never_there_is_reported_at_once(socket: Path) -> None:
    async with AsyncClient.connect(f"unix:{socket}") as client:
        with pytest.raises(Unavailable, match="edge serve"):
            await collect(client, turns(1000))


async def test_the_input_is_not_read_ahead_without_bound(client: AsyncClient, box: ScriptedBox) -> None:
    read = 0

    def endless() -> Iterator[Any]:
        nonlocal read
        while True:
            read += 1
            yield turn("again", source="a", session="b", seq=read)

    async for result in client.ingest(endless(), batch=4, window=2):
        # Whoever takes results slowly holds the input back: 16 messages, and one in the buffer.
        assert read <= result.position + 4 * 2 * 8 + 4 * 3
        await asyncio.sleep(0)
        if result.position == 500:
            break


async def test_an_error_of_the_input_comes_after_the_results_before_it(client: AsyncClient, box: ScriptedBox) -> None:
    def failing() -> Iterator[Any]:
        yield from turns(5)
        raise OSError("the disk is gone")

    results = []
    with pytest.raises(OSError, match="the disk is gone"):
        async for result in client.ingest(failing()):
            results.append(result)  # noqa: PERF401  # what came before the error is the point
    assert len(results) == len(box.log) == 5


@pytest.mark.parametrize("options", [{"batch": 0}, {"batch": 257}, {"window": 0}, {"wait": "never"}])
async def test_senseless_options_are_refused_by_name(client: AsyncClient, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await collect(client, [], **options)
    assert caught.value.field in options
