"""What a box is called, on the network and by the clients that pair with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.clock import SystemClock
from edge.lan.presence import Presence
from edge.lan.tokens import Tokens
from edge.lan.txt import NAME_BYTES


def presence(folder: Path, name: str) -> Presence:
    clock = SystemClock()
    return Presence(folder / "identity", Tokens(folder / "box.sqlite", clock), tuple, name, "0.1.0", clock)


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\u3000"])
def test_a_box_without_a_name_is_called_by_its_id(tmp_path: Path, name: str) -> None:
    box = presence(tmp_path, name)
    assert box.name == f"edge-memory-{box.pairings.fingerprint[:4]}"


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("阁楼", "阁楼"),
        ("Wohnzimmer 🏠", "Wohnzimmer 🏠"),
        ("  attic  2nd\nfloor ", "attic 2nd floor"),
        ("nas.home", "nas-home"),
        ("\x1b[2J\u202eevil", "[2Jevil"),
        ("192.0.2.7", "192-0-2-7"),
        ("é" * 5000, "é" * (NAME_BYTES // 2)),
    ],
)
def test_clients_know_it_by_the_name_that_they_list(tmp_path: Path, name: str, listed: str) -> None:
    assert presence(tmp_path, name).name == listed
