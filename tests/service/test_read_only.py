"""A data directory that cannot be written: the box starts, recalls are answered, writes are refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Box, BoxFactory
from small_disk import SmallDisk, small_disk

from edge.client import Client, IngestState
from edge.errors import InvalidArgument, ReadOnly

QUESTION = "备用钥匙在哪里"
ANSWER = "备用钥匙在阳台第三个花盆下面。"


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with small_disk(40) as disk:
        yield disk


@pytest.fixture
def box(disk: SmallDisk, start_box: BoxFactory) -> Box:
    """It holds a few memories, and runs."""
    box = start_box(data=disk.path / "data")
    with Client(box.address) as client:
        texts = [ANSWER, *(f"第{n}天我们去了公园散步。" for n in range(40))]
        turns = [{"source": "test", "session": "s", "seq": seq, "text": text} for seq, text in enumerate(texts)]
        assert {result.state for result in client.ingest(turns, wait="searchable")} == {IngestState.SEARCHABLE}
    return box


def files(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}


def stopped(box: Box) -> None:
    assert box.stop() == 0


def killed(box: Box) -> None:
    box.kill()


def stopped_and_without_views(box: Box) -> None:
    assert box.stop() == 0
    for view in (box.data / "spaces/public").glob("memory.sqlite*"):
        view.unlink()


def stopped_and_with_a_torn_log(box: Box) -> None:
    assert box.stop() == 0
    (segment,) = (box.data / "spaces/public/log").glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"n":42,"at":"2026-')


@pytest.mark.parametrize(
    "end", [stopped, killed, stopped_and_without_views, stopped_and_with_a_torn_log], ids=lambda end: end.__name__
)
def test_on_a_read_only_disk_recalls_are_answered_and_writes_refused(
    box: Box, disk: SmallDisk, end: Callable[[Box], None]
) -> None:
    end(box)
    before = files(box.data)
    disk.make_read_only()

    box.start()

    with Client(box.address, patience=0.1) as client:
        while client.status().spaces[0].pending:
            time.sleep(0.05)
        hit = client.recall(QUESTION).hits[0].memory
        assert hit.text == client.get(hit.id).text == ANSWER
        assert len(list(client.list())) == 41

        status = client.status()
        assert "Read-only" in status.read_only and str(box.data) in status.read_only
        assert any(status.read_only in warning for warning in status.warnings)

        refused = list(
            client.ingest(
                [
                    {"source": "test", "session": "new", "seq": 1, "text": "新的一句。"},
                    {"source": "test", "session": "new", "seq": 2, "text": "新的一句。", "space": "work"},
                    {"source": "test", "session": "new", "seq": 3, "text": ""},
                ]
            )
        )
        assert [type(result.error) for result in refused] == [ReadOnly, ReadOnly, InvalidArgument]
        assert {result.state for result in refused} == {IngestState.REJECTED}
        for write in (
            lambda: client.remember("新的一句。"),
            lambda: client.remember("新的一句。", space="private/me"),
            lambda: client.forget([hit.id]),
            lambda: client.forget(sessions=["s"]),
            lambda: client.rebuild("log"),
        ):
            with pytest.raises(ReadOnly) as error:
                write()
            assert "writ" in error.value.message or "reading only" in error.value.message
        assert client.forget([hit.id], dry_run=True).turns == 1
        assert client.recall(QUESTION).hits[0].memory.id == hit.id
    assert box.stop() == 0
    assert files(box.data) == before
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", "verify", "--data", str(box.data)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert files(box.data) == before

    disk.make_writable()
    box.start()
    with Client(box.address) as client:
        assert client.status().read_only == ""
        assert client.recall(QUESTION).hits[0].memory.text == ANSWER
        assert client.remember("现在可以写了。")


def test_a_read_only_directory_with_nothing_in_it_serves_nothing_and_says_so(
    start_box: BoxFactory, disk: SmallDisk
) -> None:
    data = disk.path / "data"
    data.mkdir()
    disk.make_read_only()

    box = start_box(data=data)

    with Client(box.address, patience=0.1) as client:
        assert list(client.recall(QUESTION).hits) == []
        assert client.status().read_only
        with pytest.raises(ReadOnly):
            client.remember("新的一句。")


def test_a_data_directory_that_cannot_be_made_is_one_sentence(disk: SmallDisk) -> None:
    disk.make_read_only()

    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", "serve", "--no-auth", "--data", str(disk.path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "EDGE_DEBUG"},
    )

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and str(disk.path / "data") in done.stderr and "--data" in done.stderr
