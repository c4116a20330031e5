"""Kill -9 in the middle of writing: what was acknowledged is there, and the log goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edge.ledger.events import TurnSaid
from edge.ledger.log import Log
from edge.ledger.verify import verify

WRITER = """
import sys, time
from pathlib import Path
from edge.ledger.events import TurnSaid
from edge.ledger.log import Log
from edge.types import Turn

class Clock:
    def now(self): return time.time_ns() // 1000
    def monotonic(self): return time.monotonic()

log = Log(Path(sys.argv[1]), clock=Clock(), segment_bytes=20_000, on_durable=lambda events: None)
i = log.last_n
print("ready", flush=True)
while True:
    futures = []
    for _ in range(7):
        i += 1
        turn = Turn("crash", "s", i, "user", 0, f"turn {i} " + "x" * (i % 300))
        futures.append(log.submit(
            lambda numbers, turn=turn: ([TurnSaid(numbers.next(), numbers.at, turn, turn.fingerprint(), ())], turn.seq)
        ))
    for future in futures:
        print(future.result()[1], flush=True)
"""


class Clock:
    def now(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize("seed", range(5))
def test_every_acknowledged_turn_outlives_a_kill(tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "log"
    rng = random.Random(seed)
    acknowledged: set[int] = set()
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(directory)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(rng.randint(1, 400)):
            acknowledged.add(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        # What it said before it died counts as well; a last word without its newline does not.
        acknowledged |= {int(line) for line in process.stdout if line.endswith("\n")}
        process.wait()
        process.stdout.close()
    log = Log(directory, clock=Clock(), segment_bytes=20_000, on_durable=lambda events: None)
    found = [event.turn.seq for event in log.replay() if isinstance(event, TurnSaid)]
    log.close()
    assert acknowledged <= set(found) and found == list(range(1, len(found) + 1))
    report = verify(tmp_path)
    assert report.problems == [] and report.damaged_lines == 0 and report.turns == len(found)
