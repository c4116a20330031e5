"""Read once at the door, frozen ever after."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

import platformdirs

from edge.errors import InvalidArgument

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_PORT = 7430
DEFAULT_MODEL = "bge-small-zh-v1.5-q"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may bring; bytes of UTF-8, counts, seconds."""

    text_bytes: int = 1024 * 1024
    query_bytes: int = 32 * 1024
    name_bytes: int = 256
    tags: int = 64
    tag_bytes: int = 128
    attributes_bytes: int = 64 * 1024
    message_bytes: int = 4 * 1024 * 1024
    turns_per_message: int = 256
    top_k: int = 200
    context_tokens: int = 8192
    streams: int = 1024
    recalls_in_flight: int = 256
    page_size: int = 1000
    # Of task state: bytes of one value, and keys of one space.
    state_bytes: int = 256 * 1024
    states: int = 10_000
    # A space costs four threads and some 5 MB while the box runs; those that are on the disk are opened all the same.
    spaces: int = 256
    # Values of one field of a filter, and ids to wait for.
    filter_values: int = 1000
    # Turns of one ingest stream that are stored but not yet searchable, before the box stops reading from it.
    stream_window: int = 1024
    # Bytes of turns that wait for the log or the database, over all streams.
    inflight_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Embedding:
    model: str = DEFAULT_MODEL
    # A model that runs beside it, for the texts of its language; empty: none.
    second: str = ""
    # Whether queries get the instruction that the model was trained with. It makes a question of 20 characters twice as
    # long, and finds no more (docs/recall.md).
    instruction: bool = False
    # "auto", "cpu", "cuda", "tensorrt" or "coreml"; anything but the CPU only after its vectors agree with the CPU's.
    device: str = "auto"
    # Ingest inference threads; 0: one a core.
    workers: int = 0
    # Padded tokens of one ingest batch: the slice that a recall may have to wait for.
    batch_tokens: int = 512
    # Seconds of estimated work that each lane may hold before it answers RESOURCE_EXHAUSTED.
    recall_drain: float = 5.0
    ingest_drain: float = 10.0
    # Whether the first start on a device measures which threads and batches are best there; some seconds.
    calibrate: bool = True
    # Seconds without work after which the model's buffers are given back to the system.
    idle_release: float = 60.0
    # Seconds after which a run of the model is said to hang. Recalls go by words sooner, when it stands still.
    hang_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Governing:
    """How the box minds the device's heat and memory. Degrees Celsius, bytes, seconds."""

    # Off: the configured budget, whatever the device says.
    enabled: bool = True
    # Seconds that an ingest batch should take at most: the slice that a recall may have to wait for.
    slice_seconds: float = 0.04
    # Where the device throttles itself, for one that does not say so.
    trip: float = 85.0
    # Kept away from the trip by this much.
    margin: float = 4.0
    # Memory that is left for everybody else.
    memory_reserve: int = 48 * 1024 * 1024
    # Seconds between looks at the sensors while there is work; never below 1 s when there is none.
    interval: float = 1.0
    # Seconds that a text may wait for memory before it is left to its words.
    patience: float = 60.0


@dataclass(frozen=True, slots=True)
class Recalling:
    triggers: tuple[str, ...] = (
        "认真回忆", "深度检索", "回忆一下", "还记得吗", "查一下", "remember when", "do you recall", "look it up",
    )  # fmt: skip
    # "zh" or "en": the wording of the context block.
    language: str = "zh"
    # How much each line of evidence counts: "tuned", "balanced", "timeless" or "product" (docs/recall.md).
    preset: str = "tuned"
    # From this relevance on a memory bears on a question; higher is stricter.
    floor: float = 1.0
    # Days after which a memory is half as recent.
    half_life: float = 30.0
    # Seconds that each stage of a deep recall may take before it is cut short.
    stage_seconds: float = 0.05


@dataclass(frozen=True, slots=True)
class Storage:
    segment_bytes: int = 16 * 1024 * 1024
    # Seconds between snapshots of a changed index.
    snapshot_interval: float = 300.0
    # Seconds after which a space that nobody uses is closed; it opens by itself when it is asked for.
    space_idle: float = 600.0


@dataclass(frozen=True, slots=True)
class Forgetting:
    # Seconds for which what was forgotten is only hidden from everything, and `edge undo` brings it back; 0: it is
    # erased at once.
    grace_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Admission:
    """What may be remembered. The placeholders of what is hidden are in `recall.language`."""

    # Whether passwords, keys, cards and identity numbers are hidden before anything is kept.
    redact: bool = True
    # Hidden too: "phone", "address".
    optional: tuple[str, ...] = ()
    # The owner's own: a name, which stands in the text's place, and a regular expression.
    patterns: Mapping[str, str] = field(default_factory=dict)
    # Rules of noise that are off: what they are about is kept as anything else.
    keep: tuple[str, ...] = ()
    # Whether "remember that …" confirms, and a statement about the speaker that lasts becomes a candidate.
    tiers: bool = True
    # Whether what is kept is merged with what says the same, put in the place of what it contradicts, and promoted when
    # it was said or recalled often enough.
    merge: bool = True


@dataclass(frozen=True, slots=True)
class Decaying:
    """How memories fade that nobody asks for (docs/fading.md)."""

    # Off: nothing is archived or moved by itself; strength is told all the same.
    enabled: bool = True
    # Days in which an ordinary memory of weight 1 loses half its strength; by kind where it is another.
    half_life_days: float = 30.0
    kinds: Mapping[str, float] = field(default_factory=dict)
    # Weaker than this, a memory goes to the archive.
    archive_below: float = 0.05
    # What was never recalled, and not said for so many days, leaves the archive too: for the cold "file", to be
    # deleted ("delete"), or not at all ("keep").
    cold_after_days: float = 180.0
    cold: str = "file"


@dataclass(frozen=True, slots=True)
class Network:
    # What the box is called on the LAN; empty: edge-memory and the first digits of its id, which name no person.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    limits: Limits = field(default_factory=Limits)
    embedding: Embedding = field(default_factory=Embedding)
    governor: Governing = field(default_factory=Governing)
    recall: Recalling = field(default_factory=Recalling)
    storage: Storage = field(default_factory=Storage)
    forgetting: Forgetting = field(default_factory=Forgetting)
    admission: Admission = field(default_factory=Admission)
    decay: Decaying = field(default_factory=Decaying)
    lan: Network = field(default_factory=Network)


_CHOICES = {
    "recall.language": ("zh", "en"),
    "recall.preset": ("tuned", "balanced", "timeless", "product"),
    "embedding.device": ("auto", "cpu", "cuda", "tensorrt", "coreml"),
    "decay.cold": ("file", "delete", "keep"),
}
_MAY_BE_ZERO = {"embedding.workers"}
# Elsewhere the least is 1.
_LEAST = {
    "governor.slice_seconds": 0.005,
    # Below this a trip is one by mistake, and nothing would ever be embedded.
    "governor.trip": 40,
    "governor.margin": 0,
    "governor.memory_reserve": 0,
    "governor.interval": 0.2,
    "governor.patience": 0.1,
    "embedding.hang_seconds": 0.1,
    "embedding.idle_release": 0.1,
    "limits.message_bytes": 4096,
    "forgetting.grace_seconds": 0,
    "decay.half_life_days": 14,
    "decay.kinds": 14,
    "decay.archive_below": 0.001,
    "recall.floor": 0,
    "recall.stage_seconds": 0.001,
    "storage.segment_bytes": 4096,
}
# gRPC and the index have bounds of their own behind these.
_MOST = {
    "embedding.workers": 256,
    "governor.slice_seconds": 10,
    "governor.trip": 150,
    "governor.margin": 50,
    # The beat at which hung runs are noticed, too.
    "governor.interval": 60,
    "decay.half_life_days": 60,
    "decay.kinds": 60,
    "decay.archive_below": 0.9,
    "decay.cold_after_days": 36_500,
    "embedding.batch_tokens": 1 << 20,
    "limits.top_k": 10_000,
    "limits.message_bytes": 1024 * 1024 * 1024,
}


def data_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """EDGE_DATA, else systemd's state directory, else the user's data directory."""
    if environ.get("EDGE_DATA"):
        return Path(environ["EDGE_DATA"])
    if environ.get("STATE_DIRECTORY"):
        return Path(environ["STATE_DIRECTORY"].split(":")[0])
    return Path(platformdirs.user_data_dir("edge-memory", appauthor=False))


def models_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """EDGE_MODELS, else `models` in systemd's state directory, else the user's cache directory."""
    if environ.get("EDGE_MODELS"):
        return Path(environ["EDGE_MODELS"])
    if environ.get("STATE_DIRECTORY"):
        return Path(environ["STATE_DIRECTORY"].split(":")[0]) / "models"
    return Path(platformdirs.user_cache_dir("edge-memory", appauthor=False)) / "models"


def load(path: Path | None) -> Config:
    """The configuration of a TOML file; the defaults where it, or a key of it, is absent.

    Raises InvalidArgument that names the key for an unknown key, a wrong type, or a value out of its range.
    """
    if path is None or not path.exists():
        return Config()
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not valid TOML ({error}); mend it or move it away", field="config") from None
    config: Config = _build(Config, raw, "")
    return config


def _build(kind: type[Any], raw: Mapping[str, Any], prefix: str) -> Any:
    hints = get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if key not in known:
            raise InvalidArgument(f"config: unknown key {name}; known here: {', '.join(sorted(known))}", field=name)
        values[key] = _value(hints[key], value, name)
    return kind(**values)


def _value(hint: Any, value: Any, name: str, bounds: str = "") -> Any:
    """`bounds` names the key whose range holds, where it is not `name`."""
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise InvalidArgument(f"config: {name} must be a table", field=name)
        return _build(hint, value, f"{name}.")  # type: ignore[arg-type]  # is_dataclass does not narrow to a type
    if hint in (int, float):
        accepted = (int,) if hint is int else (int, float)
        bounds = bounds or name
        least = 0 if bounds in _MAY_BE_ZERO else _LEAST.get(bounds, 1)
        most = _MOST.get(bounds, sys.maxsize)
        # NaN compares false.
        if isinstance(value, bool) or not isinstance(value, accepted) or not least <= value <= most:
            kind = "whole number" if hint is int else "number"
            bound = f" to {most}" if bounds in _MOST else " or more"
            raise InvalidArgument(f"config: {name} must be a {kind}, {least}{bound}", field=name)
        return hint(value)
    if hint is bool:
        if not isinstance(value, bool):
            raise InvalidArgument(f"config: {name} must be true or false", field=name)
        return value
    if hint is str:
        if not isinstance(value, str):
            raise InvalidArgument(f"config: {name} must be a string", field=name)
        choices = _CHOICES.get(name, (value,))
        if value not in choices:
            raise InvalidArgument(f"config: {name} must be one of {', '.join(choices)}", field=name)
        return value
    if get_origin(hint) is Mapping:
        inner = get_args(hint)[1]
        if not isinstance(value, dict):
            of = "strings" if inner is str else "numbers"
            raise InvalidArgument(f"config: {name} must be a table of {of}", field=name)
        return MappingProxyType({key: _value(inner, item, f"{name}.{key}", name) for key, item in value.items()})
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise InvalidArgument(f"config: {name} must be a list of strings", field=name)
    return tuple(value)
