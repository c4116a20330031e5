"""The query's vectors: asked for at once, waited for as long as there is time."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout

from edge.errors import DeadlineExceeded, EdgeError, Unavailable
from edge.ports import Vectorizer
from edge.recall.candidates import Asked
from edge.types import Lane, Vector

log = logging.getLogger(__name__)

# What is kept of the time to the deadline for all that follows the vector: a fifth, 50 ms at most.
_RESERVE_SHARE = 0.2
_RESERVE = 0.05
# Seconds between looks at a model that a recall without a deadline waits for.
_LOOK = 2.0


class QueryVectors:
    """Of one query, by every model that it is asked of. Nothing that stops a model raises: words can still answer."""

    def __init__(self, vectorizers: Mapping[str, Vectorizer], query: str, deadline: float | None) -> None:
        self._vectorizers = vectorizers
        self._deadline = deadline
        self._pending = {model: self._submit(vectorizer, query) for model, vectorizer in vectorizers.items()}

    def wait(self) -> tuple[list[Asked], EdgeError | None]:
        """The vectors that came in time; and why one did not, where one did not."""
        asked: list[Asked] = []
        failure: EdgeError | None = None
        for model, pending in self._pending.items():
            vector = self._wait(model, pending)
            if isinstance(vector, EdgeError):
                failure = failure or vector
            else:
                asked.append(Asked(self._vectorizers[model].info, vector))
        return asked, failure

    def cancel(self) -> None:
        for pending in self._pending.values():
            if isinstance(pending, Future):
                pending.cancel()

    def _submit(self, vectorizer: Vectorizer, query: str) -> Future[Vector] | EdgeError:
        try:
            return vectorizer.submit([query], Lane.RECALL, self._deadline)[0]
        except EdgeError as error:
            return error
        except Exception as error:  # noqa: BLE001  # whatever stops the model, words can still answer
            return _failed(error)

    def _wait(self, model: str, pending: Future[Vector] | EdgeError) -> Vector | EdgeError:
        if isinstance(pending, EdgeError):
            return pending
        try:
            if self._deadline is None:
                return self._moving(self._vectorizers[model], pending)
            left = self._deadline - time.monotonic()
            return pending.result(max(0.0, left - min(_RESERVE, left * _RESERVE_SHARE)))
        except EdgeError as error:
            return error
        except FutureTimeout:
            pending.cancel()
            return DeadlineExceeded("the model gave no vector before the deadline; ask again with more time")
        except CancelledError:
            return Unavailable("the model is being stopped; ask again in a moment")
        except Exception as error:  # noqa: BLE001  # whatever a model's run fails with, words can still answer
            return _failed(error)

    @staticmethod
    def _moving(vectorizer: Vectorizer, pending: Future[Vector]) -> Vector:
        """Waits for as long as the model moves: it lets those go that stand still, whenever it is asked how it does."""
        while not pending.done() and not wait([pending], _LOOK).done:
            vectorizer.status()
        return pending.result()


def usable(vectorizers: Mapping[str, Vectorizer], fitting: Sequence[str]) -> dict[str, Vectorizer]:
    return {model: vectorizers[model] for model in fitting if model in vectorizers}


def _failed(error: Exception) -> Unavailable:
    # The type alone: a runtime's message may quote its input.
    log.warning("the query's vector failed: %s", type(error).__name__)
    return Unavailable("the model failed on this query; look at the box's log, and ask again")
