"""How the box is, once and again; and its views made anew while it runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import grpc
import psutil
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_calls import SECONDS, Wire, refused

import edge
from edge.config import DEFAULT_MODEL
from edge.v1 import appliance_pb2

if TYPE_CHECKING:
    from conftest import Box

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_the_status_is_that_of_this_box(wire: Wire, shared_box: Box) -> None:
    status = wire.status()
    assert (status.version, status.ready, status.read_only) == (edge.__version__, True, "")
    assert (status.model.id, status.model.dimension) == (DEFAULT_MODEL, 512)
    assert list(status.addresses) == [shared_box.unix, shared_box.address]
    assert status.data_directory == str(shared_box.data)
    assert status.started_at.ToNanoseconds() < status.now.ToNanoseconds()
    resident = psutil.Process(shared_box.pid).memory_info().rss
    assert 0.5 < status.resident_bytes / resident < 2


def test_a_space_is_told_in_numbers(wire: Wire, space: str) -> None:
    wire.say("甲", "乙", "丙", space=space)
    facts = next(facts for facts in wire.status().spaces if facts.name == space)
    assert (facts.turns, facts.memories, facts.vectors, facts.pending) == (3, 3, 3, 0)
    assert (facts.index_size, facts.damaged_lines, facts.log_segments) == (3, 0, 1)
    assert facts.log_bytes > 0


def test_a_watcher_hears_again_and_again(wire: Wire) -> None:
    call = wire.appliance.WatchStatus(
        appliance_pb2.WatchStatusRequest(interval=Duration(nanos=200_000_000)), timeout=SECONDS
    )
    times = [response.status.now.ToNanoseconds() for response in itertools.islice(call, 3)]
    call.cancel()
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    "interval",
    [
        Duration(),
        Duration(seconds=-1),
        Duration(nanos=199_999_999),
        Duration(nanos=-5),
        Duration(seconds=3601),
        Duration(seconds=2**63 - 1),
    ],
)
def test_an_interval_out_of_range_is_refused(wire: Wire, interval: Duration) -> None:
    with refused(INVALID, "interval"):
        next(wire.appliance.WatchStatus(appliance_pb2.WatchStatusRequest(interval=interval), timeout=SECONDS))


@pytest.mark.parametrize("scope", [appliance_pb2.REBUILD_SCOPE_INDEX, appliance_pb2.REBUILD_SCOPE_LOG])
def test_views_made_anew_answer_the_same(wire: Wire, space: str, scope: appliance_pb2.RebuildScope.ValueType) -> None:
    ids = wire.say("植物园的郁金香", "厨房的咖啡机", "书房的台灯", space=space)
    before = [(hit.memory.id, hit.score) for hit in wire.recall("喝咖啡", space).hits]
    rebuilt = wire.appliance.Rebuild(appliance_pb2.RebuildRequest(spaces=[space], scope=scope), timeout=SECONDS)
    assert rebuilt.memories == 3
    after = [(hit.memory.id, hit.score) for hit in wire.recall("喝咖啡", space, wait_for=ids).hits]
    assert [memory_id for memory_id, _ in after] == [memory_id for memory_id, _ in before]
    assert [score for _, score in after] == pytest.approx([score for _, score in before], abs=1e-3)
    assert wire.say("之后的话", space=space)


def test_a_space_that_does_not_exist_is_not_made_by_a_rebuild(wire: Wire) -> None:
    with refused(grpc.StatusCode.NOT_FOUND, "spaces"):
        wire.appliance.Rebuild(appliance_pb2.RebuildRequest(spaces=["private/no-such"]), timeout=SECONDS)
    with refused(INVALID, "spaces"):
        wire.appliance.Rebuild(appliance_pb2.RebuildRequest(spaces=["no such"]), timeout=SECONDS)
    with refused(INVALID, "scope"):
        wire.appliance.Rebuild(appliance_pb2.RebuildRequest(scope=9), timeout=SECONDS)  # type: ignore[arg-type]  # a number of a later version
    assert all(facts.name != "private/no-such" for facts in wire.status().spaces)
