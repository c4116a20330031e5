"""Kill -9 in the middle of putting and deleting: what was acknowledged holds, what was deleted is gone."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edge.config import Limits
from edge.ledger.scrub import scrub
from edge.working.states import States

WRITER = """
import sys, time
from pathlib import Path
from edge.config import Limits
from edge.ledger.scrub import scrub
from edge.working.states import States

class Clock:
    def now(self): return time.time_ns() // 1000
    def monotonic(self): return time.monotonic()

states = States(Path(sys.argv[1]) / "box.sqlite", Clock(), Limits(), scrub)
start = int(sys.argv[2])
print("ready", flush=True)
for i in range(start, start + 100_000):
    key = f"k{i % 40}"
    states.put("work", key, f"<secret {i}>" + "x" * (i * 37 % 9000)).result()
    print("put", i, flush=True)
    if i % 3 == 0:
        states.delete("work", key).result()
        print("deleted", i, flush=True)
"""


class Clock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_outlives_a_kill_and_what_was_deleted_does_not(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    held: dict[str, int] = {}
    gone: set[int] = set()
    last = -1
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(last + 2)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        said = [process.stdout.readline() for _ in range(chance.randint(1, 120))]
        process.send_signal(signal.SIGKILL)
        # What it said before it died counts as well; a last word without its newline does not.
        said += [line for line in process.stdout if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        for line in said:
            what, number = line.split()
            last = int(number)
            if what == "put":
                held[f"k{last % 40}"] = last
            else:
                del held[f"k{last % 40}"]
                gone.add(last)
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert not [i for i in gone if f"<secret {i}>".encode() in files]
        states = States(tmp_path / "box.sqlite", Clock(), Limits(), scrub)
        found, _ = states.page("work", "", count=1000, room=1 << 30).result()
        kept = {state.key: int(str(state.value).split()[1].partition(">")[0]) for state in found}
        # Of the one that it was at when it died nobody was told.
        under_way = {f"k{(last + 1) % 40}", f"k{last % 40}"}
        assert {k: v for k, v in kept.items() if k not in under_way} == {
            k: v for k, v in held.items() if k not in under_way
        }
        for key in under_way & held.keys() - kept.keys():
            assert held[key] == last and last % 3 == 0
        held = kept
        states.close()
