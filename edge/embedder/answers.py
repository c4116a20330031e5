"""What becomes of the texts of a batch: a vector, a refusal or a failure, and each is told in time."""

from __future__ import annotations

import contextlib
import logging
from concurrent.futures import Future, InvalidStateError

import numpy as np

from edge.embedder.lanes import Entry
from edge.errors import DeadlineExceeded, EdgeError, ModelError, Unavailable, VectorRefused
from edge.ports import Embedder
from edge.types import Matrix, Vector

log = logging.getLogger(__name__)

NO_MEMORY = "NO_MEMORY"
MODEL_HANGS = "MODEL_HANGS"


def embed(embedder: Embedder, entries: list[Entry]) -> None:
    """Settle every entry; a batch that fails is tried text by text, so that only the culprit suffers. Never raises."""
    try:
        rows = _rows(embedder, entries)
    except BaseException as error:  # noqa: BLE001  # whatever the model raises, its callers get an answer
        if len(entries) == 1:
            fail(entries[0].future, left_to_words() if _out_of_memory(error) else error)
            return
        log.warning("a batch of %d failed (%s); its texts are tried one by one", len(entries), type(error).__name__)
        for entry in entries:
            embed(embedder, [entry])
        return
    for entry, row in zip(entries, rows, strict=True):
        if np.isfinite(row).all():
            # A copy: a row would keep its whole batch alive.
            answer(entry.future, row.copy())
        else:
            refusal = "the model has no vector for this text; it can still be found by its words"
            fail(entry.future, VectorRefused(refusal))


def _rows(embedder: Embedder, entries: list[Entry]) -> Matrix:
    rows = embedder.embed([entry.encoded for entry in entries])
    shape = (len(entries), embedder.info.dimension)
    if rows.shape != shape:
        raise ModelError(f"the model gave vectors of shape {rows.shape}, not {shape}; pull it again", field="model")
    return rows


def answer(future: Future[Vector], vector: Vector) -> None:
    """Give a future its vector, unless `close` has answered it meanwhile. Never raises."""
    # BaseException: set_result runs the caller's callbacks here, and theirs is not the worker's fault.
    with contextlib.suppress(InvalidStateError, BaseException):
        future.set_result(vector)


def fail(future: Future[Vector], error: BaseException) -> None:
    """Fail a future, unless it has its answer. Never raises."""
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        # An exit belongs to the thread it was raised in, and asyncio takes no StopIteration.
        error = EdgeError(f"the model failed with {type(error).__name__}; see the log")
    with contextlib.suppress(InvalidStateError, BaseException):
        future.set_exception(error)


def no_room() -> Unavailable:
    return Unavailable(
        "the device is too short of memory to run the model on this question; ask again in a moment, or free some",
        reason=NO_MEMORY,
    )


def left_to_words() -> VectorRefused:
    return VectorRefused(
        "the device was too short of memory to run the model on this text; it is found by its words until it gets its "
        "vector, when there is memory again",
        reason=NO_MEMORY,
    )


def standing_still() -> Unavailable:
    return Unavailable(
        "the model does not come back from its present work; ask again in a moment, and restart the box if it stays so",
        reason=MODEL_HANGS,
    )


def _out_of_memory(error: BaseException) -> bool:
    # onnxruntime has an exception of its own for it, which can be told by its words only.
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error)


def begin(entry: Entry) -> bool:
    """Whether somebody still waits for it; if its time is up, it is told so."""
    if entry.expired:
        fail(entry.future, DeadlineExceeded("the time allowed was over before the text had its vector; allow more"))
        return False
    if entry.future.done() and not entry.future.cancelled():
        # `close` or `check` has answered it.
        return False
    try:
        return entry.future.set_running_or_notify_cancel()
    except (InvalidStateError, RuntimeError):
        # They have, between the two lines.
        return False
