"""Case 29: 2,000 embeds of random length on two cores without a sensor (onnxruntime#11118, #8313, jetson_stats#164)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MB = 1024 * 1024
# Lengths are log-uniform and leaning to the short, with 1 and 512 among them: a busy machine has to get through them.
CHILD = """
import json, os, random, sys, threading
from pathlib import Path

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-2:])

import psutil

from edge.clock import SystemClock
from edge.config import DEFAULT_MODEL, Embedding
from edge.embedder import onnx
from edge.embedder.sensing.calls import Calls
from edge.embedder.sensors import Sensors
from edge.ports import Encoded

nothing, models = map(Path, sys.argv[1:])
readings = Sensors(SystemClock(), root=nothing, calls=Calls()).read()
embedder = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu", workers=2, idle_release=0))
chance = random.Random(29)
lengths = [1, 512] + [round(512 ** (chance.random() ** 1.5)) for _ in range(1998)]
resident = psutil.Process().memory_info
together = threading.Barrier(2)
loaded = resident().rss


def embed(lengths, chance):
    for length in lengths:
        window = (101, *(chance.randrange(106, 21_000) for _ in range(length)), 102)[:512]
        embedder.embed([Encoded((window,))])


def work(number):
    chance = random.Random(number)
    # As much at once as there will ever be; what comes after this is growth.
    for _ in range(3):
        together.wait()
        embed([510], chance)
    embed(lengths[number : 1000 : 2], chance)
    if together.wait() == 0:
        half.append(resident().rss)
    together.wait()
    embed(lengths[1000 + number :: 2], chance)


half = []
threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
whole = resident().rss
embedder.release()
print(json.dumps({
    "temperature": readings.temperature, "loaded": loaded, "half": half[0], "whole": whole, "released": resident().rss,
}))
"""


@pytest.fixture(scope="module")
def child(model_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    nothing = tmp_path_factory.mktemp("nothing")
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(nothing), str(model_directory)], capture_output=True, text=True, timeout=600
    )


@pytest.fixture
def figures(child: subprocess.CompletedProcess[str]) -> dict[str, float | None]:
    assert child.returncode == 0, child.stderr
    found: dict[str, float | None] = json.loads(child.stdout.splitlines()[-1])
    return found


def of(figures: dict[str, float | None], name: str) -> float:
    value = figures[name]
    assert value is not None
    return value


def test_memory_reaches_a_plateau(figures: dict[str, float | None]) -> None:
    assert of(figures, "whole") - of(figures, "half") < 8 * MB


@pytest.mark.skipif(sys.platform != "linux", reason="another system's C library gives memory back when it likes")
def test_what_the_runs_needed_is_given_back_when_there_are_no_more(figures: dict[str, float | None]) -> None:
    # Less than half of what they took stays: the session itself, and pieces of heap that are still in use.
    taken = of(figures, "whole") - of(figures, "loaded")
    assert of(figures, "released") - of(figures, "loaded") < taken / 2


def test_the_absence_of_every_sensor_is_no_failure(figures: dict[str, float | None]) -> None:
    assert figures["temperature"] is None


def test_no_thread_complains_that_it_may_not_run_where_it_likes(child: subprocess.CompletedProcess[str]) -> None:
    assert "affinity" not in child.stderr.lower()
    # The sensors that are not there may be named, each once.
    assert len(child.stderr.splitlines()) < 12, child.stderr
