"""Kill -9 in the middle of a sweep and of a move to the cold file: no text is lost, and the next start finishes."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from traces import found, written

from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.ledger.coldfiles import paths, read
from edge.space import Space
from edge.types import DAY, Filter, MemoryState, Turn
from edge.upkeep.fading import Fading
from edge.upkeep.verify import verify_data

# Goes on forgetting what it says it forgets, too.
WRITER = """
import random, sys
from pathlib import Path
from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.errors import EdgeError
from edge.ledger import revising
from edge.upkeep import fading
from edge.types import DAY

revising.AT_ONCE = fading.AT_ONCE = 7
chance = random.Random(sys.argv[2])
with core(Path(sys.argv[1]), Config(), HashEmbedder(8)) as box:
    space = box.spaces.open("public")
    sweep = fading.Fading(box.spaces, box.config.decay, box.clock).sweep
    now = box.clock.now()
    print("ready", flush=True)
    while True:
        sweep(space, now + 100 * DAY)
        sweep(space, now)
        sweep(space, now + 100 * DAY)
        sweep(space, now + 200 * DAY, cold=True)
        print("swept", flush=True)
        for deed in space.revisions.latest(200):
            if deed.why == "cooled" and not deed.undone_by and chance.random() < 0.7:
                space.revisions.undo(deed.id, "me")
        if chance.random() < 0.5:
            ids = sys.stdin.readline().split()
            print("forgetting", *ids, flush=True)
            space.forget(ids, None, False)
            print("gone", *ids, flush=True)
"""


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_and_what_was_begun_is_finished(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with core(tmp_path, Config(), HashEmbedder(8)) as box:
        turns = [
            Turn("t", f"s{n}", 0, "user", 10**15 + n, f"第{n}件东西 秘密{n:03}x", state=state, weight=weight)
            for n in range(60)
            for state, weight in [(MemoryState.CONFIRMED, 5.0) if n % 10 == 0 else (MemoryState.TEMPORARY, 1.0)]
        ]
        stored = box.spaces.open("public").ingest.store(turns).result(60)
        stored.searchable.result(60)
        texts = {result.memory_ids[0]: turn.text for result, turn in zip(stored.results, turns, strict=True)}
    explicit = {id for id, turn in zip(texts, turns, strict=True) if turn.weight == 5.0}
    gone: set[str] = set()
    victims = [id for id in texts if id not in explicit]
    for round in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"{seed}-{round}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdin.write("".join(f"{victims.pop()}\n" for _ in range(5)))
        process.stdin.flush()
        lines = iter(process.stdout.readline, "")
        assert next(lines) == "ready\n"
        try:
            process.wait(chance.uniform(0.01, 0.7))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        said = [line.split() for line in lines if line.endswith("\n")]
        process.wait()
        process.stdin.close()
        process.stdout.close()
        gone |= {id for what, *ids in said if what == "gone" for id in ids}
        perhaps = {id for what, *ids in said if what == "forgetting" for id in ids} - gone
        assert verify_after_a_start(tmp_path, texts, explicit, gone, perhaps)
        with core(tmp_path, Config(), HashEmbedder(8)) as box:
            gone |= perhaps - everywhere(box.spaces.open("public"), texts)
    with core(tmp_path, Config(), HashEmbedder(8)) as box:
        space = box.spaces.open("public")
        box.spaces.rebuild("public", from_log=True)
        space = box.spaces.open("public")
        fading = Fading(box.spaces, box.config.decay, box.clock)
        now = box.clock.now()
        for late, cold in ((100 * DAY, False), (400 * DAY, True)):
            fading.sweep(space, now + late, cold=cold)
        assert {memory.id for memory in space.list_page(Filter(include_archived=True), 1000, None)} >= explicit
        assert everywhere(space, texts) == texts.keys() - gone
    assert verify_data(tmp_path).problems == []
    for id in gone:
        assert found(tmp_path, written(texts[id].split()[1])) == []


def verify_after_a_start(
    data: Path, texts: dict[str, str], explicit: set[str], gone: set[str], perhaps: set[str]
) -> bool:
    with core(data, Config(), HashEmbedder(8)) as box:
        space = box.spaces.open("public")
        there = everywhere(space, texts)
        assert not gone & there
        assert texts.keys() - gone - perhaps <= there
        for memory in space.by_ids(sorted(explicit)):
            assert not memory.archived
        # What nothing finds any more is out of the log, too.
        with space._database.reader() as connection:
            rows = connection.execute("SELECT id FROM memories WHERE state = 7 AND text <> ''").fetchall()
        assert rows == []
    assert verify_data(data).problems == []
    return True


def everywhere(space: Space, texts: dict[str, str]) -> set[str]:
    """The memories whose text is at hand, in the archive, or in the cold file; each whole."""
    there = {memory.id: memory.text for memory in space.by_ids(list(texts))}
    for path in paths(space.directory / "log" / "cold"):
        for line in map(json.loads, read(path)):
            there[line["pieces"][0][0]] = line["text"]
    assert all(texts[id] == text for id, text in there.items())
    return set(there)
