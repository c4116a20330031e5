"""What must start quickly loads little: the client and the command line, often on a machine without the model."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODEL_AND_INDEX = ("numpy", "onnxruntime", "hnswlib", "rjieba", "tokenizers", "huggingface_hub")


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("edge", (*MODEL_AND_INDEX, "grpc", "google.protobuf")),
        ("edge.client", MODEL_AND_INDEX),
        ("edge.cli", (*MODEL_AND_INDEX, "grpc", "google.protobuf", "rich")),
    ],
)
def test_importing_it_loads_nothing_heavy(module: str, unwanted: tuple[str, ...]) -> None:
    # A fresh interpreter: in this one other tests have loaded everything already.
    code = f"import sys, {module}; print(*sorted(name for name in {unwanted!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
