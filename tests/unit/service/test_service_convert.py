"""Between wire and domain: what goes through comes back, and what is wrong is named."""

from __future__ import annotations

import dataclasses
import re

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import status_pb2
from grpc_calls import field_of, reason_of, retry_of
from hypothesis import given
from hypothesis import strategies as st

from edge import errors
from edge.config import Limits
from edge.errors import EdgeError, Exhausted, InvalidArgument
from edge.service import convert
from edge.types import Answer, Depth, Filter, Hit, Level, Memory, MemoryState, Receipt, Signals, TurnState
from edge.v1 import memory_pb2, types_pb2

LAST = 4_133_980_800_000_000 - 1
DAY = 86_400_000_000
NOW = 1_750_000_000_000_000
MEMORY = Memory(
    rowid=1, id="0197", kind="turn", state=MemoryState.CONFIRMED, text="第一句。第二句。", source="claude", session="s",
    seq=3, role="user", occurred_at=NOW - DAY, created_at=NOW - DAY + 1, weight=2.0, tags=("a", "b"), access_count=4,
    accessed_at=0, archived=False, piece=0, pieces=2, attributes=b"\x80", space="private/x",
    replaced_by="0198", valid_from=NOW - 2 * DAY, valid_until=NOW,
)  # fmt: skip


@given(st.integers(0, LAST))
def test_every_time_of_the_allowed_years_comes_back(micros: int) -> None:
    assert convert.micros(convert.timestamp(micros), "at") == micros


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_no_other_time_comes_through(seconds: int, nanos: int) -> None:
    value = Timestamp(seconds=seconds, nanos=nanos)
    allowed = 0 <= seconds <= LAST // 1_000_000 and 0 <= nanos < 10**9
    if allowed:
        assert convert.micros(value, "at") == seconds * 1_000_000 + nanos // 1000
    else:
        with pytest.raises(InvalidArgument, match=r"^at: ") as caught:
            convert.micros(value, "at")
        assert caught.value.field == "at"


@given(st.floats(0, 1e9))
def test_a_duration_is_what_it_was_to_the_nanosecond(seconds: float) -> None:
    duration = convert.duration(seconds)
    assert 0 <= duration.nanos < 10**9
    assert duration.seconds + duration.nanos / 1e9 == pytest.approx(seconds, abs=1e-9, rel=1e-12)


def test_a_negative_duration_is_none() -> None:
    assert convert.duration(-1.0).ToNanoseconds() == 0


def test_an_unset_filter_asks_nothing() -> None:
    assert convert.filter_of(types_pb2.Filter(), Limits()) == Filter()
    assert not convert.filter_of(types_pb2.Filter(), Limits()).selective


def test_a_filter_is_taken_whole() -> None:
    message = types_pb2.Filter(
        since=Timestamp(seconds=1), until=Timestamp(seconds=2), tags=["b", "a", "b"], kinds=["note"], sources=["x"],
        sessions=["y", "z"], include_archived=True,
    )  # fmt: skip
    assert convert.filter_of(message, Limits()) == Filter(
        1_000_000, 2_000_000, ("b", "a"), ("note",), ("x",), ("y", "z"), True
    )


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (types_pb2.Filter(tags=["a"] * 3), "filter.tags"),
        (types_pb2.Filter(sources=["a"] * 4), "filter.sources"),
        (types_pb2.Filter(sessions=["a"] * 4), "filter.sessions"),
        (types_pb2.Filter(kinds=["a"] * 4), "filter.kinds"),
        (types_pb2.Filter(kinds=["A"]), "filter.kinds"),
        (types_pb2.Filter(since=Timestamp(seconds=2), until=Timestamp(seconds=2)), "filter.until"),
        (types_pb2.Filter(since=Timestamp(seconds=-1)), "filter.since"),
    ],
)
def test_a_filter_that_asks_too_much_is_refused(message: types_pb2.Filter, field: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{re.escape(field)}: ") as caught:
        convert.filter_of(message, Limits(tags=2, filter_values=3))
    assert caught.value.field == field


def test_a_memory_goes_out_with_all_it_has() -> None:
    message = convert.memory_message(MEMORY, NOW)
    # What a memory took the place of is told by GetMemory, which looks for it.
    converted = {"state", "tags", "occurred_at", "created_at", "decay", "valid_from", "valid_until", "replaces"}
    for name in {field.name for field in message.DESCRIPTOR.fields} - converted:
        assert getattr(message, name) == getattr(MEMORY, name), name
    assert list(message.tags) == ["a", "b"]
    assert message.state == types_pb2.MEMORY_STATE_CONFIRMED
    assert convert.micros(message.occurred_at, "") == MEMORY.occurred_at
    assert convert.micros(message.created_at, "") == MEMORY.created_at
    unset = {field.name for field in message.DESCRIPTOR.fields} - {field.name for field, _ in message.ListFields()}
    # Those that are zero here.
    assert unset == {"archived", "piece", "replaces"}
    assert convert.micros(message.valid_from, "") == MEMORY.valid_from
    assert convert.micros(message.valid_until, "") == MEMORY.valid_until


@given(st.integers(0, LAST), st.integers(0, LAST), st.integers(0, LAST))
def test_decay_lies_between_nothing_and_one_whatever_the_clocks_say(occurred: int, accessed: int, now: int) -> None:
    memory = dataclasses.replace(MEMORY, occurred_at=occurred, accessed_at=accessed)
    decay = convert.memory_message(memory, now).decay
    assert 0 <= decay <= 1
    if max(occurred, accessed) >= now:
        assert decay == 1


def test_an_answer_goes_out_with_its_evidence() -> None:
    signals = Signals(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    answer = Answer(
        (Hit(MEMORY, 0.75, signals, 1.25),),
        Depth.DEEP,
        "回忆一下",
        "block",
        (("words", 0.25), ("total", 0.5)),
        ("a note",),
    )
    message = convert.answer_message(answer, ["private/x"], NOW)
    assert (message.hits[0].score, message.hits[0].relevance) == (0.75, 1.25)
    sent = {field.name: value for field, value in message.hits[0].signals.ListFields()}
    assert sent == dataclasses.asdict(signals)
    assert (message.depth, message.trigger, message.context) == (memory_pb2.DEPTH_DEEP, "回忆一下", "block")
    assert message.timing.total.ToMilliseconds() == 500
    assert [(stage.stage, stage.took.ToMilliseconds()) for stage in message.timing.stages] == [("words", 250)]
    assert (list(message.spaces), list(message.notes)) == (["private/x"], ["a note"])


def test_a_receipt_goes_out_whole() -> None:
    receipt = Receipt("id", True, 1, 2, 3, 4, 5, ("m",), 6, 7, 8, ("mark",), 9_000_000)
    message = convert.receipt_message(receipt)
    values = [value for _, value in message.ListFields()]
    assert values == ["id", True, 1, 2, 3, 4, 5, ["m"], 6, 7, 8, ["mark"], Timestamp(seconds=9)]


@pytest.mark.parametrize(
    ("number", "level"), [(0, Level.DETAIL), (1, Level.ABSTRACT), (2, Level.OVERVIEW), (3, Level.DETAIL)]
)
def test_levels(number: int, level: Level) -> None:
    assert convert.level_of(number) is level


def test_depths() -> None:
    assert [convert.depth_of(number) for number in range(4)] == [Depth.AUTO, Depth.AUTO, Depth.SHALLOW, Depth.DEEP]


@pytest.mark.parametrize("number", [-1, 4, 2**31 - 1])
def test_numbers_of_a_later_version_are_refused(number: int) -> None:
    for read, field in ((convert.level_of, "level"), (convert.depth_of, "depth")):
        with pytest.raises(InvalidArgument) as caught:
            read(number)
        assert caught.value.field == field


def test_the_enums_of_the_domain_have_the_numbers_of_the_wire() -> None:
    for ours, theirs, prefix in (
        (MemoryState, types_pb2.MemoryState, "MEMORY_STATE_"),
        (Level, types_pb2.Level, "LEVEL_"),
        (Depth, memory_pb2.Depth, "DEPTH_"),
        (TurnState, memory_pb2.IngestState, "INGEST_STATE_"),
    ):
        wire = {name.removeprefix(prefix): number for name, number in theirs.items() if number}
        assert {member.name: int(member) for member in ours} == wire  # type: ignore[attr-defined]  # each is an IntEnum


def subclasses(kind: type[EdgeError]) -> list[type[EdgeError]]:
    return [kind, *(deeper for direct in kind.__subclasses__() for deeper in subclasses(direct))]


@pytest.mark.parametrize("kind", subclasses(EdgeError), ids=lambda kind: str(kind.__name__))
def test_every_failure_has_a_code_of_grpc_and_its_details(kind: type[EdgeError]) -> None:
    error = kind("what is wrong", field="text", reason="", retry_after=1.5)
    code, message, metadata = convert.trailing(error)
    assert (code.name, message) == (kind.code, "what is wrong")
    status = status_pb2.Status.FromString(dict(metadata)["grpc-status-details-bin"])  # type: ignore[arg-type]  # -bin: bytes
    assert (status.code, status.message) == (code.value[0], message)
    assert (field_of(status), reason_of(status), retry_of(status)) == ("text", kind.reason, 1.5)
    assert dict(metadata)["grpc-retry-pushback-ms"] == "1500"


def test_a_failure_without_a_field_or_a_wait_names_none() -> None:
    code, _, metadata = convert.trailing(errors.NotFound("nothing there"))
    status = status_pb2.Status.FromString(dict(metadata)["grpc-status-details-bin"])  # type: ignore[arg-type]  # -bin: bytes
    assert code is grpc.StatusCode.NOT_FOUND
    assert (field_of(status), reason_of(status), retry_of(status)) == ("", "NOT_FOUND", 0.0)
    assert "grpc-retry-pushback-ms" not in dict(metadata)


def test_a_wait_is_told_as_a_millisecond_at_least() -> None:
    _, _, metadata = convert.trailing(Exhausted("full", retry_after=0.0001))
    assert dict(metadata)["grpc-retry-pushback-ms"] == "1"
