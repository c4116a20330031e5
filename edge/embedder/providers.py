"""Which of onnxruntime's execution providers really works here.

A provider in the list proves nothing: its libraries may be missing, or its kernels wrong for this chip. So one is
used only after it has run a real batch and its vectors agree with the CPU's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from edge.embedder import hardware
from edge.embedder.manifest import Model
from edge.errors import InvalidArgument
from edge.types import Matrix

log = logging.getLogger(__name__)

CPU = "CPUExecutionProvider"
_PROVIDERS = {
    "cpu": CPU,
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
}
# Half precision and another order of sums move a vector by less than this; a wrong kernel by more.
AGREEMENT = 0.99

# Runs a real batch on a session: (n, dimension), unit rows.
Probe = Callable[[Any], Matrix]


class Runtime(Protocol):
    """What is used of the onnxruntime module."""

    def get_available_providers(self) -> list[str]: ...

    def SessionOptions(self) -> Any: ...  # noqa: N802  # the module's own name

    def RunOptions(self) -> Any: ...  # noqa: N802  # the module's own name

    def InferenceSession(self, model: bytes, options: Any, *, providers: list[str]) -> Any: ...  # noqa: N802  # the module's own name


def candidates(device: str, precision: str, available: Sequence[str]) -> list[str]:
    """Device names to try, best first; "cpu" is always the last. Pure.

    "auto" means CUDA for models of floating point: onnxruntime runs int8 operators on CUDA by falling back to the CPU
    one by one (onnxruntime#10267), TensorRT takes minutes to build its engines, and CoreML has limits that BERT's
    vocabulary exceeds (onnxruntime#25421), so those two are only used when they are asked for.

    Raises InvalidArgument for a device that is none of "auto", "cpu", "cuda", "tensorrt", "coreml".
    """
    if device not in ("auto", *_PROVIDERS):
        raise InvalidArgument(
            f"embedding.device: {device!r} is unknown; use auto, {', '.join(_PROVIDERS)}", field="embedding.device"
        )
    wish = {"auto": () if precision == "int8" else ("cuda",), "cpu": ()}.get(device, (device,))
    return [*(name for name in wish if _PROVIDERS[name] in available), "cpu"]


def open_session(runtime: Runtime, graph: bytes, model: Model, device: str, probe: Probe) -> tuple[Any, str]:
    """(session, device name): the best candidate whose vectors agree with the CPU's. Warns of each that is passed over.

    Raises what onnxruntime raises when even the CPU cannot load the graph.
    """
    names = candidates(device, model.precision, runtime.get_available_providers())
    if device not in ("auto", names[0]):
        log.warning("embedding.device is %s, which this onnxruntime does not have; using the CPU", device)
    reference = _session(runtime, graph, "cpu")
    for name, session in _accelerated(runtime, graph, names):
        try:
            agreement = float(np.min(np.sum(probe(session) * probe(reference), axis=1)))
        except Exception as error:  # noqa: BLE001  # a provider may fail with anything; the CPU is there
            log.warning("%s was passed over, its warm-up failed: %s", name, error)
            continue
        # NaN compares false, and so is passed over too.
        if agreement >= AGREEMENT:
            return session, name
        log.warning("%s was passed over, its vectors differ from the CPU's (cosine %.4f)", name, agreement)
    return reference, "cpu"


def _accelerated(runtime: Runtime, graph: bytes, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        if name == "cpu":
            continue
        try:
            session = _session(runtime, graph, name)
        except Exception as error:  # noqa: BLE001  # a provider may fail with anything; the CPU is there
            log.warning("%s was passed over, it could not be started: %s", name, error)
            continue
        # Where a provider's libraries are missing onnxruntime quietly gives a CPU session.
        if _PROVIDERS[name] in session.get_providers():
            yield name, session
        else:
            log.warning("%s was passed over, its libraries are not usable here", name)


def _session(runtime: Runtime, graph: bytes, device: str) -> Any:
    """A session that any number of threads may run at once, each on its own core.

    One thread inside a run: two threads with a row each gave 147 texts/s on two cores, against 128 for one with both
    and 152 for the best padded batches, which an int8 model cannot have.

    The arena grows by doubling, without memory patterns, and is not shrunk while there is work. The process after 100
    and after 800 rows of random length 1 to 512 on two threads, from 105 MB with the session alone (onnxruntime 1.32,
    x86, glibc):

    | arena | MB | |
    |---|---|---|
    | as here | 153, 154 | flat; `OnnxEmbedder.release` brings it to 108 |
    | kSameAsRequested | 197, 215 | regions of odd sizes fit no other length |
    | shrunk after each run | 254, 270 | after 400 rows; glibc keeps what is freed, run after run |
    | none | 214, 219 | the same; with mmap from 1 MB on 138, 127, and twice the CPU time, for page faults |
    | as here, with patterns | 147, 158 | after 400 rows; a plan is kept for every length ever seen |

    Lengths are not rounded up to buckets: the arena is flat without, and padding moves an int8 model's vectors.
    """
    options = runtime.SessionOptions()
    # Set, so that onnxruntime does not pin threads to cores that a cpuset may deny (onnxruntime#8313).
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if hardware.here().saturates:
        # Exact int8 products. With VNNI they are exact anyway, and this would run weights of the full range at less
        # than half the speed (the stock file's are of seven bits, and do not mind).
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    providers = [CPU] if device == "cpu" else [_PROVIDERS[device], CPU]
    return runtime.InferenceSession(graph, options, providers=providers)
