"""An embedder without a model: equal words are near, and nothing is learnt. For tests and dry runs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from edge.errors import Unavailable
from edge.ports import Encoded
from edge.types import Lane, Matrix, ModelInfo

_WINDOW = 512
_RECALL_WINDOWS = 8
# Token ids that bracket each window, as a BERT has them; no gram gets these.
_FIRST, _LAST = 0, 1


class HashEmbedder:
    """ports.Embedder: a bag of character bigrams (and single characters), hashed to `dimension` signed counts.

    Deterministic on every machine. Case is folded, white space separates and counts for nothing.
    """

    def __init__(self, dimension: int = 512, workers: int = 1, language: str = "any") -> None:
        self._info = ModelInfo(f"hash-{dimension}", dimension, "cpu", workers, 0, language=language)
        self._closed = False

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str], lane: Lane) -> list[Encoded]:
        return [self._encode(text, lane) for text in texts]

    def embed(self, batch: Sequence[Encoded]) -> Matrix:
        if self._closed:
            raise Unavailable("the model was closed; the box is stopping")
        rows = np.zeros((len(batch), self._info.dimension), np.float32)
        for row, encoded in zip(rows, batch, strict=True):
            ids = np.array([token for window in encoded.windows for token in window[1:-1]], np.int64)
            # The lowest bit is the sign, so that unlike texts come out near 0 rather than all alike.
            np.add.at(row, (ids >> 1) % self._info.dimension, np.where(ids & 1, 1, -1).astype(np.float32))
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            unit: Matrix = np.where(norms > 0, rows / norms, np.float32(np.nan)).astype(np.float32, copy=False)
        return unit

    def release(self) -> int:
        """It has no buffers."""
        return 0

    def close(self) -> None:
        self._closed = True

    def _encode(self, text: str, lane: Lane) -> Encoded:
        grams: list[str] = []
        for word in text.casefold().split():
            grams.extend(word)
            grams.extend(word[at : at + 2] for at in range(len(word) - 1))
        ids = [zlib.crc32(gram.encode("utf-8", "surrogatepass")) + 2 for gram in grams]
        starts = range(0, max(1, len(ids)), _WINDOW - 2)
        if lane is Lane.RECALL:
            starts = starts[:_RECALL_WINDOWS]
        return Encoded(tuple((_FIRST, *ids[start : start + _WINDOW - 2], _LAST) for start in starts))
