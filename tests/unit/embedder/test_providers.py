"""Choosing an execution provider, with a runtime that is a script."""

import dataclasses
import logging

import numpy as np
import pytest

from edge.embedder import manifest, providers
from edge.errors import InvalidArgument

ALL = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CoreMLExecutionProvider", "CPUExecutionProvider"]
INT8 = manifest.load().default
FLOAT = dataclasses.replace(INT8, precision="fp32")


@pytest.mark.parametrize(
    ("device", "precision", "available", "chosen"),
    [
        ("auto", "fp32", ALL, ["cuda", "cpu"]),
        ("auto", "int8", ALL, ["cpu"]),
        ("auto", "fp32", ALL[3:], ["cpu"]),
        ("cpu", "fp32", ALL, ["cpu"]),
        ("cuda", "int8", ALL, ["cuda", "cpu"]),
        ("tensorrt", "fp32", ALL, ["tensorrt", "cpu"]),
        ("coreml", "fp32", ALL, ["coreml", "cpu"]),
        ("cuda", "fp32", ALL[3:], ["cpu"]),
    ],
)
def test_only_what_is_wished_for_and_there_is_tried(device, precision, available, chosen):
    assert providers.candidates(device, precision, available) == chosen


def test_an_unknown_device_is_refused_by_name():
    with pytest.raises(InvalidArgument, match="'tpu'") as refusal:
        providers.candidates("tpu", "fp32", ALL)
    assert refusal.value.field == "embedding.device"


class Session:
    def __init__(self, wanted, usable):
        self.wanted = wanted
        self.usable = usable

    def get_providers(self):
        return [name for name in self.wanted if name in self.usable]


class Runtime:
    def __init__(self, available=ALL, usable=ALL, fails=False):
        self.available, self.usable, self.fails = available, usable, fails

    def get_available_providers(self):
        return self.available

    def SessionOptions(self):  # noqa: N802  # onnxruntime's name
        class Options:
            def add_session_config_entry(self, key, value):
                pass

        return Options()

    def InferenceSession(self, graph, options, *, providers):  # noqa: N802  # onnxruntime's name
        if self.fails and len(providers) > 1:
            raise RuntimeError("CUDA failure 35")
        assert options.intra_op_num_threads == 1
        return Session(providers, self.usable)


def _probe(cuda_row):
    def probe(session):
        if isinstance(cuda_row, Exception) and len(session.wanted) > 1:
            raise cuda_row
        row = cuda_row if len(session.wanted) > 1 else [1.0, 0.0]
        return np.array([[1.0, 0.0], row], np.float32)

    return probe


def _open(runtime, row, device="auto"):
    return providers.open_session(runtime, b"", FLOAT, device, _probe(row))[1]


def test_a_provider_whose_vectors_agree_is_taken(caplog):
    assert _open(Runtime(), [0.9999, 0.01]) == "cuda"
    assert not caplog.records


@pytest.mark.parametrize("row", [[0.9, 0.43], [float("nan")] * 2, RuntimeError("no kernel image")])
def test_a_provider_that_is_wrong_or_fails_gives_way_to_the_cpu_with_a_warning(row, caplog):
    with caplog.at_level(logging.WARNING):
        assert _open(Runtime(), row) == "cpu"
    assert "cuda was passed over" in caplog.text


def test_a_provider_that_cannot_start_gives_way(caplog):
    assert _open(Runtime(fails=True), [1.0, 0.0]) == "cpu"
    assert "could not be started" in caplog.text


def test_a_provider_that_is_quietly_replaced_by_the_cpu_is_noticed(caplog):
    assert _open(Runtime(usable=["CPUExecutionProvider"]), [1.0, 0.0]) == "cpu"
    assert "libraries are not usable" in caplog.text


def test_a_device_that_was_asked_for_and_is_absent_is_a_warning(caplog):
    assert _open(Runtime(available=["CPUExecutionProvider"]), [1.0, 0.0], "cuda") == "cpu"
    assert "does not have" in caplog.text
