"""What a sweep costs in a space of 100,000 memories, and whether a recall has to wait for it.

python benchmarks/fading.py [--memories N] [--keep DIRECTORY]

Needs no model: vectors are hashes of 16 numbers, since what is measured is the ledger. The space is filled and its
index built (two minutes), then swept by a clock that is 400 days ahead, so that everything is due, and by the true one,
so that everything comes back. First alone, then beside a thread that recalls all the time; a recall's longest wait is
given beside that of recalls with nothing beside them. Prints one JSON
object: seconds by the wall and of processor time, and milliseconds of recalls.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge.appliance import Core, core
from edge.cli.benches import corpus
from edge.clock import SystemClock
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.space import Space
from edge.types import DAY, Depth, Question, Turn
from edge.upkeep.fading import Fading

AHEAD = 400 * DAY
SEED = 7
_BATCH = 256


def fill(space: Space, count: int, now: int) -> None:
    texts = corpus.turns(count, SEED, 10, 60)
    for start in range(0, count, _BATCH):
        turns = [
            Turn("bench", f"s{n // 50}", n, "user", now - (count - n) * 1000, text)
            for n, text in enumerate(texts[start : start + _BATCH], start)
        ]
        space.ingest.store(turns).result()
    space.drained().result()


def settle(box: Core, space: Space) -> None:
    """Until the index tends to nothing any more: as long as its thread takes processor time."""
    while True:
        box.spaces.allow_background(True)
        before = time.process_time()
        time.sleep(2)
        if not space.indexes.stats().rebuilding and time.process_time() - before < 0.2:
            return


class Recalls(threading.Thread):
    """Asks all the time, one question after the other; milliseconds of each answer."""

    def __init__(self, box: Core, space: Space, depth: Depth) -> None:
        super().__init__(daemon=True)
        self.took: list[float] = []
        self._box, self._space, self._depth = box, space, depth
        self._ended = threading.Event()

    def run(self) -> None:
        asked = corpus.questions(400, SEED)
        while not self._ended.is_set():
            question = Question(asked[len(self.took) % len(asked)], ("public",), depth=self._depth)
            start = time.perf_counter()
            self._box.recall.recall(question, {"public": self._space})
            self.took.append((time.perf_counter() - start) * 1000)

    def __enter__(self) -> Recalls:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def figures(self) -> dict[str, float]:
        took = sorted(self.took)
        return {
            "recalls": len(took),
            "median": round(took[len(took) // 2], 1),
            "p99": round(took[len(took) * 99 // 100], 1),
            "longest": round(took[-1], 1),
        }


def timed(work: Callable[[], Any]) -> dict[str, Any]:
    wall, processor = time.perf_counter(), time.process_time()
    made = work()
    took = {
        "wall": round(time.perf_counter() - wall, 2),
        "processor": round(time.process_time() - processor, 2),
    }
    return took | ({"moved": made.archived + made.restored} if hasattr(made, "archived") else {})


def measure(box: Core, space: Space) -> dict[str, Any]:
    now = box.clock.now()
    fading = Fading(box.spaces, box.config.decay, box.clock)
    # What is there now stays, as `edge serve` has it.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(0.0002)

    def status() -> Any:
        return box.spaces.facts()[0].memories

    seconds = {
        "pass, nothing due": timed(lambda: fading.sweep(space, now)),
        "status": timed(status),
        "archive all": timed(lambda: fading.sweep(space, now + AHEAD)),
        "pass, all archived": timed(lambda: fading.sweep(space, now + AHEAD)),
        "status, all archived": timed(status),
        "bring all back": timed(lambda: fading.sweep(space, now)),
    }
    recalls = {}
    for depth in (Depth.SHALLOW, Depth.DEEP):
        name = depth.name.lower()
        with Recalls(box, space, depth) as alone:
            time.sleep(5)
        recalls[f"{name}, nothing beside"] = alone.figures()
        with Recalls(box, space, depth) as beside:
            time.sleep(0.5)
            fading.sweep(space, now + AHEAD)
        recalls[f"{name}, while all is archived"] = beside.figures()
        with Recalls(box, space, depth) as alone:
            time.sleep(5)
        recalls[f"{name}, all archived"] = alone.figures()
        with Recalls(box, space, depth) as beside:
            fading.sweep(space, now)
        recalls[f"{name}, while all comes back"] = beside.figures()
    return {"seconds": seconds, "recall_ms": recalls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="a filled data directory: made there if it is not, and used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = options.keep or Path(scratch)
        with core(data, Config(), HashEmbedder(16)) as box:
            space = box.spaces.open("public")
            if not space.queries.counts().turns:
                fill(space, options.memories, SystemClock().now())
            settle(box, space)
            load = os.getloadavg()
            print(json.dumps({"bench": "fading", **measure(box, space), "load": load}, indent=2))


if __name__ == "__main__":
    main()
