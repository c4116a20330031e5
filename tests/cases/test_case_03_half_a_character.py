"""Case 3: half of a surrogate pair in a text field (openai/tiktoken#82, protocolbuffers/protobuf#4970).

Python cannot send it, so the bytes are made by hand. Its own call ends cleanly; every other goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
import pytest
from grpc_calls import SECONDS, Wire, message, refused, turn

from edge.v1 import memory_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
HALF = b"\xed\xa0\xbd"


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field of the wire."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


BAD_TURN = field(1, b"test") + field(2, b"s") + field(4, b"user") + field(6, HALF)
UNARY = {
    "Recall": field(1, HALF),
    "Remember": field(1, b"a" + HALF),
    "GetMemory": field(1, HALF),
    "ListMemories": field(1, HALF),
    "Forget": field(1, HALF),
}


@pytest.mark.parametrize("method", UNARY)
def test_half_a_character_is_a_clean_error_of_its_call(wire: Wire, method: str) -> None:
    with refused(INVALID):
        wire.channel.unary_unary(f"/edge.v1.MemoryService/{method}")(UNARY[method], timeout=SECONDS)


@pytest.mark.parametrize(
    ("method", "raw"), [("Ingest", field(2, BAD_TURN)), ("Ingest", field(1, HALF)), ("RecallStream", field(1, HALF))]
)
def test_other_streams_stay_up_when_one_brings_half_a_character(
    wire: Wire, space: str, method: str, raw: bytes
) -> None:
    wire.say("在场的话", space=space)
    go_on = threading.Event()

    def turns() -> Iterator[memory_pb2.IngestRequest]:
        yield message(turn("之前", space=space))
        go_on.wait(SECONDS)
        yield message(turn("之后", space=space))

    def queries() -> Iterator[memory_pb2.RecallRequest]:
        yield memory_pb2.RecallRequest(query="在场", spaces=[space])
        go_on.wait(SECONDS)
        yield memory_pb2.RecallRequest(query="在场", spaces=[space])

    ingests = wire.memory.Ingest(turns(), timeout=SECONDS)
    recalls = wire.memory.RecallStream(queries(), timeout=SECONDS)
    next(ingests), next(recalls)
    with refused(INVALID):
        list(wire.channel.stream_stream(f"/edge.v1.MemoryService/{method}")(iter([raw]), timeout=SECONDS))
    go_on.set()
    assert len(list(ingests)) == 3
    assert len(list(recalls)) == 1
    assert {memory.text for memory in wire.listed(space)} == {"在场的话", "之前", "之后"}


def test_what_came_before_half_a_character_is_acknowledged(wire: Wire, space: str) -> None:
    good = message(turn("门关好了", space=space), ref="good").SerializeToString()
    call = wire.channel.stream_stream("/edge.v1.MemoryService/Ingest")(
        iter([good, field(2, BAD_TURN)]), timeout=SECONDS
    )
    answers = [memory_pb2.IngestResponse.FromString(next(call)) for _ in range(2)]
    assert [answer.client_ref for answer in answers] == ["good", "good"]
    with refused(INVALID):
        next(call)
