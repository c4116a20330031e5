"""The watch over sensors of which some hang. Nothing is timed: a test waits for a reading of the kind it wants."""

import logging
import threading

import pytest
from sensor_tree import SensorTree

from edge.embedder.sensors import SensorWatch

SOON = 60
# Short, so that hangs are found soon. A slow moment may find one where none is: then a later reading is the right one.
PATIENCE = 0.2


class Readings:
    """What the watch gave out; a test waits here for the reading it wants."""

    def __init__(self):
        self.condition = threading.Condition()
        self.all = []

    def __call__(self, reading):
        with self.condition:
            self.all.append(reading)
            self.condition.notify_all()

    def wait_for(self, wanted):
        with self.condition:
            start = len(self.all)
            found = self.condition.wait_for(lambda: next(filter(wanted, self.all[start:]), None), SOON)
            assert found, f"no such reading; the last was {self.all[-1:]}"
            return found


class Gate:
    """A read that hangs until the gate is opened."""

    def __init__(self):
        self.open = threading.Event()
        self.reads = 0

    def __call__(self):
        self.reads += 1
        assert self.open.wait(SOON)


def problems(reading):
    return {fact.name: fact.problem for fact in reading.sensors if fact.problem}


@pytest.fixture
def tree(tmp_path):
    tree = SensorTree(tmp_path)
    tree.zone(0, "cpu-thermal", 40000)
    tree.zone(1, "gpu-thermal", 50000)
    tree.meminfo()
    tree.write("sys/devices/platform/gpu.0/load", 500)
    return tree


@pytest.fixture
def start():
    watches, gates = [], []

    def start(tree, *hanging, listener=None, patience=PATIENCE):
        for path in hanging:
            gates.append(Gate())
            tree.before[path] = gates[-1]
        readings = Readings()
        watches.append(SensorWatch(tree.sensors(), 0.01, listener or readings, patience=patience))
        watches[-1].start()
        return watches[-1], readings, gates

    yield start
    for gate in gates:
        gate.open.set()
    for watch in watches:
        watch.close()


CPU = "sys/class/thermal/thermal_zone0/temp"
GPU = "sys/class/thermal/thermal_zone1/temp"
LOAD = "sys/devices/platform/gpu.0/load"


def test_readings_come_and_the_last_is_kept(tree, start):
    watch, readings, _ = start(tree)
    reading = readings.wait_for(lambda reading: reading.temperature == 50.0)
    assert reading.gpu_load == 0.5
    assert watch.latest() is not None


def test_a_sensor_that_hangs_is_told_once_and_the_others_go_on(tree, start, caplog):
    with caplog.at_level(logging.WARNING):
        _, readings, gates = start(tree, GPU)
        for _ in range(3):
            reading = readings.wait_for(lambda reading: list(problems(reading)) == ["gpu-thermal"])
            assert (reading.temperature, reading.gpu_load) == (40.0, 0.5)
    assert "does not answer" in problems(reading)["gpu-thermal"]
    assert gates[0].reads == 1
    assert caplog.text.count("sensor gpu-thermal") == 1


def test_a_sensor_that_comes_back_is_taken_in_again(tree, start):
    _, readings, gates = start(tree, GPU)
    readings.wait_for(lambda reading: "gpu-thermal" in problems(reading))
    gates[0].open.set()
    assert readings.wait_for(lambda reading: reading.temperature == 50.0)


def test_several_may_hang_at_once(tree, start):
    _, readings, gates = start(tree, CPU, GPU, LOAD)
    hanging = {"cpu-thermal", "gpu-thermal", "GPU load"}
    reading = readings.wait_for(lambda reading: hanging < set(problems(reading)))
    assert (reading.temperature, reading.gpu_load) == (None, None)
    assert reading.memory_available is not None
    for gate in gates:
        gate.open.set()
    readings.wait_for(lambda reading: reading.temperature == 50.0 and reading.gpu_load == 0.5)


def test_psutil_is_asked_while_the_only_zone_hangs(tmp_path, start):
    class Entry:
        current, high, critical = 45.0, None, None

    tree = SensorTree(tmp_path)
    tree.zone(0, "cpu-thermal", 40000)
    sensors = tree.sensors
    tree.sensors = lambda: sensors(temperatures=lambda: {"coretemp": [Entry]})
    _, readings, _ = start(tree, CPU)
    readings.wait_for(lambda reading: reading.temperature == 45.0)


def test_a_search_that_hangs_leaves_the_sensors_that_are_known(tree, start):
    _, readings, _ = start(tree)
    readings.wait_for(lambda reading: reading.temperature == 50.0)
    tree.before["sys/class/thermal/thermal_zone0/type"] = gate = Gate()
    try:
        tree.clock.seconds += 61
        readings.wait_for(lambda reading: "the search for sensors" in problems(reading) and reading.temperature == 50.0)
    finally:
        gate.open.set()


def test_a_listener_that_fails_does_not_end_the_watch(tree, start, caplog):
    heard = Readings()
    failures = iter([ValueError("full"), ValueError("full")])

    def listener(reading):
        for failure in failures:
            raise failure
        heard(reading)

    with caplog.at_level(logging.WARNING), pytest.MonkeyPatch.context() as patch:
        patch.setattr("edge.embedder.sensors._IDLE_INTERVAL", 0.01)
        start(tree, listener=listener)
        heard.wait_for(lambda reading: reading.temperature == 50.0)
    assert caplog.text.count("came to nothing") == 1


def test_nothing_is_given_out_after_the_close(tree, start):
    watch, readings, _ = start(tree, patience=SOON)
    readings.wait_for(lambda reading: True)
    watch.close()
    assert not watch._thread.is_alive()


def test_a_close_does_not_wait_for_a_sensor_that_hangs(tree, start):
    watch, readings, gates = start(tree, GPU)
    readings.wait_for(lambda reading: "gpu-thermal" in problems(reading))
    watch.close()
    assert not gates[0].open.is_set()


def test_an_idle_box_is_not_woken_more_than_once_a_second(tree):
    pauses = []

    class Closing:
        """Notes how long the watch would sleep, and ends it at the second pause."""

        def is_set(self):
            return len(pauses) >= 2

        def wait(self, seconds):
            pauses.append(seconds)

    working = iter([True, False])
    watch = SensorWatch(tree.sensors(), 0.2, lambda _: None, busy=lambda: next(working))
    watch._closing = Closing()
    watch._run()
    assert pauses == [0.2, 1.0]
