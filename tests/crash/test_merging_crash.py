"""Kill -9 in the middle of merging: it goes on after it, nothing is merged twice, and one memory of each fact lives."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.space import Space
from edge.types import Filter, MemoryState, Turn
from edge.upkeep.verify import verify_data

FACTS = ("我对花生过敏", "我家的猫叫豆包", "我的车停在地下二层")
SAID = 40
# Merges until it is killed, and says how far it is.
MERGER = """
import sys, time
from pathlib import Path
from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder

with core(Path(sys.argv[1]), Config(), HashEmbedder(64)) as box:
    space = box.spaces.open("public")
    space.drained().result()
    while box.merger.slice(space):
        print("slice", flush=True)
    print("done", flush=True)
    time.sleep(60)
"""


def settle(box: object, space: Space) -> None:
    space.drained().result()
    while box.merger.slice(space):  # type: ignore[attr-defined]  # a Core
        pass


@pytest.mark.parametrize("seed", range(2))
def test_a_kill_in_the_middle_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with core(tmp_path, Config(), HashEmbedder(64)) as box:
        turns = [
            Turn("t", f"s{n}", 0, "user", 10**15 + n * 10**6, FACTS[n % 3], state=MemoryState.CANDIDATE)
            for n in range(3 * SAID)
        ]
        stored = box.spaces.open("public").ingest.store(turns).result(60)
        ids = [result.memory_ids[0] for result in stored.results]
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", MERGER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        # Somewhere in what comes next.
        time.sleep(chance.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with core(tmp_path, Config(), HashEmbedder(64)) as box:
        space = box.spaces.open("public")
        settle(box, space)
        check(space, ids)
        box.spaces.rebuild("public", from_log=True)
        space = box.spaces.open("public")
        settle(box, space)
        check(space, ids)
    assert verify_data(tmp_path).problems == []


def check(space: Space, ids: list[str]) -> None:
    living = space.list_page(Filter(), 1000, None)
    assert [(memory.id, memory.state) for memory in living] == [(id, MemoryState.CONFIRMED) for id in ids[:-4:-1]]
    merges = [deed for deed in space.revisions.latest(1000) if deed.why == "merged"]
    assert Counter(deed.memory_ids[0] for deed in merges) == Counter(ids[:-3])
    assert [space.merges.times_said(memory.id, 1000) for memory in living] == [SAID] * 3
