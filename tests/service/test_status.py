"""How the box is, once and again; and its views made anew while it runs."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
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


def test_the_governor_is_told_with_its_reason(wire: Wire) -> None:
    governor = wire.status().governor
    assert governor.level in (1, 2, 3, 4)
    assert governor.reason
    assert governor.padded_tokens >= 0 and governor.threads >= 0 and 0 <= governor.duty <= 1


def test_the_model_that_runs_is_the_one_that_was_pulled(wire: Wire) -> None:
    assert wire.status().model.variant == "stock"


def test_a_terminal_gets_the_live_picture_and_ctrl_c_gives_it_back(shared_box: Box) -> None:
    status, shown = in_a_terminal(100, 30, "status", "--watch", "--address", shared_box.address, until="recalls")
    assert status == 0
    # The alternate screen and the cursor: taken, and given back.
    assert shown.index("\x1b[?1049h") < shown.index("recalls") < shown.rindex("\x1b[?1049l")
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_without_colour_and_on_a_small_terminal_it_is_shown_all_the_same(shared_box: Box) -> None:
    status, shown = in_a_terminal(
        40, 24, "status", "--watch", "--address", shared_box.address, until="recalls", NO_COLOR="1"
    )
    assert status == 0
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


def test_without_a_box_the_terminal_is_left_alone(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/no.sock"
    status, shown = in_a_terminal(100, 30, "status", "--watch", "--address", address)
    assert status == 3
    assert "\x1b" not in shown and "edge serve" in shown


def in_a_terminal(
    width: int, height: int, *arguments: str, until: str | None = None, **environment: str
) -> tuple[int, str]:
    """(exit status, all that was written) of `edge …` on a terminal of that size; Ctrl-C once `until` is shown."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "edge.cli", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment},
        # A shell that runs the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(theirs)
    shown, interrupted = b"", False
    try:
        while chunk := _read(ours):
            shown += chunk
            if until is not None and until.encode() in shown and not interrupted:
                interrupted = True
                process.send_signal(signal.SIGINT)
        return process.wait(SECONDS), shown.decode("utf-8", "replace")
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # EIO is how a terminal says that nobody is at its other end.
        return b""


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
