"""Case 2: NUL inside a text (chroma-core/chroma#7388): SQL's length() stops there, a trigram index misses what follows.

The box refuses such a text by name (edge.admission.check says why); its neighbours are whole.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_calls import Wire, refused, rejected, turn

if TYPE_CHECKING:
    from conftest import BoxFactory

INVALID = grpc.StatusCode.INVALID_ARGUMENT.value[0]
WITH_NUL = ["prefix\0suffix", "x " + "\0" * 10_291 + " y", "\0", "末尾\0"]
NORMAL = [f"第{n}件平常事：{thing}" for n, thing in enumerate("伞茶书灯门窗桌椅碗筷")]


def test_a_nul_is_refused_and_all_else_is_kept_and_found(start_box: BoxFactory) -> None:
    box = start_box()
    with Wire(box.address) as wire:
        first, second = wire.ingest(*(turn(text) for text in WITH_NUL))
        assert [rejected(result) for result in (*first, *second)] == [(INVALID, "text")] * 8
        wire.say(*NORMAL, space="public")
        for text in NORMAL:
            assert wire.texts(text)[0] == text
        assert {memory.text for memory in wire.listed("public")} == set(NORMAL)
    assert box.stop() == 0

    with closing(sqlite3.connect(box.data / "spaces" / "public" / "memory.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    verify = [sys.executable, "-m", "edge.cli", "verify", "--data", str(box.data)]
    checked = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_nul_in_a_query_or_a_name_is_never_a_failure_inside(wire: Wire, space: str) -> None:
    wire.say("prefix and suffix", space=space)
    assert wire.texts("prefix\0suffix", space) == ["prefix and suffix"]
    for field in ("source", "session", "role"):
        (result,), _ = wire.ingest(turn("名字", space=space, **{field: "a\0b"}))
        assert rejected(result) == (INVALID, field)
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "filter.tags[0]"):
        wire.recall("prefix", space, filter={"tags": ["a\0b"]})
    assert wire.texts("prefix", space, filter={"sources": ["te\0st"], "sessions": ["\0"]}) == []


@pytest.mark.parametrize("tag", ["\0", "a\0b"])
def test_a_nul_in_a_tag_is_refused(wire: Wire, space: str, tag: str) -> None:
    (result,), _ = wire.ingest(turn("签", space=space, tags=[tag]))
    assert rejected(result) == (INVALID, "tags[0]")
