"""Nothing leaves the device: no part of the box talks to anybody that its owner did not configure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the real embedder on a real sentence, as every box does when it starts.
PROGRAM = """
from pathlib import Path
from edge.config import DEFAULT_MODEL, Embedding
from edge.embedder.onnx import load
from edge.types import Lane
import os
model = load(DEFAULT_MODEL, Path(os.environ["EDGE_MODELS"]), Embedding())
assert model.embed(model.encode(["你好"], Lane.INGEST)).shape == (1, 512)
"""


@pytest.fixture
def newcomer(tmp_path: Path, model_directory: Path) -> dict[str, str]:
    """An empty home, and none of the variables by which libraries tell CI from a person's machine."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "EDGE_MODELS": str(model_directory)}


@pytest.mark.parametrize(
    "program", [PROGRAM, "from edge.upkeep.doctor import examine; examine(__import__('pathlib').Path('x'))"]
)
def test_the_runtime_keeps_no_report_of_its_host(newcomer, tmp_path, program) -> None:
    subprocess.run([sys.executable, "-c", program], env=newcomer, cwd=tmp_path, check=True, timeout=60)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert not {path for path in written if "icrosoft" in str(path) or "onnxruntime" in str(path)}


def test_loading_and_using_the_model_opens_no_connection(newcomer, tmp_path) -> None:
    strace = shutil.which("strace")
    assert strace, "strace is needed to see what is connected to: sudo apt-get install strace"
    trace = tmp_path / "trace"
    subprocess.run(
        [strace, "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(trace), sys.executable, "-c", PROGRAM],
        env=newcomer,
        cwd=tmp_path,
        check=True,
        timeout=120,
    )
    assert [line for line in trace.read_text().splitlines() if "AF_INET" in line] == []
