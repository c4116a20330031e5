from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted_box import ScriptedBox, rich, serving

from edge.client import AsyncClient
from edge.errors import DeadlineExceeded, InvalidArgument, Unavailable


async def test_many_recalls_share_one_stream(client: AsyncClient, box: ScriptedBox) -> None:
    answers = await asyncio.gather(*(client.recall(f"q{number}") for number in range(50)))
    assert [answer.context for answer in answers] == [f"asked q{number}" for number in range(50)]
    assert box.calls == ["RecallStream"]
    assert box.questions == [f"q{number}" for number in range(50)]


async def test_answers_come_in_the_order_of_asking(client: AsyncClient) -> None:
    order: list[int] = []

    async def ask(number: int) -> None:
        await client.recall(f"q{number}")
        order.append(number)

    await asyncio.gather(*map(ask, range(30)))
    assert order == list(range(30))


async def test_a_refused_question_gets_its_error_and_those_behind_it_their_answers(
    client: AsyncClient, box: ScriptedBox
) -> None:
    queries = ["a", " ", "b", "", "c"]
    answers = await asyncio.gather(*map(client.recall, queries), return_exceptions=True)
    for query, answer in zip(queries, answers, strict=True):
        if query.strip():
            assert not isinstance(answer, BaseException)
            assert answer.context == f"asked {query}"
        else:
            assert isinstance(answer, InvalidArgument)
            assert answer.field == "query"


async def test_a_broken_stream_falls_back_to_single_calls_and_then_streams_again(
    client: AsyncClient, box: ScriptedBox
) -> None:
    box.break_at = ["q3"]
    answers = await asyncio.gather(*(client.recall(f"q{number}") for number in range(6)))
    assert [answer.context for answer in answers] == [f"asked q{number}" for number in range(6)]
    assert "Recall" in box.calls
    box.calls.clear()
    assert (await client.recall("later")).context == "asked later"
    assert box.calls == ["RecallStream"]


async def test_a_recall_with_a_deadline_goes_alone_so_that_the_box_knows_it(
    client: AsyncClient, box: ScriptedBox
) -> None:
    await client.recall("q", timeout=5)
    assert box.calls == ["Recall"]


async def test_a_recall_that_takes_too_long_ends_and_the_others_go_on(box: ScriptedBox, socket: Path) -> None:
    async with serving(box, socket) as address, AsyncClient.connect(address, timeout=0.05) as client:
        box.silent.clear()
        with pytest.raises(DeadlineExceeded):
            await client.recall("slow")
        box.silent.set()
        assert (await client.recall("next", timeout=10)).context == "asked next"


async def test_an_asker_who_leaves_takes_nobody_along(client: AsyncClient, box: ScriptedBox) -> None:
    await client.recall("warm")
    box.silent.clear()
    leaver = asyncio.create_task(client.recall("leaver"))
    stayer = asyncio.create_task(client.recall("stayer"))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    box.silent.set()
    assert (await stayer).context == "asked stayer"


async def test_an_overloaded_box_is_asked_again_after_the_time_it_names(client: AsyncClient, box: ScriptedBox) -> None:
    box.turn_away = [rich("RESOURCE_EXHAUSTED", "busy", retry_after=0.001)] * 2
    assert (await client.recall("q", timeout=10)).context == "asked q"
    assert box.calls == ["Recall"] * 3


async def test_a_box_that_was_never_there_is_reported_at_once(socket: Path) -> None:
    async with AsyncClient.connect(f"unix:{socket}") as client:
        with pytest.raises(Unavailable, match="edge serve") as caught:
            await client.recall("q")
    assert str(socket) in caught.value.message


async def test_recalls_survive_a_restart_of_the_box(box: ScriptedBox, socket: Path) -> None:
    async with AsyncClient.connect(f"unix:{socket}") as client:
        async with serving(box, socket):
            await client.recall("before")
        asked = asyncio.create_task(client.recall("between"))
        async with serving(box, socket):
            assert (await asked).context == "asked between"


async def test_closing_the_client_answers_who_still_waits(box: ScriptedBox, socket: Path) -> None:
    async with serving(box, socket) as address:
        client = AsyncClient.connect(address)
        await client.recall("warm")
        box.silent.clear()
        asked = asyncio.create_task(client.recall("q"))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Unavailable):
            await asked
        box.silent.set()
