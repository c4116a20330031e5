"""`python -m edge.embedder.write_reference [MODEL…]` writes models/reference.json.

For the models that are installed here (or those named), from digest-checked files. It is run when a model is added or
what a vector depends on changes, on a machine whose vectors are trusted.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from edge import config
from edge.embedder import manifest, onnx, store
from edge.embedder.reference import FILE, SENTENCES, embed
from edge.ports import Embedder


def write(folder: Path, embedders: Mapping[str, Embedder], kept: Mapping[str, str]) -> None:
    """Store the vectors of these models, as base64 of little-endian float16, beside those `kept`."""
    texts = [text for _, text in SENTENCES]
    vectors = dict(kept)
    for name, embedder in embedders.items():
        vectors[name] = base64.b64encode(embed(embedder, texts).astype("<f2").tobytes()).decode("ascii")
    content = {
        "about": "Written by python -m edge.embedder.write_reference. Vectors: base64 of float16, little-endian, a row "
        "a sentence, all as documents and then all as queries.",
        "sentences": [{"language": language, "text": text} for language, text in SENTENCES],
        "vectors": dict(sorted(vectors.items())),
    }
    (folder / FILE).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main(names: list[str]) -> int:
    folder, directory = manifest.locate(), config.models_directory()
    models = [model for model in manifest.load().models if not names or model.id in names]
    embedders: dict[str, Embedder] = {}
    for model in models:
        if store.installed(model, directory):
            embedders[model.id] = onnx.load_unchecked(model, directory, config.Embedding(device="cpu"))
            print(f"{model.id}: written", file=sys.stderr)
        else:
            print(f"{model.id}: not installed in {directory}, left as it was", file=sys.stderr)
    # Old vectors belong to old sentences: they stay only when those are the same.
    path = folder / FILE
    old = json.loads(path.read_text("utf-8")) if path.exists() else {"sentences": [], "vectors": {}}
    same = [(entry["language"], entry["text"]) for entry in old["sentences"]] == list(SENTENCES)
    write(folder, embedders, old["vectors"] if same else {})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
