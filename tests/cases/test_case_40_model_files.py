"""Case 40: model files that are cut, zeroed or foreign never get to answer."""

import dataclasses
import json
import shutil

import pytest

from edge.config import DEFAULT_MODEL, Embedding
from edge.embedder import manifest, onnx, reference, store
from edge.errors import ModelError

CONFIG = Embedding(device="cpu")


@pytest.fixture
def directory(tmp_path, model_directory):
    shutil.copytree(model_directory / DEFAULT_MODEL, tmp_path / DEFAULT_MODEL)
    return tmp_path


@pytest.fixture
def never_opened(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("a file was given to onnxruntime before its digest was checked")

    monkeypatch.setattr(onnx.providers, "open_session", refuse)


def _cut(path):
    with path.open("r+b") as file:
        file.truncate(1024)


def _zero_tail(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - size // 4)
        file.write(bytes(size // 4))


@pytest.mark.parametrize("damage", [_cut, _zero_tail])
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_refused_before_it_is_opened_and_fetched_again(
    directory, model_directory, never_opened, monkeypatch, damage, name
):
    damage(directory / DEFAULT_MODEL / name)
    with pytest.raises(ModelError, match=rf"{name} is damaged.*edge model pull {DEFAULT_MODEL}"):
        onnx.load(DEFAULT_MODEL, directory, CONFIG)
    store.pull(DEFAULT_MODEL, directory, source=model_directory / DEFAULT_MODEL)
    monkeypatch.undo()
    onnx.load(DEFAULT_MODEL, directory, CONFIG)


def _trusting(monkeypatch, **changes):
    """A manifest whose digests are unknown, so that only the self-check stands between a foreign file and the box."""
    model = manifest.load().default
    files = tuple(dataclasses.replace(file, sha256="", bytes=0) for file in model.files)
    changed = dataclasses.replace(model, files=files, **changes)
    monkeypatch.setattr(manifest, "load", lambda: manifest.Manifest((changed,)))
    return changed


def _pull_foreign(model, directory, tokenizer=None):
    origin = directory / "origin"
    shutil.move(directory / model.id, origin)
    if tokenizer is not None:
        (origin / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    store.pull(model, directory, source=origin)


def test_the_same_files_without_known_digests_pass_the_self_check(directory, monkeypatch):
    model = _trusting(monkeypatch)
    _pull_foreign(model, directory)
    onnx.load(model.id, directory, CONFIG)


def test_a_foreign_tokenizer_is_refused_by_the_self_check(directory, monkeypatch):
    model = _trusting(monkeypatch)
    tokenizer = json.loads((directory / model.id / "tokenizer.json").read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    # The same words under other numbers, as another model of the family has them.
    words, numbers = list(vocabulary)[1000:], list(vocabulary.values())[1000:]
    vocabulary.update(zip(words, numbers[1:] + numbers[:1], strict=True))
    _pull_foreign(model, directory, tokenizer)
    with pytest.raises(ModelError, match=r"self-check.*cosine.*edge model pull"):
        onnx.load(model.id, directory, CONFIG)


@pytest.mark.parametrize(
    "changes", [{"pooling": "mean"}, {"instruction": ""}, {"lowercase": False, "strip_accents": False}]
)
def test_wrong_pooling_instruction_or_normalisation_is_refused_by_the_self_check(directory, monkeypatch, changes):
    model = _trusting(monkeypatch, **changes)
    _pull_foreign(model, directory)
    with pytest.raises(ModelError, match=r"self-check.*cosine"):
        onnx.load(model.id, directory, CONFIG)


def test_another_dimension_is_refused(directory, monkeypatch):
    model = _trusting(monkeypatch, dimension=384)
    _pull_foreign(model, directory)
    with pytest.raises(ModelError, match=r"another model.*edge model pull"):
        onnx.load(model.id, directory, CONFIG)


def test_a_file_that_is_no_graph_is_refused_in_one_sentence(directory, monkeypatch):
    model = _trusting(monkeypatch)
    (directory / model.id / "model.onnx").write_bytes(b"not a graph" * 100)
    _pull_foreign(model, directory)
    with pytest.raises(ModelError, match=r"cannot load model\.onnx.*edge model pull"):
        onnx.load(model.id, directory, CONFIG)


def test_a_model_whose_vectors_are_not_stored_must_tell_the_sentences_apart(model_directory):
    embedder = onnx.load(DEFAULT_MODEL, model_directory, CONFIG)
    known = reference.load(manifest.locate())
    unknown = dataclasses.replace(manifest.load().default, id="unknown")
    known.check(embedder, unknown)
    alike = reference.Reference((known.sentences[0],) * 2, {})
    with pytest.raises(ModelError, match="apart"):
        alike.check(embedder, unknown)


def test_a_damaged_reference_is_an_error_with_the_way_out(tmp_path):
    (tmp_path / "reference.json").write_text('{"sentences": [], "vectors": {"m": "%"}}')
    with pytest.raises(ModelError, match=r"python -m edge\.embedder\.write_reference"):
        reference.load(tmp_path)
