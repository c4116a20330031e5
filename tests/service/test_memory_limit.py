"""A box with little memory: it takes all that it is sent, is not killed, and does not even touch its limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "memory_limit.py"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has memory cgroups")
def test_a_box_in_a_small_memory_cgroup_takes_everything_and_stays_below_its_limit(model_directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--turns", "150", "--long", "1", "--long-bytes", "200000", "--room", "200"],
        capture_output=True,
        text=True,
        env={**os.environ, "EDGE_MODELS": str(model_directory)},
    )
    if "no memory cgroup can be made" in done.stderr:
        pytest.skip(done.stderr.strip())
    figures = json.loads(done.stdout)
    assert figures["finished"], figures
    assert figures["kills"] == 0
    assert figures["failures"] == 0
    assert figures["peak_mb"] < figures["limit_mb"]
    assert figures["memories"] > 300
