"""Models that run beside each other: what the device is for them together, and what the one costs against the other."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from edge.embedder import sentences
from edge.embedder.calibrate import Calibration
from edge.embedder.governor import Device
from edge.ports import Embedder
from edge.types import Lane, ModelInfo

# Texts by which the models that run together are compared; and the times that they may differ: the smallest and the
# largest here differ by 40.
_COMPARED, _MOST_APART = 4, 100.0
_ROUNDS, _SEED = 2, 7


def together(first: Device, others: Sequence[tuple[Calibration, ModelInfo]]) -> Device:
    """The device as the governor has to see it when these run beside the first model: the memory of the hungriest."""
    devices = [first, *(calibration.device(info) for calibration, info in others)]
    return dataclasses.replace(
        first,
        window=max(device.window for device in devices),
        bytes_per_token=max(device.bytes_per_token for device in devices),
        least_batch=max(device.least_batch for device in devices),
    )


def cost(embedder: Embedder, first: Embedder, now: Callable[[], float] = time.thread_time) -> float:
    """Of a token of one model, in tokens of the first, from a few runs of each by turns: some 0.2 s.

    In processor time, which a busy neighbour hardly changes: rates that were calibrated on a busy machine came out 15
    times apart for two models of which one takes twice the other's time. 1 where it says nothing, as for accelerators.
    """
    if embedder.info.device != "cpu" or first.info.device != "cpu":
        return 1.0
    texts = sentences.made(_COMPARED, _SEED)
    quickest: dict[tuple[Embedder, int], float] = {}
    models = {one: one.encode(texts, Lane.INGEST) for one in (embedder, first)}
    for _ in range(_ROUNDS):
        for at in range(_COMPARED):
            for one, items in models.items():
                begun = now()
                one.embed([items[at]])
                took = (now() - begun) / max(1, items[at].tokens)
                quickest[one, at] = min(took, quickest.get((one, at), took))
    own, others = (sum(quickest[one, at] for at in range(_COMPARED)) for one in (embedder, first))
    return own / others if others > 0 and 1 / _MOST_APART <= own / others <= _MOST_APART else 1.0
