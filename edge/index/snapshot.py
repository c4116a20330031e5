"""Graphs on disk that are believed only after their checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edge.index.hnsw import EF_CONSTRUCTION, HnswGraph, M
from edge.index.image import GraphImage

# hnswlib writes size_t and floats as the machine has them.
_FORMAT = f"edge-hnsw-1, hnswlib 0.8.0, {sys.byteorder}-endian, {sys.maxsize.bit_length() + 1} bit"
_PARAMETERS = {"space": "ip", "M": M, "ef_construction": EF_CONSTRUCTION}
_BLOCK = 4 * 1024 * 1024


class UnusableError(Exception):
    """The snapshot cannot be used; the message says why."""


class AbortedError(Exception):
    """The snapshot is not wanted any more."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of one model in one directory.

    A snapshot is `<model>-<counter>.hnsw` and a manifest `<model>.json`, which is written last and replaced in one
    step: whatever moment the power goes, the manifest names a whole file or there is none. `identity` names the
    database that the rowids belong to; a snapshot of another one is not believed. `neighbours` are models whose own
    indexes are open on the same directory: their files are left to them.
    """

    directory: Path
    model: str
    dimension: int
    identity: str = ""
    read_only: bool = False
    neighbours: tuple[str, ...] = ()

    @property
    def _name(self) -> str:
        return _name(self.model)

    @property
    def _manifest(self) -> Path:
        return self.directory / f"{self._name}.json"

    def load(self) -> HnswGraph | None:
        """The newest snapshot, None when there is none. Raises UnusableError for one that must not be used."""
        try:
            raw = self._manifest.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnusableError(f"its manifest cannot be read ({error.strerror})") from None
        manifest = self._checked(raw)
        path = self.directory / manifest["file"]
        try:
            size = path.stat().st_size
            if size != manifest["bytes"]:
                raise UnusableError(f"{path.name} has {size} bytes instead of {manifest['bytes']}")
            if _sha256(path) != manifest["sha256"]:
                raise UnusableError(f"{path.name} does not match its checksum")
            graph = HnswGraph.load(path, self.dimension, manifest["tombstones"], manifest["count"])
            _let_go(path)
            return graph
        except OSError as error:
            raise UnusableError(f"{path.name} cannot be read ({error.strerror})") from None
        except (RuntimeError, MemoryError) as error:
            raise UnusableError(f"{path.name} cannot be loaded ({error})") from None

    def _checked(self, raw: bytes) -> dict[str, Any]:
        try:
            outer = json.loads(raw)
            manifest = outer["snapshot"]
            if outer["checksum"] != _checksum(manifest):
                raise UnusableError("its manifest does not match its own checksum")
            expected = {
                "format": _FORMAT,
                "model": self.model,
                "dimension": self.dimension,
                "identity": self.identity,
                "parameters": _PARAMETERS,
            }
            for key, value in expected.items():
                if manifest[key] != value:
                    raise UnusableError(f"its {key} is {manifest[key]!r}, not {value!r}")
            if Path(manifest["file"]).name != manifest["file"]:
                raise UnusableError("its manifest names a file elsewhere")
        except (ValueError, KeyError, TypeError):
            raise UnusableError("its manifest is damaged") from None
        return dict(manifest)

    def write(self, image: GraphImage, aborted: Callable[[], bool]) -> None:
        """Makes the image the newest snapshot, durably, then deletes the older ones.

        Raises OSError (a full disk, say), and AbortedError as soon as `aborted()`; then the older one is still there.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = self._files("*.hnsw")
        counter = 1 + max((_counter(path) for path in old), default=0)
        path = self.directory / f"{self._name}-{counter:08d}.hnsw"
        digest = _write(path, image, aborted)
        manifest = {
            "format": _FORMAT,
            "model": self.model,
            "dimension": self.dimension,
            "identity": self.identity,
            "parameters": _PARAMETERS,
            "capacity": image.capacity,
            "count": image.count,
            "tombstones": list(image.deleted),
            "file": path.name,
            "bytes": image.size,
            "sha256": digest,
        }
        try:
            _replace(self._manifest, json.dumps({"checksum": _checksum(manifest), "snapshot": manifest}).encode())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        for stale in old:
            stale.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Deletes what a process that died while writing has left."""
        if not self.read_only:
            for path in self._files("*.hnsw.tmp", "*.json.tmp"):
                path.unlink(missing_ok=True)

    def drop(self, others: bool = True) -> int:
        """Deletes the snapshots, durably, if `others` also of models that run no more; says how many there were."""
        if self.read_only or not self.directory.is_dir():
            return 0
        patterns = ("*.json", "*.tmp", "*.hnsw")
        paths = self._files(*patterns)
        if others:
            kept = {_name(model) for model in self.neighbours}
            found = [path for pattern in patterns for path in self.directory.glob(pattern)]
            paths = [path for path in found if _owner(path) not in kept]
        for path in paths:
            path.unlink(missing_ok=True)
        dropped = sum(path.suffix == ".hnsw" for path in paths)
        _sync_directory(self.directory)
        return dropped

    def _files(self, *patterns: str) -> list[Path]:
        """Those of this model: a box that changes its model has two that share the directory."""
        found = [path for pattern in patterns for path in self.directory.glob(pattern)]
        return [path for path in found if _owner(path) == self._name]


def _name(model: str) -> str:
    return quote(model, safe="")


def _owner(path: Path) -> str:
    """The name of the model whose manifest or graph, finished or not, has this path."""
    name = path.name.removesuffix(".tmp")
    return name.removesuffix(".json") if name.endswith(".json") else name.rpartition("-")[0]


def _counter(path: Path) -> int:
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _checksum(manifest: Any) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    # hashlib lets go of the GIL for blocks of this size.
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            digest.update(block[:size])
    return digest.hexdigest()


def _write(path: Path, image: GraphImage, aborted: Callable[[], bool]) -> str:
    digest, temporary = hashlib.sha256(), path.with_suffix(".hnsw.tmp")
    try:
        with temporary.open("wb") as file:
            temporary.chmod(0o600)
            for block in image.blocks():
                if aborted():
                    raise AbortedError
                file.write(block)
                digest.update(block)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _let_go(path)
        _sync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".json.tmp")
    try:
        with temporary.open("wb") as file:
            temporary.chmod(0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _let_go(path: Path) -> None:
    """Its pages leave the kernel's cache, where they count against a memory limit: read at the next start only."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
