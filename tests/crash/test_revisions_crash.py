"""Kill -9 in the middle of deciding, undoing, hiding and erasing: what was answered holds, and log and tables agree."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from traces import found, word

from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.types import Filter, MemoryState
from edge.upkeep.verify import verify_data

# Works on memories that are there, so that a kill comes in the middle of revisions and of no ingest.
WRITER = """
import random, sys
from pathlib import Path
from edge.appliance import core
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.errors import EdgeError
from edge.types import Filter, MemoryState as State

chance = random.Random(sys.argv[2])
with core(Path(sys.argv[1]), Config(), HashEmbedder(8)) as box:
    space = box.spaces.open("public")
    here = space.revisions
    print("ready", flush=True)
    done = []
    while True:
        ids = [memory.id for memory in space.list_page(Filter(), 1000, None)]
        some = chance.sample(ids, min(len(ids), chance.choice([1, 2, 60])))
        try:
            kind = chance.choice(["confirm", "merge", "undo", "undo", "hide", "erase", "carry out"])
            if kind == "confirm":
                made = here.revise(
                    lambda q: [here.change(m, state=State.CONFIRMED) for m in q.by_ids(some).values()],
                    "confirmed", "me",
                )
                if made:
                    done.append(made.id)
                    print("state", "CONFIRMED", *some, flush=True)
            elif kind == "merge" and len(some) > 1:
                made = here.revise(
                    lambda q: [here.change(q.by_ids([id])[id], state=State.SUPERSEDED, replaced_by=some[0])
                               for id in some[1:]],
                    "merged", "rule",
                )
                done.append(made.id)
                print("state", "SUPERSEDED", *some[1:], flush=True)
            elif kind == "undo" and done:
                id = done.pop()
                undone = here.undo(id, "me")
                for change in undone.changes:
                    if "state" in change.after:
                        print("state", change.after["state"].name, change.id, flush=True)
            elif kind == "hide":
                receipt = space.forget(some[:1], None, False, grace=10**9)
                done.append(receipt.id)
                print("state", "FORGOTTEN", *receipt.memory_ids, flush=True)
            elif kind == "erase" and chance.random() < 0.3:
                receipt = space.forget(some[:1], None, False)
                print("gone", *receipt.memory_ids, flush=True)
            elif kind == "carry out" and chance.random() < 0.1:
                for receipt in space.finish_forgets(2**60):
                    print("gone", *receipt.memory_ids, flush=True)
        except EdgeError:
            pass
"""


@pytest.mark.parametrize("seed", range(2))
def test_what_was_answered_outlives_a_kill(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with core(tmp_path, Config(), HashEmbedder(8)) as box:
        from edge.types import Turn

        turns = [
            Turn("t", f"s{n}", 0, "user", 10**15 + n, f"第{n}件 秘密{n:03}x", state=MemoryState.CANDIDATE)
            for n in range(300)
        ]
        stored = box.spaces.open("public").ingest.store(turns).result(60)
        stored.searchable.result(60)
        texts = {result.memory_ids[0]: turn.text for result, turn in zip(stored.results, turns, strict=True)}
    told: dict[str, str] = {}
    gone: set[str] = set()
    for round in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"{seed}-{round}"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert next(lines) == "ready\n"
        said = [next(lines) for _ in range(chance.randint(5, 60))]
        process.send_signal(signal.SIGKILL)
        # What it said before it died counts as well; a last word without its newline does not.
        said += [line for line in lines if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        for line in said:
            what, *rest = line.split()
            if what == "gone":
                gone.update(rest)
            else:
                told |= dict.fromkeys(rest[1:], rest[0])
        with core(tmp_path, Config(), HashEmbedder(8)) as box:
            space = box.spaces.open("public")
            now = space.queries.by_ids(list(texts))
            assert not gone & now.keys()
            # The last deed may have been done and not told of any more.
            different = [id for id, state in told.items() if id in now and now[id].state.name != state]
            last = {id for deed in space.revisions.latest(3) for id in deed.memory_ids}
            assert set(different) <= last
            told |= {id: now[id].state.name for id in different}
            gone |= texts.keys() - now.keys()
            before = {id: (memory.state, memory.replaced_by) for id, memory in now.items()}
            box.spaces.rebuild("public", from_log=True)
            again = box.spaces.open("public").queries.by_ids(list(texts))
            assert {id: (memory.state, memory.replaced_by) for id, memory in again.items()} == before
            shown = {memory.id for memory in box.spaces.open("public").list_page(Filter(), 1000, None)}
            hidden = (MemoryState.SUPERSEDED, MemoryState.FORGOTTEN)
            assert shown == {id for id, memory in again.items() if memory.state not in hidden}
        assert verify_data(tmp_path).problems == []
        for id in gone:
            assert found(tmp_path, word(texts[id].split()[1])) == []
