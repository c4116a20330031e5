"""Cold files: whole or not there, whatever is appended and taken out."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import DiskFull, Unavailable
from edge.ledger import coldfiles
from edge.ledger.coldfiles import ColdFiles, paths, read
from edge.ledger.events import Revised, decode, encode
from edge.ledger.revisions import Alike, Change, Fields, packed, unpacked


def line(n: int) -> bytes:
    return b'{"n":%d,"at":"%d"}\n' % (n, n)


@given(st.lists(st.tuples(st.sampled_from(["2026-01", "2026-02"]), st.sets(st.integers(1, 30), max_size=6))), st.data())
def test_what_was_appended_is_found_until_it_is_taken_out(
    batches: list[tuple[str, set[int]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        files = ColdFiles(Path(directory) / "cold")
        there: set[int] = set()
        for month, numbers in batches:
            if numbers:
                files.append(month, [line(n) for n in sorted(numbers)])
            there |= numbers
            gone = data.draw(st.sets(st.integers(1, 30), max_size=3))
            files.erase(gone)
            there -= gone
            assert files.find(range(1, 31)) == {n: line(n) for n in there}
        assert not list(files.directory.glob("*.tmp"))


def test_they_are_plain_zstd_frames_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coldfiles, "_FRAME", 50)
    files = ColdFiles(tmp_path)
    files.append("2026-01", [line(n) for n in range(1, 10)])
    files.append("2026-01", [line(10)])
    (path,) = paths(tmp_path)
    with path.open("rb") as file:
        whole = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    assert whole == b"".join(line(n) for n in range(1, 11)) == b"".join(read(path))


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ColdFiles(tmp_path)
    files.append("2026-01", [line(1)])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(coldfiles, "sync", full)
    with pytest.raises(DiskFull):
        files.append("2026-01", [line(2)])
    with pytest.raises(DiskFull):
        files.append("2026-02", [line(3)])
    assert files.find([1, 2, 3]) == {1: line(1)}
    assert [path.name for path in tmp_path.iterdir()] == ["2026-01.jsonl.zst"]


def test_a_cut_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    files = ColdFiles(tmp_path)
    files.append("2026-01", [line(n) for n in range(1, 100)])
    (path,) = paths(tmp_path)
    whole = path.read_bytes()
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(Unavailable):
            list(read(path))


def test_the_same_change_of_many_is_written_once_and_read_again() -> None:
    changes = Alike(("a", "b", "c"), Fields(archived=False), Fields(archived=True))
    event = Revised(1, 1_750_000_000_000_000, "id", "archived", "rule", changes)
    raw = encode(event)
    assert decode(raw) == event
    assert raw.count(b'"archived":true') == 1
    apart = [Change(id, Fields(archived=False), Fields(archived=True)) for id in "abc"]
    assert unpacked(json.loads(json.dumps(packed(apart)))) == tuple(changes)
    with pytest.raises(ValueError):
        unpacked({"before": {"archived": True}, "after": {}, "memories": ["a"]})
    with pytest.raises(ValueError):
        unpacked({"before": {}, "after": {}, "memories": [1]})
