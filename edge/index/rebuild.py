"""A fresh graph from the stored vectors, while the old one serves."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from edge.errors import Unavailable
from edge.index.hnsw import HnswGraph
from edge.index.pair import LOOK_ROWS, GraphAndOverlay
from edge.index.vectors import sound_rows
from edge.ports import VectorSource

log = logging.getLogger(__name__)

CLOSED = "the index was closed before it was rebuilt; open it again"


def rebuild(
    pair: GraphAndOverlay,
    source: VectorSource,
    model: str,
    *,
    rows_at_once: int,
    threads: int,
    closing: Callable[[], bool],
    between: Callable[[], None],
) -> int:
    """Replaces the graph of `pair` by one of what `source` has, and says how many rows that were.

    `between` is called after each `rows_at_once` rows (to move what has gathered in the overlay meanwhile). `threads`
    0 uses every core, at low priority: no lock is held while rows go into the fresh graph.
    Raises Unavailable once `closing()`, and whatever the source raises; then the old graph stays.
    """
    pair.begin_rebuild()
    try:
        rowids = source.vector_rowids(model)
        fresh = HnswGraph(pair.dimension, len(rowids) + len(rowids) // 8 + 1024)
        with ThreadPoolExecutor(1, "edge-index-build", initializer=_yield_to_others) as builder:
            for ids, rows in source.iter_vectors(model, rowids, rows_at_once):
                if closing():
                    raise Unavailable(CLOSED)
                builder.submit(fresh.put, *sound_rows(ids, rows), threads).result()
                between()
            # Each round takes over what came during the one before, until so little is left that it can wait
            # for the swap.
            while len(touched := pair.take_touched()) > LOOK_ROWS:
                for start in range(0, len(touched), LOOK_ROWS):
                    part = touched[start : start + LOOK_ROWS]
                    living, rows = pair.get(part)
                    fresh.remove(part)
                    builder.submit(fresh.put, living, rows, threads).result()
            pair.give_back(touched)
        pair.swap(fresh)
    finally:
        pair.end_rebuild()
    return len(rowids)


def _yield_to_others() -> None:
    # hnswlib's threads inherit it. A thread has a priority of its own on Linux only; elsewhere this would be the
    # whole process's.
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        except OSError:
            log.debug("The priority of the rebuild could not be lowered")
