"""The commands against a scripted box, in this process: `edge(...)` gives status, output and errors."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# The scripted box lives with the tests of the client.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "client"))

from scripted_box import ScriptedBox, serving

from edge.cli import main


@dataclass
class Done:
    status: int
    out: str
    err: str


Edge = Callable[..., Done]


@pytest.fixture
def edge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Edge:
    for name in ("EDGE_ADDRESS", "EDGE_TOKEN", "EDGE_TLS_FINGERPRINT", "EDGE_CONFIG", "EDGE_DEBUG", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EDGE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        status = main(arguments)
        output = capsys.readouterr()
        return Done(status, output.out, output.err)

    return run


@pytest.fixture
def scripted(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedBox]:
    """A box at EDGE_ADDRESS, on a thread of its own."""
    ready, boxes = threading.Event(), []
    with tempfile.TemporaryDirectory(prefix="edge-") as folder:
        socket = Path(folder) / "edge.sock"
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()

        async def serve() -> None:
            boxes.append(ScriptedBox())
            async with serving(boxes[0], socket):
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        ready.wait()
        monkeypatch.setenv("EDGE_ADDRESS", f"unix:{socket}")
        yield boxes[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
