"""A caller's time is kept, and one who left costs nothing more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_calls import SECONDS, Wire, message, refused, turn

from edge.v1 import memory_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

EXPIRED = grpc.StatusCode.DEADLINE_EXCEEDED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture(scope="module")
def narrow(start_lasting_box: BoxFactory, tmp_path_factory: pytest.TempPathFactory) -> Wire:
    """A box that answers one recall at a time."""
    config = tmp_path_factory.mktemp("narrow") / "config.toml"
    config.write_text("[limits]\nrecalls_in_flight = 1\n")
    return Wire(start_lasting_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(config)).address)


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.003])
def test_recalls_whose_time_is_up_end_so_and_leave_nothing_behind(wire: Wire, space: str, seconds: float) -> None:
    wire.say("时间到了", space=space)
    request = memory_pb2.RecallRequest(query="时间", spaces=[space])

    def ask(_: int) -> grpc.StatusCode:
        try:
            wire.memory.Recall(request, timeout=seconds)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    with ThreadPoolExecutor(8) as threads:
        ended = set(threads.map(ask, range(100)))
    assert ended <= {EXPIRED, grpc.StatusCode.OK}
    assert wire.texts("时间", space) == ["时间到了"]
    assert wire.status().queue.recalls == 0


def test_a_cancelled_recall_frees_its_slot(narrow: Wire) -> None:
    narrow.say("占着位置的话", space="public")
    request = memory_pb2.RecallRequest(query="位置")
    for _ in range(20):
        narrow.memory.Recall.future(request).cancel()
    assert answered(narrow, request).hits


def test_an_expired_recall_frees_its_slot(narrow: Wire) -> None:
    request = memory_pb2.RecallRequest(query="位置")
    for _ in range(20):
        with refused(EXPIRED):
            narrow.memory.Recall(request, timeout=0)
    assert answered(narrow, request)


def answered(wire: Wire, request: memory_pb2.RecallRequest) -> memory_pb2.RecallResponse:
    """The answer, once the box has heard that those before it are gone."""
    for _ in range(1000):
        call = wire.memory.Recall.future(request, timeout=SECONDS)
        error = call.exception()
        if error is None:
            response: memory_pb2.RecallResponse = call.result()
            return response
        assert error.code() is EXHAUSTED
    raise AssertionError("a slot was never given back")


def test_a_refused_recall_is_told_when_to_come_again(narrow: Wire) -> None:
    request = memory_pb2.RecallRequest(query="位置")
    calls = [narrow.memory.Recall.future(request, timeout=SECONDS) for _ in range(30)]
    errors = [call.exception() for call in calls]
    turned_away = [error for error in errors if error is not None]
    assert len(turned_away) < 30
    assert turned_away, "thirty at once fitted into one slot"
    for error in turned_away:
        assert error.code() is EXHAUSTED
        assert int(dict(error.trailing_metadata())["grpc-retry-pushback-ms"]) > 0


def test_an_ingest_stream_whose_time_is_up_keeps_what_it_was_told(wire: Wire, space: str) -> None:
    heard_the_end = Event()

    def slowly():  # type: ignore[no-untyped-def]  # a generator that ends with its call
        yield message(turn("说过的", space=space))
        # Never another one: the deadline ends the stream.
        heard_the_end.wait(SECONDS)

    call = wire.memory.Ingest(slowly(), timeout=2)
    first = next(call)
    next(call)
    with refused(EXPIRED):
        next(call)
    heard_the_end.set()
    assert [memory.id for memory in wire.listed(space)] == list(first.results[0].memory_ids)


def test_waiting_for_a_memory_does_not_outlast_the_deadline(wire: Wire, space: str) -> None:
    """A long turn takes the model a while: whoever waits for its last piece gets an answer or the end of its time."""
    text = "。".join(f"{number}号桌子上放着{number * 7}本书和{number * 3}支笔" * 8 for number in range(120))
    call = wire.memory.Ingest(iter([message(turn(text, space=space))]), timeout=SECONDS)
    stored = next(call).results[0]
    with refused(EXPIRED):
        wire.recall("桌子", space, within=0.05, wait_for=stored.memory_ids)
    next(call)
    assert wire.recall("桌子", space, wait_for=stored.memory_ids).hits
