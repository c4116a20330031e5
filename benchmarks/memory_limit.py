"""A box in a memory cgroup with little room: it must take everything, be killed never, and not even touch the limit.

Run it as root, on Linux: python benchmarks/memory_limit.py. `--outside` runs the same without a group, for the curve.
Prints one JSON object. benchmarks/README.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edge.client import AsyncClient, IngestState

MB = 1024 * 1024
# Seconds after `ready` until the start's own work (the first page faults, the first upkeep) is over.
_SETTLE = 5.0
# Seconds that a box may take to stop.
_STOP = 30.0
_SYLLABLES = ("ka", "lo", "mi", "tu", "ren", "sa", "vel", "dor", "pin", "qua", "ze", "bri", "fo", "gan", "hul")
_CHARACTERS = "花盆钥匙阳台备用放在第三个下面今天明天我们一起去看电影吃饭喝茶下雨天气很好朋友家里书房电脑手机"


class Group:
    """A memory cgroup of its own, v1 or v2, removed at the end."""

    def __init__(self) -> None:
        """Raises SystemExit with a sentence where there is none to be had."""
        v1 = Path("/sys/fs/cgroup/memory")
        self._v2 = not (v1 / "memory.limit_in_bytes").exists()
        self.path = (Path("/sys/fs/cgroup") if self._v2 else v1) / f"edge-{uuid.uuid4().hex[:8]}"
        try:
            if self._v2:
                (self.path.parent / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
        except OSError as error:
            raise SystemExit(
                f"no memory cgroup can be made at {self.path} ({error.strerror}); run this as root on Linux with the "
                "memory controller, or leave the limit away with --outside"
            ) from None

    def usage(self) -> int:
        return self._number("memory.current" if self._v2 else "memory.usage_in_bytes")

    def peak(self) -> int:
        return self._number("memory.peak" if self._v2 else "memory.max_usage_in_bytes")

    def limit(self, size: int) -> None:
        (self.path / ("memory.max" if self._v2 else "memory.limit_in_bytes")).write_text(str(size))

    def failures(self) -> int:
        """How often the limit was hit, and something had to be reclaimed first."""
        return self._field("memory.events", "max") if self._v2 else self._number("memory.failcnt")

    def kills(self) -> int:
        return self._field("memory.events" if self._v2 else "memory.oom_control", "oom_kill")

    def parts(self) -> tuple[int, int]:
        """Bytes of (the processes' own memory, cached files)."""
        names = ("anon", "file") if self._v2 else ("rss", "cache")
        return self._field("memory.stat", names[0]), self._field("memory.stat", names[1])

    def remove(self) -> None:
        # A process that has ended is in there for a moment longer.
        end = time.monotonic() + _STOP
        while (self.path / "cgroup.procs").read_text() and time.monotonic() < end:
            time.sleep(0.05)
        self.path.rmdir()

    def _number(self, name: str) -> int:
        return int((self.path / name).read_text())

    def _field(self, name: str, field: str) -> int:
        found = re.search(rf"^{field} (\d+)$", (self.path / name).read_text(), re.MULTILINE)
        return int(found.group(1)) if found else 0


class Curve:
    """What the box holds, looked at four times a second on a thread of its own, kept by progress."""

    def __init__(self, pid: int, group: Group | None) -> None:
        self.samples: list[dict[str, float]] = []
        self._pid, self._group = pid, group
        self._ended = threading.Event()
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def thinned(self, count: int = 24) -> list[dict[str, float]]:
        return self.samples[:: max(1, len(self.samples) // count)]

    def _follow(self) -> None:
        while not self._ended.wait(0.25):
            seconds = round(time.monotonic() - self._begun, 1)
            sample: dict[str, float] = {"s": seconds, "rss_mb": round(memory_of(self._pid, "VmRSS") / MB)}
            if self._group is not None:
                own, files = self._group.parts()
                sample |= {
                    "usage_mb": round(self._group.usage() / MB),
                    "own_mb": round(own / MB),
                    "files_mb": round(files / MB),
                    "failures": self._group.failures(),
                }
            self.samples.append(sample)


def memory_of(pid: int, name: str) -> int:
    """Bytes of "VmRSS" or "VmHWM" (the peak) of a process; 0 for one that has ended."""
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


def start(data: Path, group: Group | None) -> subprocess.Popen[str]:
    """`edge serve` on a free port, born inside the group: what it loads is charged to it."""
    box = [sys.executable, "-m", "edge.cli", "serve", "--data", str(data), "--no-auth", "--listen", "127.0.0.1:0"]
    enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group.path)] if group else []
    return subprocess.Popen(  # noqa: S603  # our own interpreter
        [*enter, *box], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def address_of(process: subprocess.Popen[str]) -> str:
    """Waits until the box is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return next(word for word in line.split() if re.fullmatch(r"\S+:\d+", word))
    raise SystemExit("the box ended before it was ready; start it by hand to see why: edge serve")


def turns(count: int, long: int, long_bytes: int, seed: int = 1) -> Iterator[Mapping[str, Any]]:
    """Half Chinese, half in Latin letters, 8 to 300 characters; `long` of them, evenly spread, of `long_bytes`."""
    rng = random.Random(seed)  # noqa: S311  # texts, not secrets
    every = count // long if long else count + 1
    for seq in range(count):
        chinese = seq % 2 == 0
        size = int(2 ** rng.uniform(3, 8.2))
        if seq % every == every // 2:
            chinese = seq // every % 2 == 0
            size = long_bytes // 3 - 1000 if chinese else long_bytes - 1000
        yield {"source": "bench", "session": "limit", "seq": seq, "role": "user", "text": text(rng, size, chinese, seq)}


def text(rng: random.Random, size: int, chinese: bool, number: int) -> str:
    parts, length = [f"{number} "], 0
    while length < size:
        if chinese:
            parts.append("".join(rng.choices(_CHARACTERS, k=rng.randint(6, 30))) + "。")
        else:
            parts.append(" ".join("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) for _ in range(12)) + ". ")
        length += len(parts[-1])
    return "".join(parts)[: size + 10]


async def ingest(address: str, said: Iterator[Mapping[str, Any]]) -> tuple[int, int, int]:
    """How many turns became searchable, how many memories they are, and how many of those have a vector."""
    async with AsyncClient.connect(address) as client:
        found = 0
        async for one in client.ingest(said, wait="searchable", batch=16):
            found += one.state is IngestState.SEARCHABLE
        spaces = (await client.status()).spaces
        return found, sum(space.memories for space in spaces), sum(space.vectors for space in spaces)


def measure(data: Path, count: int, long: int, long_bytes: int, room: int, group: Group | None) -> dict[str, Any]:
    """The run's figures. `finished`: the box still runs, and all became searchable, by their meaning too."""
    process = start(data, group)
    try:
        address = address_of(process)
        time.sleep(_SETTLE)
        idle, idle_rss = group.usage() if group else 0, memory_of(process.pid, "VmRSS")
        if group:
            group.limit(idle + room)
        failures = group.failures() if group else 0
        curve = Curve(process.pid, group)
        begun = time.monotonic()
        found, memories, vectors = asyncio.run(ingest(address, turns(count, long, long_bytes)))
        seconds = time.monotonic() - begun
        curve.end()
        figures: dict[str, Any] = {
            "finished": process.poll() is None and found == count and vectors == memories,
            "turns": found,
            "memories": memories,
            "vectors": vectors,
            "seconds": round(seconds, 1),
            "idle_rss_mb": round(idle_rss / MB),
            "peak_rss_mb": round(memory_of(process.pid, "VmHWM") / MB),
            "curve": curve.thinned(),
        }
        if group:
            figures |= {
                "idle_mb": round(idle / MB),
                "limit_mb": round((idle + room) / MB),
                "peak_mb": round(group.peak() / MB),
                "kills": group.kills(),
                "failures": group.failures() - failures,
            }
        return figures
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5000)
    parser.add_argument("--long", type=int, default=6, help="turns of --long-bytes among them")
    parser.add_argument("--long-bytes", type=int, default=MB)
    parser.add_argument("--room", type=float, default=200, help="megabytes above the idle footprint")
    parser.add_argument("--outside", action="store_true", help="without a group")
    chosen = parser.parse_args(arguments)
    group = None if chosen.outside else Group()
    data = Path(tempfile.mkdtemp(prefix="edge-"))
    try:
        figures = measure(data, chosen.turns, chosen.long, chosen.long_bytes, int(chosen.room * MB), group)
    finally:
        shutil.rmtree(data, ignore_errors=True)
        if group:
            group.remove()
    print(json.dumps(figures))
    return 0 if figures["finished"] and not figures.get("kills") and not figures.get("failures") else 1


if __name__ == "__main__":
    sys.exit(main())
