"""What is measured at the first start, and what is kept of it."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.clock import SystemClock
from edge.config import Embedding
from edge.embedder import calibrate, choice, hardware, sentences
from edge.embedder.fake import HashEmbedder
from edge.embedder.governor import BYTES_PER_TOKEN
from edge.types import Lane

CONFIG = Embedding()
CLOCK = SystemClock()


class Invariant(HashEmbedder):
    """Its rows may share a run, as ModelInfo tells."""

    @property
    def info(self):
        return dataclasses.replace(super().info, batch_invariant=True)


@pytest.fixture
def models(tmp_path):
    """A models directory in which the fake embedder has a file to be known by."""
    folder = tmp_path / HashEmbedder().info.id
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"a graph")
    return tmp_path


@pytest.fixture
def speeds(monkeypatch):
    """Tokens a second by (threads, tokens of a batch), instead of measured ones; what was asked is in `asked`."""

    class Script(dict):
        def __init__(self):
            super().__init__()
            self.asked = []

    script = Script()

    def throughput(embedder, texts, workers, batch_tokens, seconds, now):
        script.asked.append((workers, batch_tokens))
        return script.get((workers, batch_tokens), 1000.0)

    monkeypatch.setattr(calibrate, "throughput", throughput)
    return script


def kept_file(models):
    return models / HashEmbedder().info.id / "calibration.json"


def test_the_default_stays_unless_another_setting_is_clearly_faster(speeds):
    speeds.update({(4, 512): 1000.0, (2, 512): 1090.0})
    assert calibrate.measure(HashEmbedder(workers=4), CONFIG).workers == 4


def test_a_clearly_faster_number_of_threads_is_taken(speeds):
    speeds.update({(4, 512): 1000.0, (2, 512): 1200.0})
    found = calibrate.measure(HashEmbedder(workers=4), CONFIG)
    assert (found.workers, found.tokens_per_second) == (2, 1200.0)


def test_batches_are_tried_only_where_rows_may_share_a_run(speeds):
    speeds[1, 1024] = 1500.0
    assert calibrate.measure(HashEmbedder(), CONFIG).batch_tokens == 512
    assert calibrate.measure(Invariant(), CONFIG).batch_tokens == 1024


def test_threads_that_the_owner_has_set_are_not_searched_for(speeds):
    calibrate.measure(HashEmbedder(workers=3), Embedding(workers=3))
    assert {workers for workers, _ in speeds.asked} == {3}


def test_what_there_was_no_time_to_measure_is_not_taken(speeds):
    speeds.update({(4, 512): 1000.0, (1, 512): 5000.0})
    late = iter(range(0, 1000, 10))
    found = calibrate.measure(HashEmbedder(workers=4), CONFIG, seconds=3.0, now=lambda: next(late))
    assert found.workers == 4
    assert [row.workers for row in found.table] == [4]


def test_the_memory_of_a_run_is_what_the_process_grew_by(speeds):
    grown = iter([100_000_000, *[100_000_000 + 512 * 50_000] * 100_000])
    found = calibrate.measure(HashEmbedder(), CONFIG, memory=lambda: next(grown))
    assert found.bytes_per_token == pytest.approx(50_000, rel=0.01)


def test_memory_that_was_there_already_says_nothing(speeds):
    assert calibrate.measure(HashEmbedder(), CONFIG, memory=lambda: 7).bytes_per_token == BYTES_PER_TOKEN


def test_memory_that_no_run_can_have_taken_says_nothing(speeds):
    grown = iter([0, *[1 << 40] * 100_000])
    assert calibrate.measure(HashEmbedder(), CONFIG, memory=lambda: next(grown)).bytes_per_token == BYTES_PER_TOKEN


def test_every_thread_runs_at_least_one_batch():
    embedder = HashEmbedder()
    texts = sorted(embedder.encode(sentences.made(20, 3), Lane.INGEST), key=lambda item: item.tokens)
    assert calibrate.throughput(embedder, texts, 3, 64, 0.0) > 0


def test_the_governor_gets_a_device(speeds):
    embedder = HashEmbedder(workers=2)
    found = calibrate.measure(embedder, CONFIG)
    device = found.device(embedder.info)
    assert (device.threads, device.batch_tokens, device.window) == (2, 512, 512)
    assert device.bytes_per_token == found.bytes_per_token
    # Rows that share a run make a batch the slice that a recall may wait for; rows alone do not.
    shared = found.device(replace(embedder.info, batch_invariant=True))
    assert shared.least_batch < device.least_batch <= device.batch_tokens


def test_a_second_start_does_not_measure_again(models, speeds):
    first = calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK)
    asked = len(speeds.asked)
    assert calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK) == first
    assert len(speeds.asked) == asked > 0


@pytest.mark.parametrize("change", ["graph", "hardware", "version", "threads"])
def test_it_is_measured_anew_when_the_device_or_what_runs_on_it_changes(models, speeds, monkeypatch, change):
    first = calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK)
    config = CONFIG
    if change == "graph":
        (models / HashEmbedder().info.id / "model.onnx").write_bytes(b"another graph")
    elif change == "hardware":
        other = dataclasses.replace(hardware.here(), flags=("avx2",), processor="another")
        monkeypatch.setattr(hardware, "here", lambda: other)
    elif change == "version":
        monkeypatch.setattr(calibrate, "__version__", "99")
    else:
        config = Embedding(workers=1)
    assert calibrate.load_or_measure(HashEmbedder(), models, config, CLOCK).key != first.key


def test_it_is_skipped_when_the_owner_says_so(models, speeds):
    found = calibrate.load_or_measure(HashEmbedder(workers=2), models, Embedding(calibrate=False), CLOCK)
    assert (found.at, found.workers, found.batch_tokens) == (0, 2, 512)
    assert not speeds.asked and not kept_file(models).exists()


def test_an_embedder_without_files_here_is_not_measured(tmp_path, speeds):
    assert calibrate.load_or_measure(HashEmbedder(), tmp_path, CONFIG, CLOCK).at == 0
    assert not speeds.asked


def test_a_models_directory_that_cannot_be_written_stops_nothing(models, speeds, monkeypatch):
    def refuse(path, content):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(choice, "replace", refuse)
    assert calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK).at > 0


def test_a_measurement_that_fails_leaves_the_configured_values(models, monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(calibrate, "throughput", fail)
    found = calibrate.load_or_measure(HashEmbedder(workers=2), models, CONFIG, CLOCK)
    assert (found.at, found.workers) == (0, 2)


def test_two_starts_at_once_both_come_through(models, speeds):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK), range(4)))
    assert len({one.key for one in found}) == 1
    assert json.loads(kept_file(models).read_text())["key"] == found[0].key


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from([field.name for field in dataclasses.fields(calibrate.Calibration)]), inner, max_size=9
    ),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_a_damaged_record_is_no_record(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("calibration") / "calibration.json"
    path.write_bytes(content)
    assert calibrate._read(path, "a key") is None


def test_a_record_without_an_end_to_its_brackets_is_no_record(tmp_path):
    path = tmp_path / "calibration.json"
    path.write_text("[" * 200_000)
    assert calibrate._read(path, "a key") is None


@pytest.mark.parametrize(("field", "value"), [("workers", 0), ("workers", 10**9), ("batch_tokens", -1),
                                              ("batch_tokens", 10**400), ("bytes_per_token", 0),
                                              ("bytes_per_token", 1e300), ("bytes_per_token", 1e999)])  # fmt: skip
def test_a_record_with_an_impossible_value_is_no_record(models, speeds, field, value):
    found = calibrate.load_or_measure(HashEmbedder(), models, CONFIG, CLOCK)
    path = kept_file(models)
    assert calibrate._read(path, found.key) == found
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    assert calibrate._read(path, found.key) is None


def test_the_sentences_to_measure_with_are_always_the_same_and_all_different():
    texts = sentences.made(300, 1)
    assert texts == sentences.made(300, 1)
    assert len(set(texts)) == 300
    assert not set(sentences.made(300, 2)[16:]) <= set(texts)
    assert max(map(len, texts)) > 20 * min(map(len, texts))


@pytest.mark.parametrize(
    ("flags", "machine", "saturates"),
    [
        (("avx2",), "x86_64", True),
        (("avx2", "avx512_vnni"), "x86_64", False),
        (("avx_vnni",), "AMD64", False),
        (("asimd",), "aarch64", False),
    ],
)
def test_x86_without_vnni_saturates(flags, machine, saturates):
    assert hardware.Hardware("", 4, 8, flags, machine).saturates is saturates


def test_cpuinfo_of_x86_and_of_arm_is_understood():
    x86 = (
        "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 avx512_vnni\n\nprocessor\t: 1\nflags : x\n"
    )
    assert hardware.parse(x86) == ("Some CPU @ 2 GHz", {"fpu", "avx2", "avx512_vnni"})
    arm = "processor\t: 0\nFeatures\t: fp asimd asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd42\n"
    assert hardware.parse(arm) == ("0x41 0xd42", {"fp", "asimd", "asimddp"})
    assert hardware.parse("") == ("", set())


def test_this_machine_is_known():
    here = hardware.here()
    assert here.cores >= 1
    assert set(here.flags) <= hardware._TELLING
    assert Path("/proc/cpuinfo").exists() <= bool(here.processor or here.flags)
