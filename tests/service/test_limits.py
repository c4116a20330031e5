"""What is too much is refused by name before it costs anything, and the box goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grpc
import msgpack
import pytest
from grpc_calls import SECONDS, IngestState, Wire, field_of, message, reason_of, refused, retry_of, turn
from grpc_status import rpc_status

from edge.v1 import appliance_pb2, memory_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
CONFIG = """
[limits]
streams = 3
spaces = 2
text_bytes = 100
tags = 2
turns_per_message = 4
message_bytes = 20_000
stream_window = 8
inflight_bytes = 2_000
top_k = 10
page_size = 7
"""


@pytest.fixture(scope="module")
def small(start_lasting_box: BoxFactory, tmp_path_factory: pytest.TempPathFactory) -> Wire:
    config = tmp_path_factory.mktemp("small") / "config.toml"
    config.write_text(CONFIG)
    return Wire(start_lasting_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(config)).address)


def test_every_limit_may_be_configured(small: Wire) -> None:
    for limit, fields in (("top_k", {"top_k": 11}), ("filter.tags", {"filter": {"tags": ["a", "b", "c"]}})):
        with refused(INVALID, limit):
            small.recall("问", **fields)
    with refused(INVALID, "page_size"):
        small.listed("public", page_size=8)
    with refused(INVALID, "turns"):
        small.ingest(*(turn("五", seq=seq) for seq in range(5)))
    long, tagged = small.ingest(turn("长" * 34), turn("签", tags=["a", "b", "c"]))[0]
    assert (field_of(long.error), field_of(tagged.error)) == ("text", "tags")


def idle(ended: threading.Event) -> Iterator[Any]:
    ended.wait(SECONDS)
    yield from ()


def test_streams_over_the_limit_are_refused_until_one_ends(small: Wire) -> None:
    ended = threading.Event()
    recalls = small.memory.RecallStream(idle(ended))
    ingests = small.memory.Ingest(idle(ended))
    watch = small.appliance.WatchStatus(appliance_pb2.WatchStatusRequest())
    while small.status().streams < 3:
        pass
    for method in (small.memory.RecallStream, small.memory.Ingest):
        with pytest.raises(grpc.RpcError) as caught:
            next(method(iter([])))
        assert caught.value.code() is EXHAUSTED
        status = rpc_status.from_call(caught.value)
        assert status is not None
        assert retry_of(status) > 0
    # Calls that are no streams go on.
    assert small.recall("还在吗") is not None

    watch.cancel()
    while small.status().streams > 2:
        pass
    assert small.answers() == []
    ended.set()
    assert (list(recalls), list(ingests)) == ([], [])


def test_spaces_over_the_limit_are_refused_and_their_neighbours_go_on(small: Wire) -> None:
    assert small.say("第二个空间", space="work")
    first, _ = small.ingest(turn("太多", space="private/third"), turn("还行", space="work"))
    assert [result.state for result in first] == [IngestState.INGEST_STATE_REJECTED, IngestState.INGEST_STATE_STORED]
    assert (field_of(first[0].error), reason_of(first[0].error)) == ("space", "TOO_MANY_SPACES")
    with refused(EXHAUSTED, "space"):
        small.memory.Remember(memory_pb2.RememberRequest(text="太多", space="private/third"), timeout=SECONDS)


def test_a_message_over_the_limit_ends_its_call_alone(small: Wire) -> None:
    with refused(EXHAUSTED):
        small.memory.Recall(memory_pb2.RecallRequest(query="q" * 21_000), timeout=SECONDS)
    with refused(EXHAUSTED):
        small.ingest(turn("q" * 21_000))
    assert small.status().ready


def test_more_than_fits_at_once_waits_its_turn(small: Wire) -> None:
    """Messages of more bytes than may be under way, and more turns than the window holds: all are taken in order."""
    batches = [[turn(f"第{batch}批第{n}句" + "字" * 20, session=f"b{batch}", seq=n) for n in range(4)]
               for batch in range(40)]  # fmt: skip
    messages = [message(*batch, ref=str(number)) for number, batch in enumerate(batches)]
    responses = small.answers(*messages)
    assert len(responses) == 80
    firsts = list(dict.fromkeys(response.client_ref for response in responses))
    assert firsts == [str(batch) for batch in range(40)]


def test_one_message_larger_than_all_that_may_be_under_way_passes_alone(small: Wire) -> None:
    attributes = msgpack.packb({"a": "b" * 3000})
    first, _ = small.ingest(*(turn("大", seq=seq, session="large", attributes=attributes) for seq in range(4)))
    assert [result.state for result in first] == [IngestState.INGEST_STATE_STORED] * 4
