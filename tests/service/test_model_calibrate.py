"""`edge model calibrate` and the first start, with the real model."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from edge.clock import SystemClock
from edge.config import DEFAULT_MODEL, Embedding
from edge.embedder import calibrate, choice, manifest, onnx, store, variants
from edge.types import Lane

MODEL = manifest.load().default


@pytest.fixture
def models(model_directory, tmp_path):
    """The default model alone, in a folder of its own."""
    shutil.copytree(
        model_directory / DEFAULT_MODEL, tmp_path / DEFAULT_MODEL, ignore=shutil.ignore_patterns("variants", "cal*")
    )
    return tmp_path


def edge(models, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "edge.cli", "model", "calibrate", *arguments],
        env={**os.environ, "EDGE_MODELS": str(models)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def test_without_the_full_precision_file_it_says_how_to_get_it(models):
    done = edge(models)
    assert done.returncode == 1
    assert "edge model pull bge-small-zh-v1.5\n" in done.stderr
    assert choice.taken(MODEL, models) is None


def test_going_back_to_the_stock_file_needs_no_measuring(models):
    done = edge(models, "--take", "stock", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"model": DEFAULT_MODEL, "taken": "stock"}


def test_a_dry_run_goes_back_to_nothing(models):
    embedder = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu", instruction=True))
    choice.take(MODEL, models, "again", store.read(MODEL, models)["model.onnx"], embedder, "int8")
    # It would print the table, for which there is no full-precision file here.
    assert edge(models, "--take", "stock", "--dry-run").returncode == 1
    assert choice.name(MODEL, models) == "again"


def test_an_unknown_model_is_refused(models):
    assert edge(models, "no-such-model").returncode == 5


def test_the_first_start_measures_the_device_and_the_second_does_not(models):
    embedder = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu"))
    first = calibrate.load_or_measure(embedder, models, Embedding(), SystemClock())
    assert first.at > 0 and first.tokens_per_second > 0 and first.variant == "stock"
    assert 1 <= first.workers <= embedder.info.workers
    assert calibrate.load_or_measure(embedder, models, Embedding(), SystemClock()) == first
    # It never changes the variant: memories are not embedded anew by surprise.
    assert choice.taken(MODEL, models) is None
    embedder.close()


def test_a_variant_that_was_taken_serves_under_its_own_id(models):
    # The stock file's own graph as a variant: what counts is the way in.
    graph = store.read(MODEL, models)["model.onnx"]
    embedder = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu", instruction=True))
    choice.take(MODEL, models, "again", graph, embedder, "int8")
    taken = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu"))
    assert taken.info.id == f"{DEFAULT_MODEL}+again"
    rows = [one.embed(one.encode(["我家的猫叫豆包"], Lane.INGEST))[0] for one in (embedder, taken)]
    assert float(rows[0] @ rows[1]) > 0.9999
    assert edge(models, "--take", "stock").returncode == 0
    assert onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu")).info.id == DEFAULT_MODEL


def test_the_best_variant_is_measured_taken_and_served(models, model_directory, monkeypatch):
    full = variants.full_precision(MODEL)
    if not store.installed(full, model_directory):
        pytest.skip(f"{full.id} is not here; get it with: edge model pull {full.id}")
    (models / full.id).symlink_to(model_directory / full.id)
    for name, value in (("_FIT", 60), ("_FIT_ODD", 20), ("_JUDGE", 30), ("_TIMED", 4), ("_REPEATS", 1), ("_ROUNDS", 1)):
        monkeypatch.setattr(variants, name, value)
    found = variants.compare(MODEL, models, Embedding(), lambda text: None)
    rows = {row.variant: row for row in found.rows}
    assert set(rows) == {"stock", "fp32", "float", "tensor", "row", "static", "weights"} and not found.left_out
    assert rows["static"].true and rows["static"].independent and rows["float"].worst > 0.9999
    variants.take(found, "static", models)
    taken = onnx.load(DEFAULT_MODEL, models, Embedding(device="cpu"))
    assert taken.info.id == f"{DEFAULT_MODEL}+static" and taken.info.batch_invariant
