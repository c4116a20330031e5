from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from stored_vectors import StoredVectors, clustered

from edge.index import snapshot
from edge.index.image import GraphImage
from edge.index.live import LiveIndex, Tuning

DIMENSION = 16
SMALL = Tuning(flat_rows=64, overlay_rows=32, bulk_rows=128, retry_seconds=0.0)
PATIENCE = 120.0


@pytest.fixture
def source() -> StoredVectors:
    source = StoredVectors()
    source.put(*clustered(500, DIMENSION))
    return source


def opened(directory: Path, source: StoredVectors, identity: str = "", read_only: bool = False) -> LiveIndex:
    index = LiveIndex.open(directory, "bge/zh", DIMENSION, source, identity=identity, read_only=read_only, tuning=SMALL)
    assert index.settle(PATIENCE)
    return index


def all_found(index: LiveIndex, source: StoredVectors) -> bool:
    return all(index.search(row.astype(np.float32), 1)[0].tolist() == [rowid] for rowid, row in source.rows.items())


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_closing_saves_and_opening_reads_it_back(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path / "index", source).close()

    assert names(tmp_path / "index") == ["bge%2Fzh-00000001.hnsw", "bge%2Fzh.json"]
    index = opened(tmp_path / "index", source)
    assert index.stats().discarded == ""
    assert index.stats().overlay <= SMALL.overlay_rows
    assert all_found(index, source)
    index.close()


def test_opening_replays_what_the_snapshot_does_not_know(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path, source).close()
    late, late_vectors = clustered(20, DIMENSION, seed=2)
    source.put(late + 1000, late_vectors)
    gone = np.arange(1, 41)
    gone_vectors = [source.rows[rowid].astype(np.float32) for rowid in gone.tolist()]
    source.take(gone)

    index = LiveIndex.open(tmp_path, "bge/zh", DIMENSION, source, tuning=SMALL)

    assert len(index) == 480
    assert all_found(index, source)
    assert not any(np.isin(index.search(vector, 10)[0], gone).any() for vector in gone_vectors)
    index.close()


def test_an_unchanged_index_is_not_written_again_and_a_changed_one_replaces_the_older(
    tmp_path: Path, source: StoredVectors
) -> None:
    opened(tmp_path, source).close()
    index = opened(tmp_path, source)
    index.close()
    assert "bge%2Fzh-00000001.hnsw" in names(tmp_path)

    index = opened(tmp_path, source)
    in_graph = np.setdiff1d(source.vector_rowids("m"), index._pair._overlay.rowids())[:3]
    source.take(in_graph)
    index.remove(in_graph)
    assert index.save()

    assert names(tmp_path) == ["bge%2Fzh-00000002.hnsw", "bge%2Fzh.json"]
    index.close()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_keeps_the_older_snapshot_and_the_next_try_works(
    tmp_path: Path, source: StoredVectors, monkeypatch: pytest.MonkeyPatch, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened(tmp_path, source).close()
    index = opened(tmp_path, source)
    index.rebuild().result(PATIENCE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(*((snapshot.os, "fsync") if step == "fsync" else (Path, "replace")), full)
        assert not index.save()

    assert names(tmp_path) == ["bge%2Fzh-00000001.hnsw", "bge%2Fzh.json"]
    assert index.stats().snapshot_error == "No space left on device"
    assert "was not written" in caplog.text
    assert index.save()
    assert index.stats().snapshot_error == ""
    assert names(tmp_path) == ["bge%2Fzh-00000002.hnsw", "bge%2Fzh.json"]
    index.close()


def test_a_really_full_disk_is_noticed(source: StoredVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    index = opened(tmp_path, source)
    (tmp_path / "bge%2Fzh-00000001.hnsw.tmp").symlink_to("/dev/full")
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # the device's mode is not this test's to change

    assert not index.save()
    assert index.stats().snapshot_error == "No space left on device"
    assert names(tmp_path) == []
    index.close()


def test_a_read_only_data_directory_is_never_written(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path / "index", source).close()
    (tmp_path / "index" / "bge%2Fzh-00000007.hnsw.tmp").touch()
    before = names(tmp_path / "index")
    index = opened(tmp_path / "index", source, read_only=True)
    index.rebuild().result(PATIENCE)

    assert not index.save()
    assert index.drop() == 0
    assert all_found(index, source)
    index.close()
    assert names(tmp_path / "index") == before
    opened(tmp_path / "none", source, read_only=True).close()
    assert not (tmp_path / "none").exists()


def test_forgetting_drops_the_snapshots_of_every_model_and_the_next_one_lacks_the_vector(
    tmp_path: Path, source: StoredVectors
) -> None:
    LiveIndex.open(tmp_path, "old", DIMENSION, source, tuning=SMALL).close()
    index = LiveIndex.open(tmp_path, "old", DIMENSION, source, tuning=SMALL)
    assert index.settle(PATIENCE)
    index.close()
    index = opened(tmp_path, source)
    assert index.save()
    graph = index._pair._graph
    victim = graph.rowids()[:1]
    stored = graph.get(victim)[1].astype("<f4").tobytes()
    files = list(tmp_path.glob("*.hnsw"))
    assert sum(stored in path.read_bytes() for path in files) >= 1

    source.take(victim)
    index.remove(victim)
    assert index.drop() == len(files)
    assert names(tmp_path) == []

    assert index.save()
    assert all(stored not in path.read_bytes() for path in tmp_path.iterdir())
    index.close()


def test_a_snapshot_that_is_being_written_when_something_is_forgotten_never_appears(
    tmp_path: Path, source: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened(tmp_path, source)
    writing, go_on = threading.Event(), threading.Event()
    blocks = GraphImage.blocks

    def slow(image: GraphImage) -> object:
        for block in blocks(image):
            yield block
            writing.set()
            assert go_on.wait(PATIENCE)

    monkeypatch.setattr(GraphImage, "blocks", slow)
    saved: list[bool] = []
    saver = threading.Thread(target=lambda: saved.append(index.save()))
    saver.start()
    assert writing.wait(PATIENCE)
    dropper = threading.Thread(target=index.drop)
    dropper.start()
    while not index._drops:
        threading.Event().wait(0)
    go_on.set()
    saver.join(PATIENCE)
    dropper.join(PATIENCE)

    assert saved == [False]
    assert names(tmp_path) == []
    index.close()


def test_searches_and_additions_go_on_while_a_snapshot_is_written(
    tmp_path: Path, source: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened(tmp_path, source)
    row = source.rows[1].astype(np.float32)
    blocks = GraphImage.blocks

    def busy(image: GraphImage) -> object:
        index.add(np.array([7777]), -row[None])
        assert index.search(-row, 1)[0].tolist() == [7777]
        index.remove(np.array([7777]))
        yield from blocks(image)

    monkeypatch.setattr(GraphImage, "blocks", busy)

    assert index.save()
    index.close()


def test_a_database_made_anew_whose_rowids_mean_other_vectors_is_noticed(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path, source).close()
    anew = StoredVectors()
    anew.put(np.array(sorted(source.rows)), np.stack([source.rows[rowid] for rowid in sorted(source.rows)][::-1]))

    index = opened(tmp_path, anew)

    assert index.stats().discarded == "its vectors are not those of this database"
    assert all_found(index, anew)
    index.close()


def test_a_snapshot_of_another_database_is_not_believed(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path, source, identity="first").close()

    index = opened(tmp_path, source, identity="second")

    assert "identity" in index.stats().discarded
    assert all_found(index, source)
    index.close()


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path, source).close()
    for name in ("bge%2Fzh-00000002.hnsw.tmp", "bge%2Fzh.json.tmp"):
        (tmp_path / name).write_bytes(b"half")
    # A file that was whole, and its manifest not there yet.
    (tmp_path / "bge%2Fzh-00000002.hnsw").write_bytes((tmp_path / "bge%2Fzh-00000001.hnsw").read_bytes())

    index = opened(tmp_path, source)
    assert index.stats().discarded == ""
    index.rebuild().result(PATIENCE)
    assert index.save()

    assert names(tmp_path) == ["bge%2Fzh-00000003.hnsw", "bge%2Fzh.json"]
    index.close()


def test_the_manifest_says_what_the_file_is(tmp_path: Path, source: StoredVectors) -> None:
    opened(tmp_path, source, identity="db").close()

    manifest = json.loads((tmp_path / "bge%2Fzh.json").read_text())["snapshot"]

    assert manifest["model"] == "bge/zh"
    assert manifest["dimension"] == DIMENSION
    assert manifest["identity"] == "db"
    assert manifest["bytes"] == (tmp_path / manifest["file"]).stat().st_size
    assert manifest["tombstones"] == []
