"""Case 26: a clock that is wrong and is set, a device that sleeps (guysoft/OctoPi#606, fusedio/fused-render#1043)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import netns
import pytest
from house import GUEST, Machine, ended, goes_on, house

from edge.types import Micros
from edge.upkeep.schedule import Job, Schedule

WITHOUT = netns.missing()
needs_namespaces = pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT)

Machines = tuple[Machine, Machine, Machine]
DAY = 86_400.0
# Longer than a device must have slept to announce itself again (edge.lan.link).
ASLEEP_SECONDS = 25.0


@pytest.fixture
def machines(model_directory: Path) -> Iterator[Machines]:
    with house(model_directory) as three:
        yield three


class WallClock:
    """The wall clock of one machine's box, to be set while it runs."""

    def __init__(self, machine: Machine) -> None:
        self._file = machine.home / "clock"
        # How Python runs `edge` under this clock.
        self.edge = (str(GUEST.with_name("clock_box.py")), str(self._file))

    def set(self, days: float) -> None:
        """So many days from the right time."""
        # Replaced whole: the box reads it at every look at the clock.
        staged = self._file.with_suffix(".new")
        staged.write_text(f"{days * DAY:+.0f}")
        staged.replace(self._file)


@needs_namespaces
def test_nothing_expires_or_reorders_when_the_clock_is_two_weeks_behind_jumps_and_goes_back(machines: Machines) -> None:
    attic, desk, phone = machines
    clock = WallClock(attic)
    clock.set(-14)
    # Small segments, for their names begin with a date.
    box = attic.serve(edge=clock.edge, settings="[storage]\nsegment_bytes = 65536")
    desk.edge("pair", attic.place, "--code", attic.code(), "--name", "desk")
    code = attic.code()
    stream = desk.stream(200)
    for days in (0, 30, -14):
        clock.set(days)
        goes_on(stream)
        desk.edge("remember", f"时钟走到第{days}天。", "--space", "public")
    assert "as phone" in phone.edge("pair", attic.place, "--code", code, "--name", "phone")
    turns = ended(stream)

    def seen() -> list[tuple[str, str]]:
        listed = desk.json("ls", "--limit", str(turns + 10))["memories"]
        return [(memory["id"], memory["text"]) for memory in listed]

    # The order is that of saying, whatever the clock said.
    events = attic.log("private/desk")
    assert [event["seq"] for event in events] == list(range(turns))
    assert [event["n"] for event in events] == list(range(1, turns + 1))
    ids = [event["pieces"][0][0] for event in attic.log("public")]
    assert ids == sorted(ids)
    before = seen()
    assert len(before) == turns + 3

    # The power fails, and the clock is behind the newest of the log.
    box.kill()
    attic.serve(edge=clock.edge)
    assert seen() == before
    desk.edge("remember", "重启之后。", "--space", "public")
    assert attic.log("public")[-1]["text"] == "重启之后。"
    assert len(seen()) == turns + 4


@needs_namespaces
def test_a_box_that_slept_is_announced_again_and_its_clients_go_on_by_themselves(machines: Machines) -> None:
    attic, desk, laptop = machines
    box = attic.serve(name="home")
    for machine, name in ((desk, "desk"), (laptop, "laptop")):
        machine.edge("pair", attic.place, "--code", attic.code(), "--name", name)
    awake, asleep = desk.stream(), laptop.stream()

    # One client sleeps along, the other wonders.
    for program in (box, asleep):
        program.signal(signal.SIGSTOP)
    ear = desk.guest("listen")
    ear.hear("listening")
    time.sleep(ASLEEP_SECONDS)
    ear.skip()
    for program in (box, asleep):
        program.signal(signal.SIGCONT)

    # It claims its name as at its start, for the neighbours may have forgotten it.
    ear.hear("probe", lambda host: host == attic.address)
    for stream, name in ((awake, "desk"), (asleep, "laptop")):
        goes_on(stream)
        turns = ended(stream)
        assert [event["seq"] for event in attic.log(f"private/{name}")] == list(range(turns))
    assert [found["paired"] for found in desk.finds("home")] == [True]


class SleepyClock:
    """Stands still but when it jumps, and tells when it was looked at."""

    def __init__(self) -> None:
        self._at = 0.0
        self._looks = 0
        self._looked = threading.Condition()

    def now(self) -> Micros:
        raise AssertionError("intervals are no matter of the wall clock")

    def monotonic(self) -> float:
        with self._looked:
            self._looks += 1
            self._looked.notify_all()
            return self._at

    def jump(self, seconds: float) -> None:
        with self._looked:
            self._at += seconds

    def wait_for_looks(self, more: int) -> None:
        with self._looked:
            wanted = self._looks + more
            assert self._looked.wait_for(lambda: self._looks >= wanted, timeout=60)


def test_an_overdue_job_runs_once_however_often_it_was_missed() -> None:
    clock = SleepyClock()
    runs: list[str] = []
    # Looked at every hundredth of a second, by a clock that only jumps.
    often, rare = Job("often", 0.01, lambda: runs.append("often")), Job("rare", DAY, lambda: runs.append("rare"))
    schedule = Schedule([often, rare], clock)
    schedule.start()
    try:
        clock.wait_for_looks(10)
        assert runs == []
        clock.jump(14 * DAY)
        clock.wait_for_looks(20)
        assert runs == ["often", "rare"]
    finally:
        schedule.close()
