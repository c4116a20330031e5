from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from scripted_box import ScriptedBox, rich, serving

from edge.client import AsyncClient, Client, IngestState, turn
from edge.client.address import choose
from edge.client.backoff import Backoff
from edge.client.failures import from_rpc, from_status
from edge.errors import EdgeError, Exhausted, InvalidArgument, NotFound, ReadOnly, Unavailable


async def test_a_memory_is_remembered_got_listed_and_forgotten(client: AsyncClient) -> None:
    [memory] = await client.remember("the cat is called 豆包", tags=["cat"])
    assert (await client.get(memory.id)).text == "the cat is called 豆包"
    assert [found.id async for found in client.list()] == [memory.id]
    assert (await client.forget([memory.id], dry_run=True)).dry_run
    assert (await client.forget([memory.id])).memories == 1
    with pytest.raises(NotFound) as caught:
        await client.get(memory.id)
    assert caught.value.field == "id"


async def test_lists_go_on_from_page_to_page(client: AsyncClient, box: ScriptedBox) -> None:
    for number in range(25):
        box.add(f"m{number}")
    assert [memory.text async for memory in client.list(page_size=10)] == [f"m{number}" for number in range(25)]
    assert box.calls == ["ListMemories"] * 3


async def test_status_is_watched_until_the_box_ends_it(client: AsyncClient) -> None:
    assert (await client.status()).ready
    assert len([status async for status in client.watch_status(1.0)]) == 3


async def test_rebuild_names_what_to_rebuild(client: AsyncClient) -> None:
    assert (await client.rebuild("index")).vectors == 1
    assert (await client.rebuild("log")).vectors == 2


async def test_the_token_goes_along(box: ScriptedBox, socket: Path) -> None:
    async with serving(box, socket) as address, AsyncClient.connect(address, "s3cret") as client:
        await client.status()
    assert box.metadata["authorization"] == "Bearer s3cret"


async def test_without_a_token_none_goes_along(client: AsyncClient, box: ScriptedBox) -> None:
    await client.status()
    assert "authorization" not in box.metadata


async def test_a_write_is_not_repeated_when_it_may_have_been_done(client: AsyncClient, box: ScriptedBox) -> None:
    await client.status()
    box.turn_away = [rich("UNAVAILABLE", "gone")]
    with pytest.raises(Unavailable):
        await client.remember("once")
    assert box.calls.count("Remember") == 1


async def test_a_write_is_repeated_when_the_box_turned_it_away(client: AsyncClient, box: ScriptedBox) -> None:
    box.turn_away = [rich("RESOURCE_EXHAUSTED", "busy", retry_after=0.001)]
    assert await client.remember("once")
    assert len(box.memories) == 1


async def test_a_read_is_repeated_when_the_connection_broke(client: AsyncClient, box: ScriptedBox) -> None:
    await client.status()
    box.turn_away = [rich("UNAVAILABLE", "gone")]
    assert (await client.status()).ready


async def test_lone_surrogates_are_sent_as_replacement_characters(client: AsyncClient) -> None:
    [memory] = await client.remember("a\ud83d b\ude00 \ud83d\ude00")
    assert memory.text == "a\ufffd b\ufffd 😀"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"top_k": 10**10}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"depth": "abyss"}, "depth"),
        ({"level": "all"}, "level"),
        ({"tags": "cat"}, "filter.tags"),
        ({"spaces": [1]}, "spaces[0]"),
        ({"since": datetime(2026, 1, 1)}, "filter.since"),  # noqa: DTZ001  # its missing zone is the point
        ({"until": 2**80}, "filter.until"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_name(client: AsyncClient, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await client.recall("q", **options)
    assert caught.value.field == field


def test_a_turn_takes_a_datetime_or_microseconds() -> None:
    when = datetime(2026, 1, 1, 0, 0, 0, 500, timezone.utc)
    said = turn("x", source="a", session="b", seq=1, occurred_at=when, attributes={"k": [1, "v"]})
    same = turn("x", source="a", session="b", seq=1, occurred_at=1767225600000500, attributes={"k": [1, "v"]})
    assert said == same
    assert (said.occurred_at.seconds, said.occurred_at.nanos) == (1767225600, 500_000)


def test_errors_come_back_as_they_were_raised() -> None:
    error = from_status(rich("FAILED_PRECONDITION", "full", reason="READ_ONLY"))
    assert isinstance(error, ReadOnly)
    error = from_status(rich("RESOURCE_EXHAUSTED", "busy", reason="OVERLOADED", retry_after=0.25))
    assert isinstance(error, Exhausted)
    assert (error.reason, error.retry_after) == ("OVERLOADED", 0.25)
    error = from_status(rich("INVALID_ARGUMENT", "bad", field="text", reason="INVALID_FIELD"))
    assert isinstance(error, InvalidArgument)
    assert error.field == "text"
    assert type(from_status(rich("UNKNOWN", "?"))) is EdgeError


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**62), 0), (10**12, 999_999_999), (1, -(2**31))])
def test_no_wait_that_a_box_names_is_too_long_to_be_told(seconds: int, nanos: int) -> None:
    status = rich("UNAVAILABLE", "later")
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=seconds, nanos=nanos)))
    assert from_status(status).retry_after == max(0.0, seconds + nanos / 1e9)


@pytest.mark.parametrize(("text", "wait"), [("250", 0.25), ("9" * 5000, None), ("-1", None), ("٣", None), ("", None)])
def test_a_pushback_that_makes_no_sense_is_passed_over(text: str, wait: float | None) -> None:
    metadata = grpc.aio.Metadata(("grpc-retry-pushback-ms", text))
    failure = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), metadata, "down")
    assert from_rpc(failure, "192.0.2.7:7430").retry_after == wait


def test_waits_grow_heed_the_box_and_end_with_patience() -> None:
    now = [0.0]
    backoff = Backoff(10.0, clock=lambda: now[0], chance=lambda: 1.0)
    error = EdgeError("x")
    assert [backoff.delay(error) for _ in range(3)] == [0.1, 0.2, 0.4]
    assert backoff.delay(EdgeError("x", retry_after=3.0)) == pytest.approx(3.8)
    assert backoff.delay(EdgeError("x", retry_after=30.0)) is None
    now[0] = 9.9
    assert backoff.delay(error) is None
    backoff.progress()
    assert backoff.delay(error) == 0.1


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("box.local:7000", "box.local:7000"),
        ("box.local", "box.local:7430"),
        ("[::1]:7000", "[::1]:7000"),
        ("[::1]", "[::1]:7430"),
        ("::1", "[::1]:7430"),
        ("unix:/run/edge.sock", "unix:/run/edge.sock"),
    ],
)
def test_addresses_are_made_whole(given: str, target: str) -> None:
    assert choose(given).address == target


@pytest.mark.parametrize("given", ["unix:", ":7430", "host:port", "host:0", "host:70000", "http://host:7430", "a b:1"])
def test_senseless_addresses_are_refused(given: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        choose(given)
    assert caught.value.field == "address"


def test_the_default_address_is_the_environment_then_the_socket_then_loopback(tmp_path: Path) -> None:
    environ = {"EDGE_DATA": str(tmp_path)}
    assert choose(environ=environ).address == "127.0.0.1:7430"
    (tmp_path / "edge.sock").touch()
    assert choose(environ=environ).address == f"unix:{tmp_path}/edge.sock"
    assert choose(environ={**environ, "EDGE_ADDRESS": "there:1"}).address == "there:1"


def test_who_names_a_data_directory_never_reaches_another_box(tmp_path: Path) -> None:
    assert choose(data=tmp_path, environ={"EDGE_ADDRESS": "there:1"}).address == f"unix:{tmp_path}/edge.sock"


def test_a_token_with_a_line_break_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidArgument) as caught:
        AsyncClient.connect("h:1", "secret\nx")
    assert "secret" not in caught.value.message


# --- the sync face


@pytest.fixture
async def blocking(box: ScriptedBox, socket: Path) -> Any:
    """Runs a function with a Client on a thread, while the box serves here."""
    import asyncio

    async with serving(box, socket) as address:

        def run(work: Any) -> Any:
            with Client.connect(address, timeout=20) as client:
                return work(client)

        async def on_a_thread(work: Any) -> Any:
            return await asyncio.to_thread(run, work)

        yield on_a_thread


async def test_the_sync_face_does_what_the_async_one_does(blocking: Any, box: ScriptedBox) -> None:
    def work(client: Client) -> Any:
        [memory] = client.remember("hello")
        assert client.get(memory.id).text == "hello"
        assert client.recall("hello").hits[0].memory.id == memory.id
        assert [found.id for found in client.list()] == [memory.id]
        assert client.forget([memory.id]).memories == 1
        assert client.status().ready
        assert client.rebuild().vectors == 1
        return next(client.watch_status()).ready

    assert await blocking(work)


async def test_the_sync_face_ingests_in_order_reading_on_the_callers_thread(blocking: Any, box: ScriptedBox) -> None:
    readers = set()

    def source() -> Iterator[Any]:
        for seq in range(300):
            readers.add(threading.get_ident())
            yield turn(f"sentence {seq}", source="a", session="b", seq=seq)

    def work(client: Client) -> Any:
        return threading.get_ident(), list(client.ingest(source(), wait="searchable"))

    me, results = await blocking(work)
    assert readers == {me}
    assert [result.position for result in results] == list(range(300))
    assert {result.state for result in results} == {IngestState.SEARCHABLE}


async def test_the_sync_face_can_be_left_in_the_middle(blocking: Any) -> None:
    def work(client: Client) -> Any:
        endless = ({"text": "x", "source": "a", "session": "b", "seq": seq} for seq in range(10**9))
        return next(iter(client.ingest(endless))).position

    assert await blocking(work) == 0


async def test_many_threads_share_one_client(blocking: Any, box: ScriptedBox) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(client: Client) -> Any:
        with ThreadPoolExecutor(8) as pool:
            return [answer.context for answer in pool.map(client.recall, [f"q{number}" for number in range(64)])]

    assert await blocking(work) == [f"asked q{number}" for number in range(64)]


def test_a_closed_client_says_so(socket: Path) -> None:
    client = Client.connect(f"unix:{socket}")
    client.close()
    client.close()
    with pytest.raises(EdgeError, match="closed"):
        client.status()


def test_the_client_needs_no_model_and_no_index() -> None:
    code = (
        "import sys, edge.client, edge.client.synchronous\n"
        "print([name for name in ('numpy', 'onnxruntime', 'hnswlib', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
