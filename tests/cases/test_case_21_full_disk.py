"""Case 21 (chroma-core/chroma#1693, ohdearquant/khive#1602): writes on a full disk are refused, recalls go on, and
once there is room writes go on without a restart.

The other half, a data directory that is read-only, is tests/service/test_read_only.py.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import grpc
import pytest
from conftest import Box, BoxFactory
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from small_disk import SmallDisk, small_disk
from traces import found, written

from edge.client import Client, Ingested, IngestState
from edge.errors import DiskFull, Unavailable
from edge.v1 import memory_pb2, memory_pb2_grpc, types_pb2

PATIENCE = 30.0
MEGABYTE = 1 << 20
QUESTION = "备用钥匙在哪里"
ANSWER = "备用钥匙在阳台第三个花盆下面。"
VICTIM = "这一句在磁盘满了的时候也要忘掉。"


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with small_disk(20) as disk:
        yield disk


@pytest.fixture
def box(disk: SmallDisk, start_box: BoxFactory) -> Box:
    return start_box(data=disk.path / "data")


@pytest.fixture
def client(box: Box) -> Iterator[Client]:
    # What the disk refuses is to be seen, not to be tried again behind the test's back.
    with Client(box.address, patience=0.1) as client:
        yield client


def turns(session: str, count: int) -> Iterator[dict[str, object]]:
    for seq in range(count):
        text = f"{session}的第{seq}句话，" + "说的是天气很好，我们去公园散步，然后回家吃饭。" * 10
        yield {"source": "test", "session": session, "seq": seq, "text": text}


def until_refused(client: Client) -> tuple[list[Ingested], Ingested]:
    """What was acknowledged until the first refusal."""
    stored: list[Ingested] = []
    for round in range(1000):
        for result in client.ingest(turns(f"r{round}", 20), batch=10):
            if result.state is not IngestState.STORED:
                return stored, result
            stored.append(result)
    raise AssertionError("20 MB took all of it")


def until_told(client: Client) -> None:
    """What was taken last may still find a few bytes; then everything is refused, and the status says why."""
    start = time.monotonic()
    while not any(
        "new turns are refused" in warning and "free some space" in warning for warning in client.status().warnings
    ):
        assert time.monotonic() - start < PATIENCE, client.status().warnings
        time.sleep(0.05)


def until_stored(client: Client, session: str) -> float:
    """Says it until it is taken; in how many seconds it was found then."""
    start = time.monotonic()
    while True:
        (result,) = client.ingest(turns(session, 1), wait="searchable")
        if result.state is IngestState.SEARCHABLE:
            return time.monotonic() - start
        assert isinstance(result.error, (DiskFull, Unavailable)) and time.monotonic() - start < PATIENCE, result
        time.sleep(0.1)


def test_a_full_disk_refuses_writes_clearly_recalls_go_on_and_with_room_again_so_do_writes(
    box: Box, disk: SmallDisk, client: Client
) -> None:
    said = [("key", ANSWER), ("victim", VICTIM)]
    turns = [{"source": "test", "session": session, "seq": 1, "text": text} for session, text in said]
    first, victim = client.ingest(turns, wait="searchable")
    disk.fill(leaving=4 * MEGABYTE)

    stored, refused = until_refused(client)
    disk.fill()
    until_told(client)
    assert len(stored) > 100

    assert refused.state is IngestState.REJECTED and refused.memory_ids == ()
    assert isinstance(refused.error, DiskFull) and refused.error.reason == "DISK_FULL"
    assert refused.error.retry_after and refused.error.retry_after > 0
    with pytest.raises(DiskFull) as full:
        client.remember("再说一句。")
    assert "free some space" in full.value.message and full.value.retry_after
    # The few bytes that say what is to be forgotten may find room; what is to be written anew does not.
    with pytest.raises(DiskFull):
        client.forget(victim.memory_ids)
    for _ in range(20):
        assert client.recall(QUESTION).hits[0].memory.text == ANSWER
    assert client.get(first.memory_ids[0]).text == ANSWER

    disk.free()

    until_stored(client, "after")
    everything = [id for result in [first, *stored] for id in result.memory_ids]
    assert all(client.get(id).id == id for id in everything)
    while client.status().spaces[0].pending:
        time.sleep(0.1)
    assert not any("refused:" in warning for warning in client.status().warnings)
    client.forget(sessions=["victim"])
    assert found(box.data, written(VICTIM)) == []
    # Of what was refused nothing came through the back door: what there is was acknowledged.
    assert sorted(memory.id for memory in client.list(page_size=1000) if memory.session != "after") == sorted(
        everything
    )
    assert box.log.count("\n") < 200, "one full disk is no reason to fill another with messages"
    box.stop()
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", "verify", "--data", str(box.data)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_on_the_wire_a_refused_turn_says_resource_exhausted_and_when_to_try_again(
    box: Box, disk: SmallDisk, client: Client
) -> None:
    disk.fill()
    until_refused(client)
    until_told(client)

    with grpc.insecure_channel(box.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        turn = types_pb2.Turn(source="test", session="wire", seq=1, role="user", text="x" * 5000)
        request = memory_pb2.IngestRequest(client_ref="a", turns=[turn])
        (result,) = next(iter(stub.Ingest(iter([request]), timeout=30))).results
        with pytest.raises(grpc.RpcError) as failed:
            stub.Remember(memory_pb2.RememberRequest(text="x" * 5000), timeout=30)

    assert result.state == memory_pb2.INGEST_STATE_REJECTED
    assert result.error.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert _details(result.error)["reason"] == "DISK_FULL"
    assert _details(result.error)["retry"] != Duration()
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def _details(status: status_pb2.Status) -> dict[str, object]:
    found: dict[str, object] = {}
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(info):
            found["reason"] = info.reason
        elif detail.Unpack(retry):
            found["retry"] = retry.retry_delay
    return found


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_box_stops_on_a_full_disk_and_starts_on_it_again_with_nothing_lost(
    box: Box, disk: SmallDisk, client: Client, end: str
) -> None:
    list(client.ingest([{"source": "test", "session": "key", "seq": 1, "text": ANSWER}], wait="searchable"))
    client.recall(QUESTION)
    disk.fill(leaving=4 * MEGABYTE)
    stored, _ = until_refused(client)
    disk.fill()
    until_told(client)
    if end == "stopped":
        assert box.stop() == 0
    else:
        box.kill()

    box.start()

    with Client(box.address, patience=0.1) as again:
        assert again.recall(QUESTION).hits[0].memory.text == ANSWER
        until_told(again)
        with pytest.raises(DiskFull):
            again.remember("再说一句。" * 20)
        disk.free()
        until_stored(again, "after")
        assert all(again.get(id).id == id for result in stored for id in result.memory_ids)
