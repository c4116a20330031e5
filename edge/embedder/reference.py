"""Four sentences whose vectors are known: a model that makes others is not the model."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge.embedder.manifest import Model
from edge.errors import ModelError
from edge.ports import Embedder
from edge.types import Lane, Matrix

# int8 kernels of different CPUs round differently, within this; another pooling, tokenizer or instruction is far below.
AGREEMENT = 0.999
FILE = "reference.json"
SENTENCES = (
    ("zh", "周三下午我们把PostgreSQL主库迁到了新机房，回滚脚本放在运维仓库里。"),
    ("zh", "我家的猫叫豆包，今年五岁，最喜欢在窗台上晒太阳。"),
    ("en", "The Quarterly Budget review moved to Thursday because Alice is travelling to Berlin."),
    ("en", "My grandmother's apple pie needs six tart apples, cinnamon and a little lemon juice."),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """`vectors` by model: (2 * sentences, dimension), all as documents, then all as queries."""

    sentences: tuple[Sentence, ...]
    vectors: Mapping[str, Matrix]

    def check(self, embedder: Embedder, model: Model) -> None:
        """Raises ModelError unless the embedder makes this model's vectors.

        For a model whose vectors are not stored: unless each sentence, as a query, finds itself before the others.
        """
        actual = embed(embedder, [sentence.text for sentence in self.sentences])
        if not np.isfinite(actual).all():
            raise _refusal(model, "its vectors of the reference sentences are not numbers")
        expected = self.vectors.get(model.id)
        if expected is None:
            documents, queries = np.split(actual, 2)
            if not np.array_equal(np.argmax(queries @ documents.T, axis=1), np.arange(len(documents))):
                raise _refusal(model, "it does not tell the reference sentences apart")
            return
        if expected.shape != actual.shape:
            raise _refusal(model, f"its vectors have {actual.shape[1]} dimensions, not {expected.shape[1]}")
        worst = float(np.min(np.sum(actual * expected, axis=1)))
        if worst < AGREEMENT:
            raise _refusal(model, f"its vectors of the reference sentences are not this model's (cosine {worst:.4f})")


def embed(embedder: Embedder, texts: list[str]) -> Matrix:
    """(2 * texts, dimension), as documents, then as queries."""
    return np.concatenate([embedder.embed(embedder.encode(texts, lane)) for lane in (Lane.INGEST, Lane.RECALL)])


def load(folder: Path) -> Reference:
    """The reference of the folder that `manifest.locate` finds. Raises ModelError when it is missing or damaged."""
    path = folder / FILE
    try:
        raw = json.loads(path.read_text("utf-8"))
        sentences = tuple(Sentence(entry["language"], entry["text"]) for entry in raw["sentences"])
        vectors = {
            model: np.frombuffer(base64.b64decode(data, validate=True), np.dtype("<f2"))
            .reshape(2 * len(sentences), -1)
            .astype(np.float32)
            for model, data in raw["vectors"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path} cannot be used ({error}); install edge-memory again, or write it anew with: "
            "python -m edge.embedder.write_reference",
            field="model",
        ) from error
    if not sentences:
        raise ModelError(
            f"{path} has no sentences; write it anew with: python -m edge.embedder.write_reference", field="model"
        )
    return Reference(
        sentences, {name: rows / np.linalg.norm(rows, axis=1, keepdims=True) for name, rows in vectors.items()}
    )


def _refusal(model: Model, fault: str) -> ModelError:
    return ModelError(
        f"model {model.id} failed its self-check: {fault}; its files or its entry in the manifest are foreign or "
        f"damaged: move its folder away and get a good copy with: edge model pull {model.id}",
        field="model",
    )
