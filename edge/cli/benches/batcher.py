"""The batcher alone: texts in, vectors out, in this process, without a box around it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from edge.clock import SystemClock
from edge.config import DEFAULT_MODEL, Embedding, models_directory
from edge.embedder.batcher import Batcher
from edge.embedder.governor import FixedGovernor
from edge.embedder.onnx import load
from edge.types import Lane


@contextlib.contextmanager
def working() -> Iterator[Batcher]:
    """A batcher as a box starts it, with the budget of the configuration. Raises ModelError without the model."""
    config = Embedding()
    embedder = load(DEFAULT_MODEL, models_directory(), config)
    try:
        with Batcher(embedder, FixedGovernor(config), SystemClock(), config) as batcher:
            yield batcher
    finally:
        embedder.close()


def embed(batcher: Batcher, texts: Sequence[str]) -> float:
    """Seconds from handing in all of the texts, in their order, to the last vector; tokenising is in it."""
    started = time.perf_counter()
    # A lane in which nothing waits takes whatever comes.
    for future in batcher.submit(texts, Lane.INGEST):
        future.result()
    return time.perf_counter() - started
