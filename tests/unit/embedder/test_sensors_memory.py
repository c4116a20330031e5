"""The memory that is left, by the system and by control groups of both versions."""

import errno

import pytest
from sensor_tree import GIB, MIB, UNLIMITED, SensorTree


@pytest.fixture
def tree(tmp_path):
    tree = SensorTree(tmp_path)
    tree.zone(0, "cpu-thermal", 40000)
    tree.meminfo(total=8 * GIB, available=4 * GIB)
    return tree


def available(tree):
    readings = tree.sensors().read()
    assert not [fact for fact in readings.sensors if fact.problem]
    return readings.memory_available


def problems(tree):
    return {fact.name: fact.problem for fact in tree.sensors().read().sensors if fact.problem}


class TestVersion1:
    def test_a_limit_leaves_what_is_not_used(self, tree):
        tree.cgroup_v1("/box")
        tree.group_v1("")
        tree.group_v1("/box", limit=500 * MIB, usage=200 * MIB)
        assert available(tree) == 300 * MIB

    def test_file_pages_that_nobody_used_lately_count_as_available(self, tree):
        tree.cgroup_v1("/box")
        tree.group_v1("/box", limit=500 * MIB, usage=490 * MIB, inactive=90 * MIB)
        assert available(tree) == 100 * MIB

    def test_the_limit_of_a_parent_holds_for_its_children(self, tree):
        tree.cgroup_v1("/home/box")
        tree.group_v1("")
        tree.group_v1("/home", limit=GIB, usage=GIB - 50 * MIB)
        tree.group_v1("/home/box", limit=500 * MIB, usage=100 * MIB)
        assert available(tree) == 50 * MIB

    def test_the_limit_of_a_parent_without_hierarchy_does_not(self, tree):
        tree.cgroup_v1("/home/box")
        tree.group_v1("/home", limit=GIB, usage=GIB, hierarchy=0)
        tree.group_v1("/home/box", limit=500 * MIB, usage=100 * MIB)
        assert available(tree) == 400 * MIB

    def test_the_number_that_stands_for_no_limit_is_none(self, tree):
        tree.cgroup_v1("/box")
        tree.group_v1("/box", limit=UNLIMITED, usage=7 * GIB)
        assert available(tree) == 4 * GIB

    def test_a_container_sees_its_group_as_the_root_of_the_mount(self, tree):
        tree.cgroup_v1("/docker/abc/inner", root="/docker/abc")
        tree.group_v1("", limit=GIB, usage=0)
        tree.group_v1("/inner", limit=2 * GIB, usage=0)
        assert available(tree) == GIB

    @pytest.mark.parametrize("path", ["/../other", "/docker/xyz"])
    def test_a_path_outside_the_mount_means_the_mounted_group(self, tree, path):
        tree.cgroup_v1(path, root="/docker/abc")
        tree.group_v1("", limit=GIB, usage=0)
        assert available(tree) == GIB

    def test_a_group_over_its_limit_leaves_nothing(self, tree):
        tree.cgroup_v1("/box")
        tree.group_v1("/box", limit=100 * MIB, usage=120 * MIB)
        assert available(tree) == 0


class TestVersion2:
    def test_the_lower_of_max_and_high_counts(self, tree):
        tree.cgroup_v2("/edge")
        tree.group_v2("/edge", most=500 * MIB, high=400 * MIB, current=250 * MIB, inactive=50 * MIB)
        assert available(tree) == 200 * MIB

    def test_max_means_no_limit(self, tree):
        tree.cgroup_v2("/edge")
        tree.group_v2("/edge", current=6 * GIB)
        assert available(tree) == 4 * GIB

    def test_groups_around_it_count_and_the_topmost_has_no_files(self, tree):
        tree.cgroup_v2("/system.slice/edge.service")
        tree.group_v2("/system.slice", high=GIB, current=GIB - 10 * MIB)
        tree.group_v2("/system.slice/edge.service", most=500 * MIB, current=100 * MIB)
        assert available(tree) == 10 * MIB

    def test_a_mount_may_have_a_space_in_its_name(self, tree):
        tree.cgroup_v2("/edge", mount="/sys/fs/c\\040group")
        for name, value in (("memory.max", GIB), ("memory.current", 0), ("memory.stat", "inactive_file 0")):
            tree.write(f"sys/fs/c group/edge/{name}", value)
        assert available(tree) == GIB

    def test_its_own_pressure_goes_before_the_systems(self, tree):
        tree.cgroup_v2("/edge")
        tree.group_v2("/edge")
        tree.write("proc/pressure/memory", "some avg10=55.00 avg60=0.00 avg300=0.00 total=1")
        assert tree.sensors().read().memory_pressure == 55.0
        tree.write("sys/fs/cgroup/edge/memory.pressure", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1")
        assert tree.sensors().read().memory_pressure == 12.5

    def test_a_process_that_was_moved_is_followed(self, tree):
        tree.cgroup_v2("/old")
        tree.group_v2("/old", most=GIB)
        sensors = tree.sensors()
        assert sensors.read().memory_available == GIB
        tree.cgroup_v2("/new")
        tree.group_v2("/new", most=GIB // 2)
        (tree.root / "sys/fs/cgroup/old/memory.current").unlink()
        assert sensors.read().memory_available == GIB // 2

    @pytest.mark.parametrize("lie", ["", "lots", "-1", "99999999999999999999", b"\xff"])
    def test_a_limit_that_is_none_is_told(self, tree, lie):
        tree.cgroup_v2("/edge")
        tree.group_v2("/edge", most=lie)
        assert "memory of the control group" in problems(tree)
        assert tree.sensors().read().memory_available == 4 * GIB


def test_without_control_groups_the_system_decides(tree):
    assert available(tree) == 4 * GIB


@pytest.mark.parametrize("content", ["", "MemTotal: lots", "MemTotal:  1000 kB\nMemAvailable:  1000000000 kB", b"\xff"])
def test_a_meminfo_that_cannot_be_is_told(tree, content):
    tree.write("proc/meminfo", content)
    assert "memory" in problems(tree)
    assert tree.sensors().read().memory_available is None


def test_no_memory_at_all_is_a_reading_and_not_a_lie(tree):
    tree.meminfo(available=0)
    assert available(tree) == 0


def test_a_kernel_without_pressure_accounting_is_no_problem(tree):
    tree.write("proc/pressure/memory", "")
    tree.again("proc/pressure/memory", errno.EOPNOTSUPP)
    assert not problems(tree)


@pytest.mark.parametrize("lie", ["", "some", "some avg10=nan avg60=0", "some avg10=101.00 avg60=0.00", b"\xff"])
def test_a_pressure_that_cannot_be_is_told(tree, lie):
    tree.write("proc/pressure/memory", lie)
    assert "memory pressure" in problems(tree)
    assert tree.sensors().read().memory_pressure is None
