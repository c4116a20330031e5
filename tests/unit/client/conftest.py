from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from scripted_box import ScriptedBox, serving

from edge.client import AsyncClient


@pytest.fixture(autouse=True)
def no_boxes_of_the_tester(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tester paired with, or named, is none of a test's business."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("EDGE_ADDRESS", "EDGE_TOKEN", "EDGE_TLS_FINGERPRINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def socket() -> Iterator[Path]:
    # Not tmp_path: it can be longer than a socket's path may be (sun_path, 108 bytes).
    with tempfile.TemporaryDirectory(prefix="edge-") as folder:
        yield Path(folder) / "edge.sock"


@pytest.fixture
async def box() -> ScriptedBox:
    return ScriptedBox()


@pytest.fixture
async def client(box: ScriptedBox, socket: Path) -> AsyncIterator[AsyncClient]:
    async with serving(box, socket) as address, AsyncClient.connect(address, timeout=20) as client:
        yield client
