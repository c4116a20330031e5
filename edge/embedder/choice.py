"""The variant of a model that its owner took, and the prepared graph it runs.

Beside the model: `variants/<name>.onnx`, `variants/<name>.json` with its digest and the vectors it made here of the
reference sentences, and `variants/taken` with the name. A variant has an id of its own, `<model>+<name>`, because its
vectors are others: so nothing but the owner's word ever changes it, or memories would be embedded anew by surprise.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from edge.embedder import reference
from edge.embedder.manifest import Model
from edge.embedder.reference import Reference, Sentence
from edge.errors import ModelError
from edge.ports import Embedder

STOCK = "stock"
_TAKEN = "taken"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """`model` is the stock one with the variant's id and properties; `graph` was held to its digest."""

    model: Model
    graph: bytes
    reference: Reference


def named(model: Model, variant: str, *, batch_invariant: bool, precision: str) -> Model:
    """The model as that variant runs it."""
    return dataclasses.replace(model, id=f"{model.id}+{variant}", batch_invariant=batch_invariant, precision=precision)


def folder(model: Model, directory: Path) -> Path:
    return directory / model.id / "variants"


def name(model: Model, directory: Path) -> str:
    """The name of what was taken, unchecked; STOCK when nothing was, or it cannot be read."""
    found = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = (folder(model, directory) / _TAKEN).read_text("utf-8").strip()
    return found if _NAME.fullmatch(found) else STOCK


def taken(model: Model, directory: Path) -> Choice | None:
    """What the owner took, read and checked; None for the stock file.

    Raises ModelError, with both ways out, for a variant that is gone or damaged: to go on with the stock file instead
    would have every memory embedded anew.
    """
    place = folder(model, directory)
    try:
        name = (place / _TAKEN).read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise unusable(model, f"{place / _TAKEN} cannot be read ({error})") from None
    if not _NAME.fullmatch(name):
        raise unusable(model, f"{place / _TAKEN} names no variant")
    try:
        graph = (place / f"{name}.onnx").read_bytes()
        record = json.loads((place / f"{name}.json").read_text("utf-8"))
        chosen = named(model, name, batch_invariant=bool(record["batch_invariant"]), precision=str(record["precision"]))
        sentences = tuple(Sentence(entry["language"], entry["text"]) for entry in record["sentences"])
        rows = np.frombuffer(base64.b64decode(record["vectors"], validate=True), np.dtype("<f2"))
        vectors = rows.reshape(2 * len(sentences), model.dimension).astype(np.float32)
        digest = record["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unusable(model, f"its record or its graph cannot be read ({error})", name) from None
    if hashlib.sha256(graph).hexdigest() != digest:
        raise unusable(model, "its graph is damaged or foreign (sha256)", name)
    return Choice(chosen, graph, Reference(sentences, {chosen.id: vectors}))


def take(model: Model, directory: Path, name: str, graph: bytes, embedder: Embedder, precision: str) -> None:
    """Keep a graph and take it from the next start on. `embedder` runs it, and gives queries the model's instruction.

    Raises OSError when that cannot be written.
    """
    texts = [text for _, text in reference.SENTENCES]
    record = {
        "about": "Written by edge model calibrate. Vectors: base64 of float16, little-endian, a row a sentence, all as "
        "documents and then all as queries.",
        "sha256": hashlib.sha256(graph).hexdigest(),
        "bytes": len(graph),
        "batch_invariant": embedder.info.batch_invariant,
        "precision": precision,
        "sentences": [{"language": language, "text": text} for language, text in reference.SENTENCES],
        "vectors": base64.b64encode(reference.embed(embedder, texts).astype("<f2").tobytes()).decode("ascii"),
    }
    place = folder(model, directory)
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        replace(place / f"{name}.onnx", graph)
        replace(place / f"{name}.json", (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())
        # Last: until now a start would have found what was taken before.
        replace(place / _TAKEN, f"{name}\n".encode())


def go_back(model: Model, directory: Path) -> None:
    """The stock file again, from the next start on."""
    with contextlib.suppress(FileNotFoundError):
        (folder(model, directory) / _TAKEN).unlink()


def replace(path: Path, content: bytes) -> None:
    """The whole new content or the whole old one, whatever happens meanwhile."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staged.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def unusable(model: Model, fault: str, name: str = "") -> ModelError:
    """The error for a variant that cannot serve."""
    return ModelError(
        f"model {model.id}: the variant {name or 'that was taken'} cannot be used: {fault}; prepare it again with: "
        f"edge model calibrate {model.id}, or go back to the stock file with: edge model calibrate {model.id} "
        f"--take {STOCK}",
        field="model",
    )


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[Any]:
    """Two that prepare the same variant at once write it one after the other."""
    with (place / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
