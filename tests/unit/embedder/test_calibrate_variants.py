"""Which variant is worth taking, and that taking one is safe."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import Embedding
from edge.embedder import choice, graphs, manifest, onnx, reference, variants
from edge.embedder.fake import HashEmbedder
from edge.embedder.variants import Measured
from edge.errors import InvalidArgument, ModelError

MODEL = manifest.load().default


def measured(variant, best=1000.0, mean=0.99, worst=0.98, batch=1.0):
    return Measured(variant, 1, best, best, 2, 512, mean, worst, batch)


STOCK = measured("stock", 1000.0, 0.987, 0.977, 0.98)


def test_the_fastest_true_variant_is_taken():
    assert variants.worth_taking([STOCK, measured("quick", 1300.0)]) == "quick"


def test_a_fast_one_that_is_not_true_is_not():
    assert variants.worth_taking([STOCK, measured("wild", 9000.0, worst=0.9)]) == "stock"
    assert variants.worth_taking([STOCK, measured("unknown", 9000.0, mean=None, worst=None)]) == "stock"


def test_among_those_nearly_as_fast_the_truest_is_taken():
    rows = [STOCK, measured("quick", 1300.0, worst=0.98), measured("true", 1250.0, worst=0.997)]
    assert variants.worth_taking(rows) == "true"


def test_a_slow_one_is_not_taken_however_true():
    assert variants.worth_taking([STOCK, measured("float", 600.0, 1.0, 1.0)]) == "stock"


def test_the_full_precision_file_itself_is_only_the_measure():
    assert variants.worth_taking([STOCK, measured("fp32", 9000.0, 1.0, 1.0)]) == "stock"


@given(
    st.lists(
        st.builds(
            measured,
            st.sampled_from(["a", "b", "c", "fp32"]),
            st.floats(1, 1e6),
            st.none() | st.floats(0, 1),
            st.none() | st.floats(0, 1),
        ),
        max_size=6,
    )
)
def test_what_is_taken_is_always_true_and_nearly_the_fastest(rows):
    rows = [STOCK, *(dataclasses.replace(row, variant=f"{row.variant}{at}") for at, row in enumerate(rows))]
    taken = next(row for row in rows if row.variant == variants.worth_taking(rows))
    assert taken.true or taken.variant == "stock"
    assert all(taken.best >= 0.9 * row.best for row in rows if row.true or row.variant == "stock")


def test_the_int8_file_knows_its_full_precision_file():
    assert variants.full_precision(MODEL).id == "bge-small-zh-v1.5"
    assert variants.full_precision(manifest.load().get("bge-base-zh-v1.5")) is None


def test_without_the_full_precision_file_the_way_to_get_it_is_named(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"edge model pull bge-small-zh-v1\.5$"):
        variants._prepared(MODEL, tmp_path, lambda text: None)


def test_without_the_onnx_package_what_was_left_out_and_the_way_to_get_it_are_named(tmp_path, monkeypatch):
    def missing():
        raise ModelError("the onnx package cannot be imported; get it with: pip install 'edge-memory[calibrate]'")

    monkeypatch.setattr(graphs, "package", missing)
    monkeypatch.setattr(variants.store, "read", lambda model, directory: {"model.onnx": b"f", "tokenizer.json": b"t"})
    found, left_out = variants._prepared(MODEL, tmp_path, lambda text: None)
    assert list(found) == ["fp32"]
    assert "static" in left_out[0] and "edge-memory[calibrate]" in left_out[0]


def compared(*rows):
    return variants.Comparison(MODEL.id, rows, "stock", (), {"wild": b"graph"}, b"tokenizer")


def test_a_variant_that_was_not_measured_cannot_be_taken(tmp_path):
    with pytest.raises(InvalidArgument, match="there are stock") as refusal:
        variants.take(compared(STOCK), "nonsense", tmp_path)
    assert refusal.value.field == "take"


def test_a_variant_below_the_floor_cannot_be_taken(tmp_path):
    with pytest.raises(InvalidArgument, match="too far from full precision"):
        variants.take(compared(STOCK, measured("wild", worst=0.5)), "wild", tmp_path)
    assert not choice.folder(MODEL, tmp_path).exists()


def take(directory, name="static", graph=b"a graph"):
    choice.take(MODEL, directory, name, graph, HashEmbedder(MODEL.dimension), "int8")


def test_nothing_taken_is_the_stock_file(tmp_path):
    assert choice.taken(MODEL, tmp_path) is None
    assert choice.name(MODEL, tmp_path) == "stock"


def test_what_is_taken_has_an_id_and_vectors_of_its_own(tmp_path):
    take(tmp_path)
    chosen = choice.taken(MODEL, tmp_path)
    assert chosen.model.id == f"{MODEL.id}+static"
    assert chosen.graph == b"a graph"
    # The self-check passes for what made the vectors, and for nothing else.
    chosen.reference.check(HashEmbedder(MODEL.dimension), chosen.model)

    class Backwards(HashEmbedder):
        def embed(self, batch):
            return -super().embed(batch)

    with pytest.raises(ModelError):
        chosen.reference.check(Backwards(MODEL.dimension), chosen.model)


def test_going_back_leaves_the_stock_file(tmp_path):
    take(tmp_path)
    choice.go_back(MODEL, tmp_path)
    choice.go_back(MODEL, tmp_path)
    assert choice.taken(MODEL, tmp_path) is None


def damage(place, how):
    record = place / "static.json"
    if how == "graph":
        (place / "static.onnx").write_bytes(b"another graph")
    elif how == "no graph":
        (place / "static.onnx").unlink()
    elif how == "record":
        record.write_text("{")
    elif how == "no record":
        record.unlink()
    elif how == "vectors":
        record.write_text(json.dumps({**json.loads(record.read_text()), "vectors": "AAAA"}))
    elif how == "sentences":
        record.write_text(json.dumps({**json.loads(record.read_text()), "sentences": [1]}))
    elif how == "name":
        (place / "taken").write_text("../../static")
    else:
        (place / "taken").write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("how", ["graph", "no graph", "record", "no record", "vectors", "sentences", "name", "no text"])
def test_a_damaged_variant_is_refused_with_both_ways_out(tmp_path, how):
    take(tmp_path)
    damage(choice.folder(MODEL, tmp_path), how)
    with pytest.raises(ModelError, match=f"edge model calibrate {MODEL.id}.*--take stock"):
        choice.taken(MODEL, tmp_path)


def test_a_take_that_is_broken_off_leaves_what_was_taken_before(tmp_path, monkeypatch):
    take(tmp_path, "row")
    whole = choice.replace

    def break_off(path, content):
        if path.name == "taken":
            raise OSError(28, "No space left on device")
        whole(path, content)

    monkeypatch.setattr(choice, "replace", break_off)
    with pytest.raises(OSError, match="No space"):
        take(tmp_path, "static")
    assert choice.taken(MODEL, tmp_path).model.id == f"{MODEL.id}+row"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    choice.replace(path, b"old")
    with pytest.raises(TypeError):
        choice.replace(path, "no bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_variant_that_onnxruntime_cannot_open_is_refused_with_both_ways_out(tmp_path, monkeypatch):
    take(tmp_path)
    monkeypatch.setattr(onnx.store, "read", lambda model, directory: {"tokenizer.json": b"{}", "model.onnx": b""})
    with pytest.raises(ModelError, match="--take stock"):
        onnx.load(MODEL.id, tmp_path, Embedding(device="cpu"))


def test_the_reference_sentences_are_what_a_variant_is_checked_by(tmp_path):
    take(tmp_path)
    chosen = choice.taken(MODEL, tmp_path)
    assert [sentence.text for sentence in chosen.reference.sentences] == [text for _, text in reference.SENTENCES]
