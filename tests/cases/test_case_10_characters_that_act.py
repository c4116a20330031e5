"""Case 10: characters that turn the line or the terminal (marmot-protocol/mdk#586, PCIRCLE-AI/memesh#374)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from grpc_calls import Wire

if TYPE_CHECKING:
    from conftest import Box

TURNED, CLEARED, HEBREW = "安全\u202egpj.exe", "\x1b[2J已清空", "שלום, הפגישה מחר בשעה שלוש אחר הצהריים"
ACTING = ("\u202e", "\x1b", "\x07", "\u2066", "\x9b")


def edge(box: Box, *arguments: str) -> str:
    environment = {**os.environ, "EDGE_ADDRESS": box.address, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "edge.cli", *arguments]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=True)
    return ended.stdout + ended.stderr


def test_the_wire_gives_back_the_same_bytes_and_the_command_line_shows_escapes(box: Box) -> None:
    with Wire(box.address) as wire:
        ids = wire.say(TURNED, CLEARED, HEBREW, space="public", source="source \u202egpj")
        assert {memory.text.encode() for memory in wire.listed("public")} == {
            text.encode() for text in (TURNED, CLEARED, HEBREW)
        }
        assert wire.texts("פגישה")[0] == HEBREW

    shown = {text: edge(box, "get", memory_id) for memory_id, text in zip(ids, (TURNED, CLEARED, HEBREW), strict=True)}
    everything = "".join(
        [*shown.values(), edge(box, "ls"), edge(box, "recall", "安全"), edge(box, "recall", "\u202e安全")]
    )
    for character in ACTING:
        assert character not in everything
    assert "\\u202e" in shown[TURNED]
    assert "\\x1b" in shown[CLEARED]
    assert HEBREW in shown[HEBREW]
    for character in ACTING:
        assert character not in box.log


@pytest.mark.parametrize("flag", ["--json"])
def test_json_escapes_them_and_gives_the_same_text_back(wire: Wire, shared_box: Box, space: str, flag: str) -> None:
    import json

    (memory_id,) = wire.say(TURNED + CLEARED, space=space)
    printed = edge(shared_box, "get", memory_id, flag)
    assert not any(character in printed for character in ACTING)
    assert json.loads(printed)["text"] == TURNED + CLEARED
