"""Task state on a disk that is full or cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Box, BoxFactory
from small_disk import small_disk

from edge.client import Client
from edge.errors import DiskFull, NotFound, ReadOnly


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("end", [Box.stop, Box.kill], ids=["stopped", "killed"])
def test_on_a_read_only_disk_states_are_read_and_writes_say_why(
    start_box: BoxFactory, end: Callable[[Box], object]
) -> None:
    with small_disk(40) as disk:
        box = start_box(data=disk.path / "data")
        with Client(box.address) as client:
            kept = [client.put_state(f"k{n}", "字" * 5000) for n in range(5)]
            list(client.ingest([{"source": "a", "session": "s", "seq": 0, "text": "一句话"}], wait="searchable"))
        end(box)
        before = files(box.data)
        disk.make_read_only()
        box.start()
        with Client(box.address, patience=0.1) as client:
            assert list(client.list_states()) == kept
            assert client.get_state("k3") == kept[3]
            assert [one.text for one in client.recent_turns("s").turns] == ["一句话"]
            for write in (
                lambda: client.put_state("k", "v"),
                lambda: client.put_state("k", "v", space="private/me"),
                lambda: client.delete_state("k3"),
            ):
                with pytest.raises(ReadOnly) as error:
                    write()
                assert "writ" in error.value.message
        assert files(box.data) == before
        assert box.stop() == 0


def test_on_a_full_disk_puts_are_refused_and_there_is_room_to_delete(start_box: BoxFactory) -> None:
    with small_disk(40) as disk:
        box = start_box(data=disk.path / "data")
        with Client(box.address, patience=0.1) as client:
            for n in range(20):
                client.put_state(f"k{n}", "字" * 80_000)
            disk.fill(leaving=2 << 20)
            with pytest.raises(DiskFull):
                client.put_state("k0", "新" * 1000)
            assert client.get_state("k0").value == "字" * 80_000
            for n in range(20):
                client.delete_state(f"k{n}")
            with pytest.raises(NotFound):
                client.get_state("k0")
            disk.free()
            assert client.put_state("k0", "新").value == "新"
        assert box.stop() == 0
    assert "traces" not in box.log
