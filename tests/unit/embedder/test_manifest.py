"""The manifest of models."""

import subprocess
import sys

import pytest

from edge.config import DEFAULT_MODEL
from edge.embedder import manifest, reference
from edge.errors import ModelError, NotFound


def test_the_default_model_is_the_configurations():
    assert manifest.load().default.id == DEFAULT_MODEL


def test_the_default_model_has_the_contracts_digests():
    model = manifest.load().default
    assert {file.name: (file.sha256, file.bytes) for file in model.files} == {
        "model.onnx": ("15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc", 24_010_842),
        "tokenizer.json": ("48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26", 439_125),
    }
    assert (model.dimension, model.pooling, model.normalise, model.lowercase) == (512, "cls", True, True)
    assert model.instruction == "为这个句子生成表示以用于检索相关文章："
    assert not model.batch_invariant


def test_all_models_of_the_contract_are_listed():
    assert {model.id: model.dimension for model in manifest.load().models} == {
        "bge-small-zh-v1.5-q": 512,
        "bge-small-en-v1.5-q": 384,
        "bge-small-zh-v1.5": 512,
        "bge-base-zh-v1.5": 768,
        "bge-large-zh-v1.5": 1024,
        "bge-m3": 1024,
    }


def test_every_model_says_whose_texts_it_is_for():
    assert {model.id: model.language for model in manifest.load().models} == {
        "bge-small-zh-v1.5-q": "zh",
        "bge-small-en-v1.5-q": "en",
        "bge-small-zh-v1.5": "zh",
        "bge-base-zh-v1.5": "zh",
        "bge-large-zh-v1.5": "zh",
        "bge-m3": "any",
    }


def test_a_model_that_says_no_more_is_for_any_language(tmp_path):
    path = tmp_path / "manifest.toml"
    path.write_text(GOOD)
    model = manifest.parse(path).default
    assert model.language == "any"
    assert -1 <= model.unrelated < model.related <= 1


def test_an_unknown_model_is_named_with_those_there_are():
    with pytest.raises(NotFound, match=r"'nothing'.*bge-small-zh-v1\.5-q"):
        manifest.load().get("nothing")


def test_every_model_with_known_digests_has_its_reference_vectors():
    known = reference.load(manifest.locate())
    for model in manifest.load().models:
        if model.files and all(file.sha256 for file in model.files):
            assert known.vectors[model.id].shape == (2 * len(known.sentences), model.dimension)


GOOD = """
[[model]]
id = "m"
kind = "onnx"
default = true
dimension = 4
pooling = "cls"
normalise = true
max_tokens = 512
precision = "fp32"
batch_invariant = true
licence = "MIT"
[[model.file]]
name = "model.onnx"
[[model.file]]
name = "tokenizer.json"
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('id = "m"', 'id = "../m"'), "cannot name a file"),
        (("dimension = 4", "dimension = true"), "dimension must be a int"),
        (("dimension = 4", "dimension = 0"), "dimension must be above 0"),
        (('pooling = "cls"', 'pooling = "max"'), "pooling must be cls or mean"),
        (('kind = "onnx"', 'kind = "pickle"'), "kind must be onnx or remote"),
        (('id = "m"', 'id = "m"\nlanguage = "fr"'), "language must be zh, en or any"),
        (('id = "m"', 'id = "m"\nunrelated = 0.99'), "unrelated must be below related"),
        (('id = "m"', 'id = "m"\nrelated = nan'), "unrelated must be below related"),
        (('id = "m"', 'id = "m"\nrelated = "much"'), "related must be a float"),
        (("default = true", "default = false"), "exactly one model"),
        (('name = "model.onnx"', 'name = "model.onnx"\nsha256 = "ab"'), "sha256"),
        (('name = "model.onnx"', 'name = "other.onnx"'), "must be model.onnx and tokenizer.json"),
        (("[[model]]", "[[models]]"), "at least one"),
        (("dimension = 4", "dimension ="), "cannot be read as TOML"),
    ],
)
def test_a_wrong_manifest_is_refused_by_name(tmp_path, change, says):
    path = tmp_path / "manifest.toml"
    path.write_text(GOOD)
    assert manifest.parse(path).default.id == "m"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ModelError, match=says):
        manifest.parse(path)


def test_the_store_and_the_manifest_import_nothing_heavy():
    code = (
        "import sys, edge.embedder.store, edge.embedder.manifest;"
        "heavy = {'onnxruntime', 'tokenizers', 'huggingface_hub', 'hnswlib'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
