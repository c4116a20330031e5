"""The models a box can use, as `models/manifest.toml` lists them."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from edge.errors import ModelError, NotFound

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_T = TypeVar("_T")
# An id is a folder's name in the models directory, and a file's name is a file there: nothing may climb out of it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model. `sha256` and `bytes` are both there, or neither: then they are recorded at the first pull.

    `hub` is its path in the Hugging Face repository, `member` its name inside the Maven jar; either may be empty.
    """

    name: str
    sha256: str
    bytes: int
    hub: str
    member: str

    @property
    def names(self) -> tuple[str, ...]:
        """What this file may be called in a folder or archive somebody brings along."""
        ordered = (self.name, self.member, self.hub, self.hub.rpartition("/")[2])
        return tuple(dict.fromkeys(name for name in ordered if name))


@dataclass(frozen=True, slots=True)
class Model:
    """A model and everything that its vectors depend on.

    `language` ("zh", "en" or "any") is whose texts it is for. `unrelated` is about the cosine of a query with a text
    that has nothing to do with it, `behind` that with what stands behind its best, among many; from `related` on a
    text answers it, if what is behind is as usual (edge/recall/relevance.py).
    `lowercase` and `strip_accents` are applied before the tokenizer, whatever its own file says. `instruction` goes
    before queries only. `batch_invariant` is False where a row depends on its batch mates, so that rows run alone.
    """

    id: str
    kind: str
    default: bool
    description: str
    dimension: int
    pooling: str
    normalise: bool
    instruction: str
    lowercase: bool
    strip_accents: bool
    max_tokens: int
    precision: str
    batch_invariant: bool
    licence: str
    hub: str
    maven: str
    files: tuple[ModelFile, ...]
    language: str
    unrelated: float
    related: float
    behind: float

    @property
    def source(self) -> str:
        """Where its files come from, for people."""
        if self.kind == "remote":
            return "an OpenAI-compatible endpoint"
        places = ((f"Hugging Face {self.hub}", self.hub), (f"Maven {self.maven}", self.maven))
        return ", ".join(text for text, place in places if place)


@dataclass(frozen=True, slots=True)
class Manifest:
    models: tuple[Model, ...]

    @property
    def default(self) -> Model:
        return next(model for model in self.models if model.default)

    def get(self, model_id: str) -> Model:
        """The model of that id. Raises NotFound, naming those there are."""
        for model in self.models:
            if model.id == model_id:
                return model
        known = ", ".join(model.id for model in self.models)
        raise NotFound(f"model: {model_id[:128]!r} is not in the manifest; it lists {known}", field="model")


def locate() -> Path:
    """The folder that holds manifest.toml and reference.json: beside the package in a checkout, else installed.

    Raises ModelError when neither has it.
    """
    places = (
        Path(__file__).resolve().parents[2] / "models",
        Path(sys.prefix) / "share" / "edge-memory" / "models",
    )
    for place in places:
        if (place / "manifest.toml").is_file():
            return place
    raise ModelError(
        f"models/manifest.toml is neither in {places[0]} nor in {places[1]}; install edge-memory again", field="model"
    )


@functools.cache
def load() -> Manifest:
    """The manifest that belongs to this installation, read once."""
    return parse(locate() / "manifest.toml")


def parse(path: Path) -> Manifest:
    """The manifest in a file. Raises ModelError that names the file, the model and the field at fault."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(
            f"{path} cannot be read as TOML ({error}); restore it from the release", field="model"
        ) from None
    models = tuple(_model(entry, path) for entry in _tables(raw, "model", str(path)))
    ids = [model.id for model in models]
    if len(set(ids)) != len(ids):
        raise ModelError(f"{path}: an id occurs twice; give each model its own", field="model")
    if sum(model.default for model in models) != 1:
        raise ModelError(f"{path}: exactly one model must have default = true", field="model")
    return Manifest(models)


def _model(raw: Mapping[str, Any], path: Path) -> Model:
    where = f"{path}: model {raw.get('id', '?')}"
    kind = _field(raw, "kind", str, where)
    if kind not in ("onnx", "remote"):
        raise ModelError(f"{where}: kind must be onnx or remote, not {kind!r}", field="kind")
    model = Model(
        id=_named(_field(raw, "id", str, where), where),
        kind=kind,
        default=_field(raw, "default", bool, where, False),
        description=_field(raw, "description", str, where, ""),
        dimension=_positive(raw, "dimension", where),
        pooling=_field(raw, "pooling", str, where),
        normalise=_field(raw, "normalise", bool, where),
        instruction=_field(raw, "instruction", str, where, ""),
        lowercase=_field(raw, "lowercase", bool, where, False),
        strip_accents=_field(raw, "strip_accents", bool, where, False),
        max_tokens=_positive(raw, "max_tokens", where),
        precision=_field(raw, "precision", str, where),
        batch_invariant=_field(raw, "batch_invariant", bool, where),
        licence=_field(raw, "licence", str, where),
        hub=_field(raw, "hub", str, where, ""),
        maven=_field(raw, "maven", str, where, ""),
        files=tuple(_file(entry, where) for entry in _tables(raw, "file", where)) if kind == "onnx" else (),
        language=_field(raw, "language", str, where, "any"),
        unrelated=_field(raw, "unrelated", float, where, 0.25),
        related=_field(raw, "related", float, where, 0.64),
        behind=_field(raw, "behind", float, where, 0.35),
    )
    if model.language not in ("zh", "en", "any"):
        raise ModelError(f"{where}: language must be zh, en or any, not {model.language!r}", field="language")
    # NaN compares false.
    if not -1 <= model.unrelated < model.related <= 1:
        raise ModelError(f"{where}: unrelated must be below related, and both within -1 and 1", field="related")
    if not -1 <= model.behind <= 1:
        raise ModelError(f"{where}: behind must be within -1 and 1", field="behind")
    if model.pooling not in ("cls", "mean"):
        raise ModelError(f"{where}: pooling must be cls or mean, not {model.pooling!r}", field="pooling")
    if kind == "onnx" and {file.name for file in model.files} != {"model.onnx", "tokenizer.json"}:
        raise ModelError(f"{where}: its files must be model.onnx and tokenizer.json", field="file")
    return model


def _file(raw: Mapping[str, Any], where: str) -> ModelFile:
    name = _named(_field(raw, "name", str, where), where)
    sha256 = _field(raw, "sha256", str, where, "")
    size = _field(raw, "bytes", int, where, 0)
    if (bool(sha256), size > 0) not in ((True, True), (False, False)) or (sha256 and not _DIGEST.fullmatch(sha256)):
        raise ModelError(
            f"{where}: {name} needs sha256 (64 lower-case hexadecimal digits) and bytes, or neither", field="sha256"
        )
    return ModelFile(name, sha256, size, _field(raw, "hub", str, where, ""), _field(raw, "member", str, where, ""))


def _tables(raw: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    tables = raw.get(key)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ModelError(f"{where}: needs at least one [[{key}]] table", field=key)
    return tables


def _field(raw: Mapping[str, Any], key: str, kind: type[_T], where: str, default: _T | None = None) -> _T:
    value = raw.get(key, default)
    # bool is an int to Python, not to the reader of a manifest.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ModelError(f"{where}: {key} must be a {kind.__name__}", field=key)
    return value


def _positive(raw: Mapping[str, Any], key: str, where: str) -> int:
    value = _field(raw, key, int, where)
    if value <= 0:
        raise ModelError(f"{where}: {key} must be above 0", field=key)
    return value


def _named(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModelError(f"{where}: {name!r} cannot name a file; use letters, digits, dot, _ and -", field="name")
    return name
