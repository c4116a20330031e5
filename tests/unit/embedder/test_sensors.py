"""What a device says, read from trees as kernels lay them: Jetsons, a mini PC, a Mac, and machines that say nothing."""

import ctypes
import errno
import logging
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sensor_tree import GIB, SensorTree, mini_pc, orin_agx, orin_nano

from edge.clock import SystemClock
from edge.embedder.sensing.apple import ThermalPressure
from edge.embedder.sensing.zones import Rank, rank
from edge.embedder.sensors import Sensors
from edge.types import Pressure


@pytest.fixture
def tree(tmp_path):
    return SensorTree(tmp_path)


def problems(readings):
    return {fact.name: fact.problem for fact in readings.sensors if fact.problem}


def values(readings):
    return {fact.name: fact.value for fact in readings.sensors if not fact.problem}


def test_an_orin_nano_goes_by_its_junction_and_the_trips_of_its_chips(tree):
    orin_nano(tree)
    readings = tree.sensors().read()
    assert (readings.temperature, readings.trip) == (49.125, 99.0)
    assert readings.gpu_load == 0.64
    assert readings.power_mode == "nvpmodel 7W"
    assert readings.memory_available == 4 * GIB
    assert values(readings)["NvMap"] == 2 * GIB


def test_one_gpu_that_is_found_by_two_ways_is_one_sensor(tree):
    orin_nano(tree)
    assert [name for name in values(tree.sensors().read()) if "GPU" in name] == ["GPU load"]


def test_zones_that_answer_eagain_are_left_out_and_told(tree):
    orin_nano(tree)
    found = problems(tree.sensors().read())
    assert set(found) == {"cv0-thermal", "cv1-thermal", "cv2-thermal"}
    assert "temporarily unavailable" in found["cv0-thermal"]


def test_an_agx_without_its_junction_goes_by_its_hottest_chip(tree):
    orin_agx(tree)
    readings = tree.sensors().read()
    assert (readings.temperature, readings.trip) == (55.5, 98.0)
    assert set(problems(readings)) == {"CV0-therm", "tj-therm"}


def test_memory_that_the_gpu_holds_is_not_available(tree):
    tree.meminfo(total=8 * GIB, available=7 * GIB, NvMapMemUsed=6 * GIB)
    assert tree.sensors().read().memory_available == 2 * GIB


def test_a_mini_pc_goes_by_its_package_and_ignores_trips_that_are_not_set(tree):
    mini_pc(tree)
    readings = tree.sensors().read()
    assert (readings.temperature, readings.trip) == (61.0, None)
    assert readings.frequency == 0.75
    assert (readings.on_battery, readings.battery) == (False, None)
    assert readings.memory_pressure == 1.25
    assert readings.power_mode == "powersave"
    assert not problems(readings)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((kind, Rank.JUNCTION) for kind in ("tj-thermal", "Tj-therm", "tj")),
        *((kind, Rank.CHIP) for kind in ("cpu-thermal", "CPU-therm", "GPU-therm", "soc2-thermal", "SOC0-therm")),
        *((kind, Rank.CHIP) for kind in ("cv0-thermal", "CV2-therm", "x86_pkg_temp", "bigcore0-thermal", "coretemp")),
        *((kind, Rank.OTHER) for kind in ("acpitz", "PMIC-Die", "Tboard_tegra", "iwlwifi_1", "tjunk", "nvme", "")),
    ],
)
def test_a_zone_is_ranked_by_its_type_in_any_spelling(kind, expected):
    assert rank(kind) == expected


@pytest.mark.parametrize(
    ("trips", "expected"),
    [
        ({"passive": 90000, "hot": 80000, "critical": 85000}, 90.0),
        ({"hot": 92000, "critical": 100000}, 92.0),
        ({"active": 50000}, None),
        ({"critical": 90000}, 80.0),
        ({"critical": 110000}, None),
        ({"passive": 0, "hot": -274000}, None),
        ({"passive": 10**12}, None),
        ({"passive": "soon"}, None),
    ],
)
def test_the_trip_is_where_the_device_throttles_and_not_where_it_dies(tree, trips, expected):
    tree.zone(0, "cpu-thermal", 50000, **trips)
    assert tree.sensors().read().trip == expected


def test_of_several_passive_trips_the_lowest_counts(tree):
    tree.zone(0, "soc-thermal", 50000, passive=85000)
    tree.zone(1, "gpu-thermal", 40000, passive=75000)
    tree.zone(2, "battery", 30000, passive=45000)
    assert tree.sensors().read().trip == 75.0


LIES = [-256000, 0, 999, 150001, 10**9, 10**30, "", "hot", "48.5", "4_8000", "４８０００", b"\xff\x00", b"\x00" * 9]


@pytest.mark.parametrize("lie", LIES)
def test_a_zone_that_lies_is_left_out_and_the_next_one_counts(tree, lie):
    tree.zone(0, "tj-thermal", lie)
    tree.zone(1, "cpu-thermal", 50000)
    readings = tree.sensors().read()
    assert readings.temperature == 50.0
    assert list(problems(readings)) == ["tj-thermal"]


def test_a_problem_is_logged_once_however_often_it_is_read(tree, caplog):
    orin_nano(tree)
    sensors = tree.sensors()
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            tree.clock.seconds += 61
            sensors.read()
    told = [record.getMessage() for record in caplog.records]
    assert sorted(message.split(":")[0] for message in told) == [f"sensor cv{number}-thermal" for number in range(3)]


def test_without_any_sensor_only_the_heat_is_missed(tree):
    readings = tree.sensors().read()
    assert list(problems(readings)) == ["temperature"]
    assert (readings.temperature, readings.memory_available, readings.memory_pressure) == (None, None, None)
    assert readings.at == tree.clock.seconds


def test_a_sensor_that_vanishes_is_told_and_then_forgotten(tree):
    orin_nano(tree)
    sensors = tree.sensors()
    sensors.read()
    (tree.root / "sys/class/thermal/thermal_zone8/temp").unlink()
    assert "tj-thermal" in problems(sensors.read())
    (tree.root / "sys/class/thermal/thermal_zone8/type").unlink()
    tree.clock.seconds += 61
    readings = sensors.read()
    assert readings.temperature == 48.5
    assert "tj-thermal" not in problems(readings)


def test_a_sensor_that_appears_late_is_found_within_a_minute(tree):
    sensors = tree.sensors()
    assert sensors.read().gpu_load is None
    tree.write("sys/devices/platform/gpu.0/load", 1000)
    assert sensors.read().gpu_load is None
    tree.clock.seconds += 61
    assert sensors.read().gpu_load == 1.0


def test_zones_of_one_type_are_told_apart(tree):
    tree.zone(0, "acpitz", 40000)
    tree.zone(1, "acpitz", 60000)
    readings = tree.sensors().read()
    assert values(readings) == {"acpitz (thermal_zone0)": 40.0, "acpitz (thermal_zone1)": 60.0}
    assert readings.temperature == 60.0


class TestPsutil:
    def entry(self, current, high=None, critical=None):
        return SimpleNamespace(label="", current=current, high=high, critical=critical)

    def test_is_asked_where_there_are_no_zones(self, tree):
        table = {"nvme": [self.entry(70.0, 81.0)], "coretemp": [self.entry(52.0, 100.0, 100.0), self.entry(55.0, 98.0)]}
        readings = tree.sensors(temperatures=lambda: table).read()
        assert (readings.temperature, readings.trip) == (55.0, 98.0)
        assert values(readings) == {"nvme": 70.0, "coretemp": 55.0}

    def test_is_asked_where_no_zone_speaks_and_left_alone_when_one_does_again(self, tree):
        place = tree.zone(0, "cpu-thermal", 0)
        asked = []

        def temperatures():
            asked.append(1)
            return {"k10temp": [self.entry(44.0)]}

        sensors = tree.sensors(temperatures=temperatures)
        assert sensors.read().temperature == 44.0
        tree.write(place, 50000)
        assert sensors.read().temperature == 50.0
        tree.again(place)
        assert sensors.read().temperature == 44.0
        assert len(asked) == 2

    def test_raises_a_typeerror_on_orin_nano(self, tree):
        def temperatures():
            raise TypeError("'NoneType' object is not subscriptable")

        readings = tree.sensors(temperatures=temperatures).read()
        assert readings.temperature is None
        assert set(problems(readings)) == {"psutil", "temperature"}

    @pytest.mark.parametrize("lie", [None, float("nan"), float("inf"), -273.0, 0, 1e9, "warm"])
    def test_may_lie(self, tree, lie):
        readings = tree.sensors(temperatures=lambda: {"coretemp": [self.entry(lie, lie, lie)]}).read()
        assert readings.temperature is None
        assert "coretemp" in problems(readings)


class NotifyLibrary:
    """libSystem's two functions of notify(3)."""

    def __init__(self, level):
        self.level = level
        self.fails = ""
        self.registered = 0

    def notify_register_check(self, name, token):
        assert name == b"com.apple.system.thermalpressurelevel"
        self.registered += 1
        token._obj.value = 7
        return 1 if self.fails == "register" else 0

    def notify_get_state(self, token, state):
        assert token.value == 7
        assert isinstance(state._obj, ctypes.c_uint64)
        state._obj.value = self.level
        return 1 if self.fails == "state" else 0


class TestMac:
    @pytest.mark.parametrize(
        ("level", "expected"),
        [(0, Pressure.NOMINAL), (1, Pressure.WARM), (2, Pressure.HOT), (3, Pressure.CRITICAL), (4, Pressure.CRITICAL)],
    )
    def test_gives_its_thermal_pressure_in_place_of_a_temperature(self, tree, level, expected):
        readings = tree.sensors(thermal_pressure=ThermalPressure(NotifyLibrary(level))).read()
        assert (readings.pressure, readings.temperature) == (expected, None)
        assert not problems(readings)

    def test_may_say_a_level_that_it_does_not_have(self, tree):
        readings = tree.sensors(thermal_pressure=ThermalPressure(NotifyLibrary(2**63))).read()
        assert readings.pressure is None
        assert "thermal pressure" in problems(readings)

    @pytest.mark.parametrize("step", ["register", "state"])
    def test_is_registered_anew_after_a_failure(self, tree, step):
        library = NotifyLibrary(1)
        library.fails = step
        sensors = tree.sensors(thermal_pressure=ThermalPressure(library))
        assert "thermal pressure" in problems(sensors.read())
        library.fails = ""
        assert sensors.read().pressure is Pressure.WARM
        sensors.read()
        assert library.registered == 2

    def test_tells_its_memory_and_its_battery_by_psutil(self, tree):
        battery = SimpleNamespace(percent=80, power_plugged=False)
        readings = tree.sensors(memory_available=lambda: 5 * GIB, battery=lambda: battery).read()
        assert (readings.memory_available, readings.on_battery, readings.battery) == (5 * GIB, True, 0.8)

    def test_may_have_no_battery(self, tree):
        readings = tree.sensors(battery=lambda: None).read()
        assert (readings.on_battery, readings.battery) == (None, None)
        assert "battery" not in problems(readings)


class TestOverCurrent:
    def counts(self, tree, *counts):
        for number, count in enumerate(counts, 1):
            tree.write(f"sys/class/hwmon/hwmon2/oc{number}_event_cnt", count)

    @pytest.fixture
    def sensors(self, tree):
        tree.write("sys/class/hwmon/hwmon2/name", "soctherm_oc")
        self.counts(tree, 10, 20)
        sensors = tree.sensors()
        assert sensors.read().overcurrent is None
        return sensors

    def test_is_the_rate_of_the_events(self, tree, sensors):
        tree.clock.seconds += 2
        self.counts(tree, 13, 21)
        assert sensors.read().overcurrent == 2.0
        tree.clock.seconds += 2
        assert sensors.read().overcurrent == 0.0

    def test_outlives_the_next_search_for_sensors(self, tree, sensors):
        tree.clock.seconds += 100
        self.counts(tree, 20, 20)
        assert sensors.read().overcurrent == 0.1

    def test_takes_a_counter_that_went_back_for_one_that_began_anew(self, tree, sensors):
        tree.clock.seconds += 1
        self.counts(tree, 2, 21)
        assert sensors.read().overcurrent == 1.0

    @pytest.mark.parametrize("jump", [0.0, -500.0])
    def test_says_nothing_when_the_clock_stood_still_or_went_back(self, tree, sensors, jump):
        tree.clock.seconds += jump
        self.counts(tree, 99, 99)
        assert sensors.read().overcurrent is None
        tree.clock.seconds += 1
        assert sensors.read().overcurrent == 0.0

    @pytest.mark.parametrize("lie", [-1, "", "many"])
    def test_may_lie(self, tree, sensors, lie):
        self.counts(tree, lie)
        readings = sensors.read()
        assert readings.overcurrent is None
        assert "over-current" in problems(readings)


class TestPower:
    def supply(self, tree, name, **files):
        for key, value in files.items():
            tree.write(f"sys/class/power_supply/{name}/{key}", value)

    @pytest.mark.parametrize(
        ("status", "plugged", "expected"),
        [
            ("Discharging", 0, True),
            ("Discharging", 1, False),
            ("Charging", 0, False),
            ("Full", 1, False),
            ("Unknown", 0, None),
        ],
    )
    def test_comes_from_the_battery_only_without_mains(self, tree, status, plugged, expected):
        self.supply(tree, "BAT0", type="Battery", status=status, capacity=40)
        self.supply(tree, "AC", type="Mains", online=plugged)
        readings = tree.sensors().read()
        assert (readings.on_battery, readings.battery) == (expected, 0.4)

    def test_is_not_that_of_a_mouse(self, tree):
        self.supply(tree, "hid-mouse", type="Battery", scope="Device", status="Discharging", capacity=3)
        readings = tree.sensors().read()
        assert (readings.on_battery, readings.battery) == (None, None)

    @pytest.mark.parametrize("lie", [-1, 101, "", "low"])
    def test_may_come_with_a_charge_that_cannot_be(self, tree, lie):
        self.supply(tree, "BAT0", type="Battery", status="Discharging", capacity=lie)
        readings = tree.sensors().read()
        assert readings.battery is None
        assert "power supply BAT0" in problems(readings)

    def test_mode_is_nothing_where_nobody_sets_one(self, tree):
        assert tree.sensors().read().power_mode == ""

    def test_mode_is_the_number_where_nvpmodel_has_no_name_for_it(self, tree):
        tree.write("var/lib/nvpmodel/status", "pmode:0003")
        assert tree.sensors().read().power_mode == "nvpmodel 3"


class TestLoads:
    @pytest.mark.parametrize("lie", [-1, 1001, "", "busy"])
    def test_a_gpu_may_lie(self, tree, lie):
        tree.write("sys/devices/platform/gpu.0/load", lie)
        readings = tree.sensors().read()
        assert readings.gpu_load is None
        assert "GPU load" in problems(readings)

    def test_cores_that_the_power_mode_took_away_do_not_count(self, tree):
        mini_pc(tree)
        tree.again("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", errno.EBUSY)
        readings = tree.sensors().read()
        assert readings.frequency == 1.0
        assert not problems(readings)

    @pytest.mark.parametrize("lie", [0, -5, 10**15, "<unknown>"])
    def test_a_frequency_may_lie(self, tree, lie):
        mini_pc(tree)
        tree.write("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", lie)
        readings = tree.sensors().read()
        assert readings.frequency is None
        assert "CPU frequency" in problems(readings)


def test_what_a_sensor_said_is_shown_short_and_printable(tree):
    tree.zone(0, "cpu\x1b[31m-thermal" + "x" * 200, "\x1b[2J" + "9" * 5000)
    readings = tree.sensors().read()
    text = "".join(fact.name + fact.problem for fact in readings.sensors)
    assert text.isprintable() and len(text) < 500


def test_a_class_of_sensors_that_cannot_be_searched_does_not_take_the_others_with_it(tree, monkeypatch):
    orin_nano(tree)

    def broken(*_):
        raise RuntimeError("a loop of symbolic links")

    monkeypatch.setattr("edge.embedder.sensing.power.gpu", broken)
    readings = tree.sensors().read()
    assert readings.temperature == 49.125
    assert "GPU load" in problems(readings)


def test_this_machine_can_be_read():
    reading = Sensors(SystemClock()).read()
    assert reading.sensors


ANYTHING = st.one_of(
    st.binary(max_size=60),
    st.integers(-(10**21), 10**21).map(lambda number: f"{number}\n".encode()),
    st.integers(-300_000, 300_000).map(lambda number: f"{number}\n".encode()),
    st.sampled_from([b"", b"max\n", b"passive\n", b"Battery\n", b"0::/\n", b"4:memory:/../x\n", b"1e3", b"nan"]),
)


@pytest.fixture(scope="module")
def any_tree(tmp_path_factory):
    tree = SensorTree(tmp_path_factory.mktemp("any"))
    orin_nano(tree)
    mini_pc(tree)
    tree.cgroup_v1()
    tree.group_v1("/", limit=6 * GIB, usage=GIB)
    tree.group_v1("/box", limit=GIB)
    tree.write("sys/class/power_supply/BAT0/type", "Battery")
    tree.write("sys/class/power_supply/BAT0/status", "Full")
    tree.write("sys/class/power_supply/BAT0/capacity", 50)
    tree.files = sorted(path for path in tree.root.rglob("*") if path.is_file())
    return tree


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_the_files_hold_a_reading_is_made_and_its_values_can_be(any_tree, data):
    """Every file of a rich tree may hold anything; the files are not even written, only what is read of them."""
    chosen = data.draw(st.dictionaries(st.sampled_from(any_tree.files), ANYTHING, max_size=12))
    plain = any_tree.read_file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_tree, "read_file", lambda path: chosen[path] if path in chosen else plain(path))
        sensors = any_tree.sensors()
        for _ in range(2):
            any_tree.clock.seconds += 1
            readings = sensors.read()
            assert readings.temperature is None or 1 <= readings.temperature <= 150
            assert readings.trip is None or 40 <= readings.trip <= 150
            for share in (readings.gpu_load, readings.frequency, readings.battery):
                assert share is None or 0 <= share <= 1
            assert readings.memory_available is None or readings.memory_available >= 0
            assert readings.memory_pressure is None or 0 <= readings.memory_pressure <= 100
            assert readings.overcurrent is None or readings.overcurrent >= 0
            assert readings.power_mode.isprintable()
            for fact in readings.sensors:
                assert (fact.value is None) == bool(fact.problem)
