"""One directory per space; nothing crosses."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path

from uuid6 import uuid7

from edge.admission import gate
from edge.admission.chunk import chunk
from edge.backlog import Backlog
from edge.config import Config
from edge.errors import EdgeError, Exhausted, InvalidArgument, NotFound, ReadOnly, Unavailable
from edge.ledger.disk import left
from edge.ledger.erase import Unfinished as Unfinished  # what forgetting in a space may raise
from edge.ports import Clock, Lexicon
from edge.space import Space
from edge.types import Micros, ModelInfo, Piece, check_space
from edge.views import SpaceFacts

logger = logging.getLogger(__name__)

KEY_BYTES = 32
# Bytes of free space below which the owner is told.
_LITTLE = 64 << 20
# A directory that is being erased carries this name; no space can.
_GOING = ".going-"
_FIRST_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})-\d+\.jsonl")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    memories: int
    vectors: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A space for a list: `created_at` is the day of its first log segment, `bytes` what it takes on the disk."""

    name: str
    created_at: Micros | None
    memories: int
    bytes: int


class Spaces:
    """The spaces of a data directory, those that are in use open. `read_only` says why nothing may be written."""

    def __init__(
        self,
        data: Path,
        config: Config,
        clock: Clock,
        lexicon: Lexicon,
        backlog: Backlog,
        models: Sequence[ModelInfo],
        *,
        read_only: str = "",
    ) -> None:
        self.read_only = read_only
        self._root = data / "spaces"
        self._key = _key(data / "identity", bool(read_only))
        self.redactor = redactor = gate.redactor(config)
        keep = gate.kept(config.admission.keep)

        def new_gate() -> gate.Gate:
            # Of each space its own: whether a session is in the middle of a key is not to be seen from another.
            return gate.Gate(redactor, keep, tiers=config.admission.tiers)

        self._make: Callable[[str, Path], Space] = lambda name, directory: Space(
            name,
            directory,
            config.storage,
            clock,
            lexicon,
            backlog,
            models,
            self._key,
            new_gate(),
            pieces,
            bool(read_only),
            self._tell_news,
        )
        self._limit = config.limits.spaces
        self._idle = config.storage.space_idle
        self._grace = config.forgetting.grace_seconds
        self._now = clock.now
        self._monotonic = clock.monotonic
        self._open: dict[str, Space] = {}
        self._used: dict[str, float] = {}
        # Those on the disk, with what they were when they were closed for idleness.
        self._known: dict[str, SpaceFacts | None] = {}
        self._erasers: list[Callable[[str], None]] = []
        self._listeners: list[Callable[[str], None]] = []
        self._lock = threading.RLock()
        self._closed = False

    def open_all(self) -> None:
        """Opens what the directory holds, finishing what a crash interrupted; the idle are closed again later."""
        if not self.read_only:
            for directory in (*self._root.glob(f"{_GOING}*"), *self._root.glob(f"private/{_GOING}*")):
                try:
                    _erase(directory)
                except OSError as error:  # noqa: PERF203  # what one leaves must not keep the others, or the box, waiting
                    logger.warning("%s could not be erased (%s); remove it", directory, error.strerror or error)
        # Known first: however many there are, the limit is for new ones.
        self._known.update(dict.fromkeys(self._on_disk()))
        if not self.read_only:
            self._known.setdefault("public", None)
        for name in self.names():
            self.open(name)

    def _on_disk(self) -> list[str]:
        found = [name for name in ("public", "work") if (self._root / name / "log").is_dir()]
        for log in sorted((self._root / "private").glob("*/log")):
            try:
                found.append(check_space(f"private/{log.parent.name}"))
            except InvalidArgument:  # noqa: PERF203  # a copy that its owner made by hand must not keep the box from starting
                if not log.parent.name.startswith(_GOING):
                    logger.warning("%s has no space's name and is left alone; rename it, or move it away", log.parent)
        return found

    def names(self) -> list[str]:
        """Of all there are, open or not."""
        return list(self._known)

    def all(self) -> list[Space]:
        """Those that are open."""
        return list(self._open.values())

    def get(self, name: str) -> Space | None:
        """The space if it is open; takes no time."""
        space = self._open.get(name)
        if space is not None:
            self._used[name] = self._monotonic()
        return space

    def find(self, name: str) -> Space | None:
        """The space if there is one, opened if need be."""
        space = self.get(name)
        if space is None:
            # One that is being deleted is waited for, so that it is not made again.
            with self._lock:
                space = self.open(name) if name in self._known else None
        return space

    def open(self, name: str) -> Space:
        """The space, made if there is none yet. Raises InvalidArgument, ReadOnly, Exhausted."""
        space = self.get(name)
        if space is not None:
            return space
        with self._lock:
            if self._closed:
                raise Unavailable("the box is stopping; try again in a few seconds", retry_after=5.0)
            space = self._open.get(name)
            if space is None:
                directory = self._directory(check_space(name))
                if self.read_only and not directory.is_dir():
                    raise ReadOnly(f"{self.read_only}; free or remount it, then restart the box")
                if len(self._known) >= self._limit and name not in self._known:
                    raise Exhausted(
                        f"space: the box has {len(self._known)} spaces already; use one of them, or raise "
                        "limits.spaces in its config.toml",
                        field="space",
                        reason="TOO_MANY_SPACES",
                    )
                space = self._make(name, directory)
                self._known[name] = None
                self._open[name] = space
                self._tell_news(name)
            self._used[name] = self._monotonic()
            return space

    def close_idle(self) -> None:
        """Closes what nobody has used for a while: a closed space costs nothing, and opens when it is asked for."""
        for space in self.all():
            with self._lock:
                unused = self._monotonic() - self._used[space.name]
                if self._closed or self._open.get(space.name) is not space or unused < self._idle:
                    continue
                facts = space.facts()
                # What is hidden is to be erased when its time is over.
                if facts.pending or facts.rebuilding or space.revisions.due(self._now()):
                    continue
                self._known[space.name] = facts
                del self._open[space.name]
                space.close()

    def listed(self) -> list[Listed]:
        """Every space, by name."""
        found = []
        for facts in sorted(self.facts(), key=lambda one: one.name):
            directory = self._directory(facts.name)
            days = [
                date.fromisoformat(day[1])
                for path in directory.glob("log/*")
                if (day := _FIRST_DATE.fullmatch(path.name))
            ]
            created_at = _micros(min(days)) if days else None
            found.append(Listed(facts.name, created_at, facts.memories, _size(directory)))
        return found

    def delete(self, name: str) -> None:
        """Erases a space with all that is in it; after a crash in between, the next start goes on.

        Raises NotFound, ReadOnly.
        """
        check_space(name, "name")
        if name not in self._known:
            raise NotFound("name: there is no such space; `edge space list` names them", field="name")
        if self.read_only:
            raise ReadOnly(f"{self.read_only}; free or remount it, then restart the box")
        # What is elsewhere goes first, so that after a crash in between the space is still there to be deleted; and
        # once more when it is gone, for what came meanwhile.
        self._erase_elsewhere(name)
        with self._lock:
            if name not in self._known:
                raise NotFound("name: there is no such space; `edge space list` names them", field="name")
            space = self._open.pop(name, None)
            if space is not None:
                space.close()
            directory = self._directory(name)
            going = directory.with_name(f"{_GOING}{uuid7()}")
            directory.rename(going)
            del self._known[name]
        self._erase_elsewhere(name)
        _erase(going)
        logger.info("a space was deleted")

    def on_delete(self, erase: Callable[[str], None]) -> None:
        """`erase` is called with the name of a space that is being deleted: for what is not in its directory."""
        self._erasers.append(erase)

    def _erase_elsewhere(self, name: str) -> None:
        for erase in self._erasers:
            erase(name)

    def on_news(self, tell: Callable[[str], None]) -> None:
        """`tell` is called with the name of a space that can be written and was opened, or whose memories got vectors,
        were revised or recalled; from any thread, so it is brief."""
        self._listeners.append(tell)

    def _tell_news(self, name: str) -> None:
        for tell in () if self.read_only else self._listeners:
            tell(name)

    def rebuild(self, name: str, from_log: bool) -> Rebuilt:
        """Makes the index anew from the stored vectors, or every view from the log; vectors then follow by themselves.

        A call on the space that comes while its views are made anew is told to come again. Raises NotFound, ReadOnly.
        """
        with self._lock:
            space = self.find(name)
            if space is None:
                raise NotFound("spaces: the box has no such space; `edge status` lists them", field="spaces")
            if not from_log:
                return Rebuilt(space.queries.counts().memories, space.indexes.rebuild())
            if self.read_only:
                raise ReadOnly(f"{self.read_only}; views can only be made anew on a writable disk")
            space.close()
            space.discard_views()
            self._open[name] = self._make(name, space.directory)
            return Rebuilt(self._open[name].queries.counts().memories, 0)

    def _directory(self, name: str) -> Path:
        return self._root.joinpath(*name.split("/"))

    def allow_background(self, allowed: bool) -> None:
        """Lets the indexes tend themselves, or not for now. To be said again now and then: spaces open meanwhile."""
        for space in self.all():
            space.indexes.tend(allowed)

    def flush_accesses(self) -> None:
        for space in self.all():
            space.flush_accesses()

    def checkpoint_accesses(self) -> None:
        for space in self.all():
            space.checkpoint_accesses()

    def finish_forgets(self) -> None:
        """Those that were interrupted, and those whose time to be undone is over."""
        until = self._now() - round(self._grace * 1e6)
        for space in self.all():
            try:
                space.finish_forgets(until)
            except EdgeError as error:  # noqa: PERF203  # one space must not keep the others from forgetting
                logger.warning("space %s: a forget is not finished: %s", space.name, error.message)

    def facts(self) -> list[SpaceFacts]:
        """Of every space; a closed one is as it was when it was closed."""
        found = []
        for name in list(self._known):
            space = self._open.get(name)
            if space is not None:
                # One that is being deleted has nothing to tell any more.
                with contextlib.suppress(Unavailable):
                    found.append(space.facts())
            elif (closed := self._known.get(name)) is not None:
                found.append(closed)
        return found

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


def _erase(directory: Path) -> None:
    """With all that is in it, also of one that is a link to another disk."""
    if directory.is_symlink():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory.resolve())
        directory.unlink()
    else:
        shutil.rmtree(directory)


def _micros(day: date) -> Micros:
    return int(datetime(day.year, day.month, day.day, tzinfo=timezone.utc).timestamp()) * 1_000_000


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        # A snapshot may be replaced meanwhile.
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


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
