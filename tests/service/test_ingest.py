"""Turns in, two answers a message, whatever comes in what order."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import msgpack
import pytest
from grpc_calls import SECONDS, IngestState, Wire, at, message, refused, rejected, turn

from edge.v1 import memory_pb2, types_pb2

STORED = IngestState.INGEST_STATE_STORED
SEARCHABLE = IngestState.INGEST_STATE_SEARCHABLE
DUPLICATE = IngestState.INGEST_STATE_DUPLICATE
REJECTED = IngestState.INGEST_STATE_REJECTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT.value[0]


def test_a_message_is_answered_when_the_log_has_it_and_when_it_can_be_found(wire: Wire, space: str) -> None:
    turns = [turn(f"第{seq}句：今天去了植物园", seq=seq, session="s", space=space) for seq in range(3)]
    first, second = wire.answers(message(*turns, ref="mine"))

    assert (first.client_ref, second.client_ref) == ("mine", "mine")
    assert [(result.index, result.state) for result in first.results] == [(0, STORED), (1, STORED), (2, STORED)]
    assert [result.state for result in second.results] == [SEARCHABLE] * 3
    assert [result.memory_ids for result in first.results] == [result.memory_ids for result in second.results]
    found = [hit.memory.id for hit in wire.recall("植物园", space).hits]
    assert set(found) == {memory_id for result in second.results for memory_id in result.memory_ids}


def test_a_fingerprint_is_that_of_what_was_said_where(wire: Wire, space: str) -> None:
    said = turn("指纹", seq=7, session="s", source="claude", role="user", space=space)
    digest = hashlib.sha256()
    for part in ("claude", "s", "7", "user", "指纹"):
        digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    assert wire.ingest(said)[0][0].fingerprint == digest.hexdigest()


def test_a_memory_has_all_that_its_turn_had(wire: Wire, space: str) -> None:
    attributes = msgpack.packb({"mood": "好", "n": [1, 2.5, None]})
    said = turn(
        "钥匙在第三个花盆下面",
        seq=41, session="晚饭", source="claude", role="assistant", space=space,
        occurred_at=at(1_750_000_000, 123_456_789), tags=["home", "钥匙"], attributes=attributes,
    )  # fmt: skip
    wire.ingest(said)
    (memory,) = wire.listed(space)
    assert (memory.text, memory.source, memory.session, memory.seq, memory.role) == (
        "钥匙在第三个花盆下面", "claude", "晚饭", 41, "assistant",
    )  # fmt: skip
    assert (memory.occurred_at.seconds, memory.occurred_at.nanos) == (1_750_000_000, 123_456_000)
    assert (list(memory.tags), memory.attributes, memory.kind) == (["home", "钥匙"], attributes, "turn")
    assert memory.state == types_pb2.MEMORY_STATE_TEMPORARY
    assert memory.uri == f"edge://{space}/turn/{memory.id}"
    assert (memory.piece, memory.pieces, memory.archived) == (0, 1, False)


def test_a_turn_without_a_time_has_the_box_s_time(wire: Wire, space: str) -> None:
    before = wire.status().now
    wire.say("没有时间", space=space)
    after = wire.status().now
    (memory,) = wire.listed(space)
    assert before.ToNanoseconds() <= memory.occurred_at.ToNanoseconds() <= after.ToNanoseconds()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "长" * 400_000}, "text"),
        ({"source": ""}, "source"),
        ({"source": "two\nlines"}, "source"),
        ({"source": "x" * 257}, "source"),
        ({"session": " "}, "session"),
        ({"role": "\x1b[31m"}, "role"),
        ({"seq": -1}, "seq"),
        ({"occurred_at": at(-1)}, "occurred_at"),
        ({"occurred_at": at(4_133_980_800)}, "occurred_at"),
        ({"occurred_at": at(2**63 - 1)}, "occurred_at"),
        ({"occurred_at": at(-(2**63))}, "occurred_at"),
        ({"occurred_at": at(0, -1)}, "occurred_at"),
        ({"occurred_at": at(0, 1_000_000_000)}, "occurred_at"),
        ({"tags": ["ok", ""]}, "tags[1]"),
        ({"tags": ["t"] * 65}, "tags"),
        ({"tags": ["长" * 43]}, "tags[0]"),
        ({"attributes": b"\xc1"}, "attributes"),
        ({"attributes": b"\x80\x80"}, "attributes"),
        ({"attributes": msgpack.packb([1])}, "attributes"),
        ({"attributes": msgpack.packb({"k": "v" * 70_000})}, "attributes"),
        ({"space": "Public"}, "space"),
        ({"space": "private/"}, "space"),
        ({"space": "private/.."}, "space"),
        ({"space": "private/a/b"}, "space"),
        ({"space": "../public"}, "space"),
        ({"space": "private/" + "x" * 64}, "space"),
    ],
)
def test_a_bad_turn_is_named_and_its_neighbours_go_on(wire: Wire, changes: dict[str, object], field: str) -> None:
    space, session = "private/bad-turns", uuid.uuid4().hex
    good, bad, other = (turn(text, seq=seq, session=session, space=space) for seq, text in enumerate("甲乙丙"))
    for name, value in changes.items():
        bad.ClearField(name)
        bad.MergeFrom(types_pb2.Turn(**{name: value}))
    first, second = wire.ingest(good, bad, other)

    assert [result.state for result in first] == [STORED, REJECTED, STORED]
    assert [result.state for result in second] == [SEARCHABLE, REJECTED, SEARCHABLE]
    assert rejected(first[1]) == rejected(second[1]) == (INVALID, field)
    assert not first[1].memory_ids
    assert {memory.text for memory in wire.listed(space, filter={"sessions": [session]})} == {"甲", "丙"}


@pytest.mark.parametrize("seconds", [0, 4_133_980_799])
def test_the_first_and_the_last_second_of_the_allowed_years_are_kept(wire: Wire, space: str, seconds: int) -> None:
    wire.say("边缘", space=space, occurred_at=at(seconds, 999_999_999))
    (memory,) = wire.listed(space)
    assert (memory.occurred_at.seconds, memory.occurred_at.nanos) == (seconds, 999_999_000)


def test_turns_of_one_message_may_go_to_several_spaces(wire: Wire, space: str) -> None:
    other = space + "-b"
    wire.ingest(turn("甲", space=space), turn("乙", space=other), turn("丙", space=space))
    assert {memory.text for memory in wire.listed(space)} == {"甲", "丙"}
    assert [memory.text for memory in wire.listed(other)] == ["乙"]


@pytest.mark.parametrize("count", [0, 257])
def test_a_message_of_the_wrong_size_ends_the_stream_after_what_came_before_is_answered(
    wire: Wire, space: str, count: int
) -> None:
    good = message(turn("门关好了", space=space), ref="good")
    call = wire.memory.Ingest(iter([good, message(*[turn("多", space=space)] * count)]), timeout=SECONDS)
    assert [next(call).client_ref, next(call).client_ref] == ["good", "good"]
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "turns"):
        next(call)


def test_a_message_of_256_turns_is_taken(wire: Wire, space: str) -> None:
    first, second = wire.ingest(*(turn(f"句子{seq}", seq=seq, session="s", space=space) for seq in range(256)))
    assert Counter(result.state for result in first) == {STORED: 256}
    assert Counter(result.state for result in second) == {SEARCHABLE: 256}


def test_a_stream_that_is_closed_at_once_ends_well(wire: Wire) -> None:
    assert wire.answers() == []


def test_the_same_turn_again_is_a_duplicate_that_names_the_memory(wire: Wire, space: str) -> None:
    said = turn("重复的话", session="s", space=space)
    (stored,), _ = wire.ingest(said)
    first, second = wire.ingest(said, said)
    assert [result.state for result in (*first, *second)] == [DUPLICATE] * 4
    assert {tuple(result.memory_ids) for result in first} == {tuple(stored.memory_ids)}
    assert len(wire.listed(space)) == 1


def test_a_duplicate_of_a_turn_under_way_is_answered_last_when_that_can_be_found(wire: Wire, space: str) -> None:
    """Many at once, so that some meet the turn between the log and the index."""
    said = turn("正在路上的话", session="s", space=space)
    found: list[bool] = []

    def send(_: int) -> None:
        _, second = wire.ingest(said)
        hits = wire.recall("正在路上的话", space).hits
        found.append([hit.memory.id for hit in hits] == list(second[0].memory_ids) and hits[0].signals.semantic > 0)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(send, range(8)))
    assert found == [True] * 8


def test_many_streams_with_the_same_turns_store_each_once(wire: Wire, space: str) -> None:
    turns = [turn(f"同一句话{seq}", seq=seq, session="s", space=space) for seq in range(60)]
    barrier = threading.Barrier(6)

    def send(stream: int) -> list[memory_pb2.IngestResult]:
        barrier.wait()
        order = turns[stream * 10 :] + turns[: stream * 10]
        responses = wire.answers(*(message(*order[start : start + 7]) for start in range(0, 60, 7)))
        return [result for response in responses for result in response.results]

    with ThreadPoolExecutor(6) as threads:
        results = [result for part in threads.map(send, range(6)) for result in part]
    stored = Counter(result.fingerprint for result in results if result.state == STORED)
    assert len(stored) == 60
    assert set(stored.values()) == {1}
    assert Counter(result.state for result in results) == {STORED: 60, SEARCHABLE: 60, DUPLICATE: 600}
    assert len(wire.listed(space)) == 60


def test_a_turn_said_anew_supersedes_its_older_text(wire: Wire, space: str) -> None:
    old = wire.say("会议在三点", space=space, session="s")
    new = wire.say("会议改到五点", space=space, session="s")
    assert [memory.id for memory in wire.listed(space)] == new
    assert wire.texts("会议几点", space) == ["会议改到五点"]
    gone = wire.memory.GetMemory(memory_pb2.GetMemoryRequest(id=old[0])).memory
    assert gone.state == types_pb2.MEMORY_STATE_SUPERSEDED


def test_versions_of_one_turn_from_many_streams_leave_one(wire: Wire, space: str) -> None:
    barrier = threading.Barrier(6)

    def send(stream: int) -> None:
        barrier.wait()
        wire.answers(*(message(turn(f"版本{stream}之{n}", session="s", space=space)) for n in range(5)))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(send, range(6)))
    living = wire.listed(space)
    assert len(living) == 1
    assert wire.texts("版本", space, top_k=50) == [living[0].text]
    status = next(status for status in wire.status().spaces if status.name == space)
    assert (status.turns, status.memories, status.vectors, status.pending) == (30, 1, 1, 0)


def test_two_versions_of_one_turn_in_one_message_are_both_answered(wire: Wire, space: str) -> None:
    _, second = wire.ingest(turn("先说的", session="s", space=space), turn("后说的", session="s", space=space))
    assert [result.state for result in second] == [SEARCHABLE] * 2
    assert [memory.text for memory in wire.listed(space)] == ["后说的"]


def test_a_client_that_leaves_in_mid_stream_leaves_the_box_well(wire: Wire, space: str) -> None:
    open_until = threading.Event()

    def endless() -> Iterator[memory_pb2.IngestRequest]:
        yield message(*(turn(f"断线前{seq}", seq=seq, session="s", space=space) for seq in range(50)))
        open_until.wait(SECONDS)

    call = wire.memory.Ingest(endless())
    next(call)
    call.cancel()
    open_until.set()
    # What was answered is there for good, and can be found once a later turn can.
    wire.say("断线之后", space=space)
    assert len(wire.listed(space)) == 51


def test_a_turn_of_many_pieces_is_one_turn(wire: Wire, space: str) -> None:
    text = "。".join(f"第{number}段说的是完全不同的事情" for number in range(60))
    (result,), _ = wire.ingest(turn(text, space=space))
    memories = sorted(wire.listed(space), key=lambda memory: memory.piece)
    assert len(result.memory_ids) == len(memories) > 1
    assert [memory.id for memory in memories] == list(result.memory_ids)
    assert {memory.pieces for memory in memories} == {len(memories)}
    assert all(len(memory.text) <= 300 for memory in memories)


def test_text_that_is_not_utf_8_ends_its_own_stream_alone(wire: Wire, space: str) -> None:
    broken = b"\x0a\x03bad" + b"\x12\x05" + b"\x32\x03\xed\xa0\xbd"
    raw = wire.channel.stream_stream("/edge.v1.MemoryService/Ingest")
    healthy_turns = [message(turn(f"健康{uuid.uuid4().hex}", space=space)) for _ in range(3)]
    healthy = wire.memory.Ingest(iter(healthy_turns), timeout=SECONDS)
    with refused(grpc.StatusCode.INVALID_ARGUMENT, None):
        list(raw(iter([broken]), timeout=SECONDS))
    assert len(list(healthy)) == 6
