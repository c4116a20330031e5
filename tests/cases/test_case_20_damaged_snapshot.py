"""Case 20 (nmslib/hnswlib#673): damaged index files, which crash or hang hnswlib, are found before it opens them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import hnswlib
import numpy as np
import pytest
from stored_vectors import StoredVectors, clustered

from edge.index import hnsw
from edge.index.live import LiveIndex, Tuning

DIMENSION = 32
TUNING = Tuning(flat_rows=64, overlay_rows=32)


def the_file(directory: Path) -> Path:
    return next(directory.glob("*.hnsw"))


def cut_in_half(directory: Path) -> None:
    raw = the_file(directory).read_bytes()
    the_file(directory).write_bytes(raw[: len(raw) // 2])


def emptied(directory: Path) -> None:
    the_file(directory).write_bytes(b"")


def xored_in_the_middle(directory: Path) -> None:
    raw = bytearray(the_file(directory).read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 64] = bytes(byte ^ 0xFF for byte in raw[middle : middle + 64])
    the_file(directory).write_bytes(raw)


def with_max_elements_1(directory: Path) -> None:
    raw = bytearray(the_file(directory).read_bytes())
    raw[8:16] = struct.pack("<Q", 1)
    the_file(directory).write_bytes(raw)


def without_the_file(directory: Path) -> None:
    the_file(directory).unlink()


def manifest_cut(directory: Path) -> None:
    path = directory / "m.json"
    path.write_bytes(path.read_bytes()[:-50])


def manifest_emptied(directory: Path) -> None:
    (directory / "m.json").write_bytes(b"")


def manifest_of_other_bytes(directory: Path) -> None:
    (directory / "m.json").write_bytes(bytes(range(256)))


def manifest_of_another_shape(directory: Path) -> None:
    (directory / "m.json").write_text('{"snapshot": [], "checksum": 1}')


def manifest_with_one_digit_changed(directory: Path) -> None:
    path = directory / "m.json"
    path.write_text(path.read_text().replace('"count": 4', '"count": 3').replace('"count": 5', '"count": 4'))


def manifest_of_another_model(directory: Path) -> None:
    other = StoredVectors()
    other.put(*clustered(200, DIMENSION, seed=9))
    index = LiveIndex.open(directory, "other", DIMENSION, other, tuning=TUNING)
    assert index.settle(60)
    index.close()
    (directory / "other.json").replace(directory / "m.json")


def manifest_that_points_elsewhere(directory: Path) -> None:
    path = directory / "m.json"
    manifest = json.loads(path.read_text())["snapshot"] | {"file": "../elsewhere.hnsw"}
    path.write_text(json.dumps({"checksum": hnsw_manifest_checksum(manifest), "snapshot": manifest}))


def hnsw_manifest_checksum(manifest: object) -> str:
    from edge.index.snapshot import _checksum

    return _checksum(manifest)


DAMAGES = [
    cut_in_half, emptied, xored_in_the_middle, with_max_elements_1, without_the_file, manifest_cut, manifest_emptied,
    manifest_of_other_bytes, manifest_of_another_shape, manifest_with_one_digit_changed, manifest_of_another_model,
    manifest_that_points_elsewhere,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found_before_the_library_opens_the_file_and_everything_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    source = StoredVectors()
    rowids, vectors = clustered(500, DIMENSION)
    source.put(rowids, vectors)
    index = LiveIndex.open(tmp_path, "m", DIMENSION, source, tuning=TUNING)
    assert index.settle(60)
    index.close()
    damage(tmp_path)
    opened: list[str] = []

    class Watched(hnswlib.Index):  # type: ignore[misc]  # hnswlib has no types
        def load_index(self, path: str, *args: object, **options: object) -> None:
            opened.append(path)
            super().load_index(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(hnsw.hnswlib, "Index", Watched)
        index = LiveIndex.open(tmp_path, "m", DIMENSION, source, tuning=TUNING)

    assert opened == []
    assert index.stats().discarded
    assert "is rebuilt from the stored vectors" in caplog.text
    found_at_once = [index.search(vector, 1)[0].tolist() for vector in vectors]
    assert found_at_once == rowids[:, None].tolist()
    assert index.settle(60)
    index.close()

    again = LiveIndex.open(tmp_path, "m", DIMENSION, source, tuning=TUNING)
    assert again.stats().discarded == ""
    assert [again.search(vector, 1)[0].tolist() for vector in vectors] == rowids[:, None].tolist()
    assert np.array_equal(source.vector_rowids("m"), rowids)
    again.close()
