"""An idle box sleeps: no thread of its own wakes more than once a second, also while a client is connected."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from grpc_calls import SECONDS, Wire

from edge.clock import SystemClock
from edge.embedder.sensors import Sensors

if TYPE_CHECKING:
    from conftest import Box

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the wake-ups of each thread"),
    pytest.mark.alone,
]

WINDOW = 5.0
# A box that has just started still has things to do; it gets quiet within some of these.
WINDOWS = 6
# What a thread does within one of these is one waking, however often it hands over to another.
LOOK = 0.1
# gRPC's own: its timers tick once a second, and each tick lets the two or three threads of its pool look for work, at
# growing intervals. A bare server without any code of ours does the same, and there is nothing to set.
GRPC = {"event_engine", "lifeguard", "grpc_global_tim"}


class Thread(NamedTuple):
    name: str
    # Voluntary context switches so far: it slept, and was woken.
    switches: int


class Window(NamedTuple):
    # (name, wakings a second) of each thread.
    rates: list[tuple[str, float]]
    # Share of one core, all threads together.
    busy: float

    def faster(self, hertz: float, grpc: bool) -> list[tuple[str, float]]:
        """The threads that woke more often. Half as much again is allowed, as a waking may fall on two looks."""
        most = 1.5 * hertz + 2 / WINDOW
        return [(name, rate) for name, rate in self.rates if (name in GRPC) is grpc and rate > most]


def threads(pid: int) -> dict[str, Thread]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[task.name] = Thread(fields["Name"], int(fields["voluntary_ctxt_switches"]))
    return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # proc(5): utime and stime are fields 14 and 15; the first here is the third. A hundredth of a second each.
    return (int(fields[11]) + int(fields[12])) / 100


def look(pid: int) -> Window:
    begun, used, last = time.monotonic(), cpu_seconds(pid), threads(pid)
    names = {task: one.name for task, one in last.items()}
    wakings: Counter[str] = Counter()
    while time.monotonic() < begun + WINDOW:
        time.sleep(LOOK)
        now = threads(pid)
        wakings.update(task for task, one in now.items() if task in last and one.switches > last[task].switches)
        names |= {task: one.name for task, one in now.items()}
        last = now
    seconds = time.monotonic() - begun
    return Window(
        [(names[task], count / seconds) for task, count in wakings.items()], (cpu_seconds(pid) - used) / seconds
    )


@functools.cache
def most() -> float:
    """Of one core: half a percent, beside what reading the sensors once a second costs here after a second of rest.

    On one shared machine that was .4 and 7 milliseconds within a day, for the same files.
    """
    sensors = Sensors(SystemClock())
    spent = 0.0
    for _ in range(5):
        time.sleep(1)
        begun = time.thread_time()
        sensors.read()
        spent += time.thread_time() - begun
    return 0.005 + spent / 5


def quietest(pid: int) -> Window:
    """The first window in which nothing of ours woke too often; else the last."""
    for _ in range(WINDOWS):
        window = look(pid)
        if not window.faster(1, grpc=False) and window.busy < most():
            break
    return window


def check(window: Window) -> None:
    assert window.faster(1, grpc=False) == []
    assert window.faster(4, grpc=True) == []
    assert window.busy < most()


def test_a_fresh_box_sleeps(box: Box) -> None:
    check(quietest(box.pid))


def test_a_box_sleeps_while_a_client_with_nothing_to_say_is_connected(box: Box) -> None:
    ended = threading.Event()

    def silence() -> Iterator[Any]:
        ended.wait(SECONDS)
        yield from ()

    with Wire(box.address) as wire:
        call = wire.memory.RecallStream(silence())
        while not wire.status().streams:
            time.sleep(0.01)
        check(quietest(box.pid))
        assert wire.status().streams == 1
        call.cancel()
        ended.set()
