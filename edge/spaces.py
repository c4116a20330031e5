"""One directory per space; nothing crosses."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uuid6 import uuid7

from edge.admission.chunk import chunk
from edge.backlog import Backlog
from edge.config import Config
from edge.errors import EdgeError, Exhausted, ReadOnly, Unavailable
from edge.ledger.disk import left
from edge.ports import Clock, Lexicon
from edge.space import Space
from edge.types import ModelInfo, Piece, check_space
from edge.views import SpaceFacts

KEY_BYTES = 32
# Bytes of free space below which the owner is told.
_LITTLE = 64 << 20


@dataclass(frozen=True, slots=True)
class Rebuilt:
    memories: int
    vectors: int


class Spaces:
    """The open spaces of a data directory. `read_only` says why nothing may be written, or is empty."""

    def __init__(
        self,
        data: Path,
        config: Config,
        clock: Clock,
        lexicon: Lexicon,
        backlog: Backlog,
        info: ModelInfo,
        *,
        read_only: str = "",
    ) -> None:
        self.read_only = read_only
        self._root = data / "spaces"
        self._key = _key(data / "identity", bool(read_only))
        self._make: Callable[[str, Path], Space] = lambda name, directory: Space(
            name, directory, config.storage, clock, lexicon, backlog, info, self._key, pieces, bool(read_only)
        )
        self._limit = config.limits.spaces
        self._open: dict[str, Space] = {}
        self._lock = threading.RLock()
        self._closed = False

    def open_all(self) -> None:
        """Opens what the directory holds, finishing what a crash interrupted."""
        for name in ("public", "work"):
            if (self._root / name / "log").is_dir():
                self.open(name)
        for directory in sorted((self._root / "private").glob("*/log")):
            self.open(f"private/{directory.parent.name}")
        if not self.read_only:
            self.open("public")

    def names(self) -> list[str]:
        return list(self._open)

    def all(self) -> list[Space]:
        return list(self._open.values())

    def get(self, name: str) -> Space | None:
        return self._open.get(name)

    def open(self, name: str) -> Space:
        """The space, made if there is none yet. Raises InvalidArgument, ReadOnly, Exhausted."""
        space = self._open.get(name)
        if space is not None:
            return space
        with self._lock:
            if self._closed:
                raise Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0)
            space = self._open.get(name)
            if space is None:
                directory = self._root.joinpath(*check_space(name).split("/"))
                if self.read_only and not directory.is_dir():
                    raise ReadOnly(f"{self.read_only}; free or remount it, then restart the box")
                if len(self._open) >= self._limit and not directory.is_dir():
                    raise Exhausted(
                        f"space: the box has {len(self._open)} spaces already; use one of them, or raise "
                        "limits.spaces in its config.toml",
                        field="space",
                        reason="TOO_MANY_SPACES",
                    )
                space = self._make(name, directory)
                self._open[name] = space
            return space

    def rebuild(self, name: str, from_log: bool) -> Rebuilt:
        """Makes the index anew from the stored vectors, or every view from the log; vectors then follow by themselves.

        A call on the space that comes while its views are made anew is told to come again.
        """
        with self._lock:
            space = self.open(name)
            if not from_log:
                return Rebuilt(space.queries.counts().memories, space.index.rebuild().result())
            if self.read_only:
                raise ReadOnly(f"{self.read_only}; views can only be made anew on a writable disk")
            space.close()
            space.discard_views()
            self._open[name] = self._make(name, space.directory)
            return Rebuilt(self._open[name].queries.counts().memories, 0)

    def flush_accesses(self) -> None:
        for space in self.all():
            space.flush_accesses()

    def checkpoint_accesses(self) -> None:
        for space in self.all():
            space.checkpoint_accesses()

    def finish_forgets(self) -> None:
        for space in self.all():
            space.finish_forgets()

    def facts(self) -> list[SpaceFacts]:
        return [space.facts() for space in self.all()]

    def warnings(self) -> list[str]:
        found = [f"nothing is written: {self.read_only}"] if self.read_only else []
        free = left(self._root)
        if free < _LITTLE and not self.read_only:
            found.append(f"{free >> 20} MiB left at {self._root}; free some space before writes are refused")
        for space in self.all():
            found += [f"space {space.name}: {warning}" for warning in space.warnings()]
        return found

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for space in self.all():
                space.close()


def pieces(text: str) -> tuple[Piece, ...]:
    """The memories that a text becomes, each with its id."""
    return tuple(Piece(str(uuid7()), start, end) for start, end in chunk(text))


def _key(identity: Path, read_only: bool) -> bytes:
    """The box's secret for marks of forgotten turns, made at the first start; lives as long as its log."""
    path = identity / "erase.key"
    try:
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
        if key:
            raise EdgeError(
                f"{path} is damaged; bring it back from a backup of the data directory", reason="KEY_DAMAGED"
            )
    except FileNotFoundError:
        pass
    key = secrets.token_bytes(KEY_BYTES)
    if not read_only:
        identity.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = path.with_suffix(".tmp")
        staged.unlink(missing_ok=True)
        file = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, key)
            os.fsync(file)
        finally:
            os.close(file)
        staged.replace(path)
    return key
