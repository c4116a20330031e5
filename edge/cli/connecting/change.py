"""A change to somebody else's file: made up first, shown, and written whole or not at all."""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from edge.cli.connecting.assistants import NAME, Assistant
from edge.errors import FailedPrecondition, ReadOnly

# Files of this kind have some kilobytes; Claude Code's, with its history, some megabytes.
_FILE_BYTES = 64 * 1024 * 1024
# Characters of a line that a person wrote.
_LONG = 300


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None where there is no file yet. Texts are exact, line ends and byte order mark too."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.before != self.after

    def shown(self) -> str:
        """What goes and what comes, and no line of the file besides: others' secrets may stand there."""
        old, new = (self.before or "").splitlines(), self.after.splitlines()
        lines = [*difflib.unified_diff(old, new, lineterm="", n=0)][2:]
        if any(len(line) > _LONG for line in lines):
            # A file without line ends: of one line that holds all of it, only what changes.
            old, new = _differing(self.before or "", self.after)
            lines = [*("-" + line for line in old), *("+" + line for line in new)]
        return "\n".join(line for line in lines if not line.startswith("@@"))

    def write(self) -> Path | None:
        """The copy of what was there, if anything was. Raises FailedPrecondition when the file changed meanwhile,
        ReadOnly when it cannot be written.
        """
        try:
            # Where it is a link, as those who keep such files together make it, the file behind it changes.
            path = Path(os.path.realpath(self.path))
            path.parent.mkdir(parents=True, exist_ok=True)
            # It could be replaced all the same; whoever made it so did not mean that.
            if self.before is not None and not os.access(path, os.W_OK):
                raise ReadOnly(f"{self.path} is read-only; nothing was changed")
            backup = None
            with _staged(path, self.after) as after, _staged(path, self.before or "") as before:
                # The assistant may have written it while its owner was asked.
                if read(path) != self.before:
                    raise FailedPrecondition(f"{self.path} was changed meanwhile by another program; run this again")
                if self.before is not None:
                    backup = _unused(path, f"{path.name}.before-edge-{time.strftime('%Y%m%d-%H%M%S')}")
                    before.replace(backup)
                after.replace(path)
        except OSError as error:
            raise ReadOnly(f"{self.path} cannot be written ({error.strerror}); nothing was changed") from None
        return backup


@contextlib.contextmanager
def _staged(path: Path, text: str) -> Iterator[Path]:
    """A file beside `path` with its mode and owner, to be moved to where it belongs; else it is gone afterwards."""
    # For its owner alone (mkstemp) until it has its mode: tokens may stand in it.
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            about = path.stat()
            with contextlib.suppress(PermissionError):
                os.chown(name, about.st_uid, about.st_gid)
            shutil.copymode(path, name)
        yield Path(name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _unused(path: Path, name: str) -> Path:
    """Beside a file: two changes within a second keep two copies."""
    names = (name, *(f"{name}-{number}" for number in range(2, 100)))
    return next(one for one in map(path.with_name, names) if not one.exists())


def _differing(old: str, new: str) -> tuple[list[str], list[str]]:
    """What lies between what both begin with and what both end with."""
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    return old[start : len(old) - end].splitlines(), new[start : len(new) - end].splitlines()


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def read(path: Path) -> str | None:
    """The text, None where there is no file. Raises FailedPrecondition for what is no text."""
    try:
        if path.stat().st_size > _FILE_BYTES:
            raise FailedPrecondition(
                f"{path} has more than {_FILE_BYTES} bytes, which no configuration has; look at it"
            )
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise FailedPrecondition(f"{path} is not UTF-8; nothing was changed") from None
    except OSError as error:
        raise FailedPrecondition(f"{path} cannot be read ({error.strerror}); nothing was changed") from None


def plan(assistant: Assistant, path: Path, entry: dict[str, Any]) -> Change:
    """What an entry of that name has besides stays in it. Raises FailedPrecondition where the file is damaged, or not
    as its maker documents it.
    """

    def put(format: ModuleType, before: str, old: Any, keys: tuple[str, ...]) -> str:
        there, whole, after = _at(old, keys), entry, before
        if isinstance(there, dict):
            for key, value in entry.items():
                if there.get(key) != value:
                    after = format.put(after, (*keys, key), value)
            whole = {**there, **entry}
        else:
            after = format.put(after, keys, entry)
        _check(format.parse(after) == _with(old, keys, whole))
        return after

    by_hand = f"add by hand what `edge connect {assistant.name} --print` prints"
    before = read(path)
    return Change(path, before, _edited(assistant, path, before or "", put, by_hand))


def plan_removal(assistant: Assistant, path: Path) -> Change | None:
    """The entry of that name goes, with all that it has; None where there is none. Raises as `plan` does."""

    def remove(format: ModuleType, before: str, old: Any, keys: tuple[str, ...]) -> str:
        if _at(old, keys) is None:
            return before
        after: str = format.remove(before, keys)
        _check(_filled(format.parse(after), keys) == _without(old, keys))
        return after

    before = read(path)
    if before is None:
        return None
    change = Change(path, before, _edited(assistant, path, before, remove, f"take {NAME} out of it by hand"))
    return change if change.needed else None


# Makes the new text of the old one, what that means, and the keys of the entry.
_Edit = Callable[[ModuleType, str, Any, tuple[str, ...]], str]


def _edited(assistant: Assistant, path: Path, before: str, edit: _Edit, by_hand: str) -> str:
    format = _format(assistant)
    try:
        old = format.parse(before)
        return edit(format, before, old, (*_place(assistant, old), NAME))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise FailedPrecondition(
            f"{path} is not as {assistant.name} documents it ({error}); nothing was changed. Mend it, or {by_hand}",
            reason="CONFIG_DAMAGED",
        ) from None


def _check(same: bool) -> None:
    """The rest of it means what it meant, or nothing is written."""
    if not same:
        raise ValueError("it cannot be changed without touching the rest of it")


def snippet(assistant: Assistant, entry: dict[str, Any]) -> str:
    """A whole file that has nothing else."""
    whole: str = _format(assistant).put("", (*assistant.keys, NAME), entry)
    return whole.rstrip("\n")


def _format(assistant: Assistant) -> ModuleType:
    """What has parse(text), put(text, keys, value) and remove(text, keys). TOML's is only loaded for who needs it."""
    return importlib.import_module("edge.cli.connecting." + ("toml_file" if assistant.toml else "json_file"))


def _place(assistant: Assistant, old: Any) -> tuple[str, ...]:
    """opencode 2 has its servers one level deeper, in a file that says so."""
    servers = _at(old, ("mcp", "servers")) if assistant.name == "opencode" else None
    return ("mcp", "servers") if isinstance(servers, dict) and "type" not in servers else assistant.keys


def _at(value: Any, keys: tuple[str, ...]) -> Any:
    """None where nothing is. Raises ValueError where one of them is looked for in what is no object."""
    for depth, key in enumerate(keys):
        if not isinstance(value, dict):
            raise ValueError(f"{'.'.join(keys[:depth]) or 'the whole'} is not an object")
        if key not in value:
            return None
        value = value[key]
    return value


def _with(value: Any, keys: tuple[str, ...], entry: Any) -> Any:
    found = copy.deepcopy(value)
    place = found
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = entry
    return found


def _without(value: Any, keys: tuple[str, ...]) -> Any:
    found = copy.deepcopy(value)
    place = found
    for key in keys[:-1]:
        place = place[key]
    del place[keys[-1]]
    return found


def _filled(value: Any, keys: tuple[str, ...]) -> Any:
    """With the objects on the way: a TOML table that has no line of its own is gone with the last one in it."""
    place = value
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    return value
