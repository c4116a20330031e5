"""Lays the files that a device's kernel would show, under a folder of the test's own."""

import errno
import os

from edge.embedder.sensing.calls import Calls
from edge.embedder.sensing.probes import read_file
from edge.embedder.sensors import Sensors

UNLIMITED = 9223372036854771712
GIB = 1 << 30
MIB = 1 << 20


class Clock:
    """Stands still until a test moves it."""

    def __init__(self):
        self.seconds = 1000.0

    def now(self):
        return 0

    def monotonic(self):
        return self.seconds


class SensorTree:
    """A root, its clock, and a reader that can be told to fail for some files."""

    def __init__(self, root):
        self.root = root
        self.clock = Clock()
        # Path under the root: what happens before it is read; it may raise, or block.
        self.before = {}

    def write(self, path, content):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else f"{content}\n".encode()
        target.write_bytes(data)

    def read_file(self, path):
        action = self.before.get(str(path.relative_to(self.root)))
        if action is not None:
            action()
        return read_file(path)

    def again(self, path, code=errno.EAGAIN):
        """The file answers with an error number, as Orin Nano's zones do with EAGAIN."""

        def fail():
            raise OSError(code, os.strerror(code))

        self.before[path] = fail

    def sensors(self, **calls):
        return Sensors(self.clock, root=self.root, read_file=self.read_file, calls=Calls(**calls))

    def zone(self, number, kind, temperature, **trips):
        """Thousandths of a degree, as the kernel has them; a trip is passive=…, hot=…, critical=… or active=…"""
        folder = f"sys/class/thermal/thermal_zone{number}"
        self.write(f"{folder}/type", kind)
        self.write(f"{folder}/temp", temperature)
        for place, (name, value) in enumerate(trips.items()):
            self.write(f"{folder}/trip_point_{place}_type", name)
            self.write(f"{folder}/trip_point_{place}_temp", value)
        return f"{folder}/temp"

    def meminfo(self, total=8 * GIB, available=4 * GIB, **more):
        values = {"MemTotal": total, "MemAvailable": available, **more}
        self.write("proc/meminfo", "\n".join(f"{name}:    {value // 1024} kB" for name, value in values.items()))

    def cgroup_v1(self, path="/box", root="/"):
        self.write("proc/self/cgroup", f"9:name=systemd:/\n4:memory:{path}\n1:cpu,cpuacct:/\n0::/")
        self.write(
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
            f"35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        )

    def group_v1(self, path, limit=UNLIMITED, usage=0, inactive=0, hierarchy=1):
        folder = f"sys/fs/cgroup/memory{path}"
        self.write(f"{folder}/memory.limit_in_bytes", limit)
        self.write(f"{folder}/memory.usage_in_bytes", usage)
        self.write(f"{folder}/memory.stat", f"inactive_file 4096\ntotal_inactive_file {inactive}")
        self.write(f"{folder}/memory.use_hierarchy", hierarchy)

    def cgroup_v2(self, path="/system.slice/edge.service", mount="/sys/fs/cgroup", root="/"):
        self.write("proc/self/cgroup", f"0::{path}")
        self.write(
            "proc/self/mountinfo", f"30 24 0:26 {root} {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
        )

    def group_v2(self, path, most="max", high="max", current=0, inactive=0):
        folder = f"sys/fs/cgroup{path}"
        self.write(f"{folder}/memory.max", most)
        self.write(f"{folder}/memory.high", high)
        self.write(f"{folder}/memory.current", current)
        self.write(f"{folder}/memory.stat", f"anon 1\nactive_file 4096\ninactive_file {inactive}")


def orin_nano(tree):
    """The names and trips of an Orin Nano on JetPack 6; its cv zones answer EAGAIN while that part is off."""
    tree.zone(0, "cpu-thermal", 48500, passive=99000, critical=104500)
    tree.zone(1, "gpu-thermal", 47250, passive=99000, critical=104500)
    for number in range(3):
        tree.again(tree.zone(2 + number, f"cv{number}-thermal", 0, passive=99000))
        tree.zone(5 + number, f"soc{number}-thermal", 46000 + number)
    tree.zone(8, "tj-thermal", 49125, active=51000, critical=104500)
    tree.write("sys/class/hwmon/hwmon2/name", "soctherm_oc")
    for number, count in ((1, 0), (2, 5), (3, 7)):
        tree.write(f"sys/class/hwmon/hwmon2/oc{number}_event_cnt", count)
    tree.write("sys/devices/platform/17000000.gpu/load", 640)
    devfreq = tree.root / "sys/class/devfreq/17000000.gpu"
    devfreq.mkdir(parents=True)
    (devfreq / "device").symlink_to(tree.root / "sys/devices/platform/17000000.gpu")
    (tree.root / "sys/devices/platform/gpu.0").symlink_to(tree.root / "sys/devices/platform/17000000.gpu")
    tree.write("var/lib/nvpmodel/status", "pmode:0001 fmode:quiet")
    tree.write("etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=15W >\nCPU_ONLINE CORE_0 1\n< POWER_MODEL ID=1 NAME=7W >")
    tree.meminfo(NvMapMemUsed=2 * GIB)


def orin_agx(tree):
    """The older spelling, of JetPack 5 on an AGX, without a junction zone that speaks."""
    tree.zone(0, "CPU-therm", 51000, passive=99000, critical=104500)
    tree.zone(1, "GPU-therm", 55500, passive=98000, critical=104500)
    tree.zone(2, "CV0-therm", -256000)
    tree.zone(3, "SOC0-therm", 50000)
    tree.zone(4, "PMIC-Die", 100000, passive=60000)
    tree.again(tree.zone(5, "tj-therm", 0))
    tree.meminfo(total=64 * GIB, available=50 * GIB)


def mini_pc(tree):
    tree.zone(0, "acpitz", 27800, critical=119000)
    tree.zone(1, "x86_pkg_temp", 61000, passive=0)
    tree.write("sys/class/power_supply/AC/type", "Mains")
    tree.write("sys/class/power_supply/AC/online", 1)
    for number, frequency in enumerate((1_500_000, 3_600_000)):
        folder = f"sys/devices/system/cpu/cpufreq/policy{number}"
        tree.write(f"{folder}/scaling_cur_freq", frequency)
        tree.write(f"{folder}/cpuinfo_max_freq", 3_000_000)
        tree.write(f"{folder}/scaling_governor", "powersave")
    tree.meminfo()
    tree.write("proc/pressure/memory", "some avg10=1.25 avg60=0.50 avg300=0.00 total=99\nfull avg10=0.00 avg60=0.00")
