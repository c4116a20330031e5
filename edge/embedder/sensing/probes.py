"""A sensor as the watch sees it: it has a name, can be read, and may fail, lie or hang."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge.types import Pressure, SensorFact

# No file read here is longer on a sane device; what a broken driver writes on and on is cut.
_MOST_BYTES = 256 * 1024
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_SHOWN = 32

ReadFile = Callable[[Path], bytes]


class NotCredible(ValueError):
    """A sensor that answers, but not with a value it can have; the message says what it said."""


class Rank(enum.IntEnum):
    """Which thermal zones count: those of the lowest rank that is there."""

    JUNCTION = 0
    CHIP = 1
    OTHER = 2


@dataclass(frozen=True, slots=True)
class Zone:
    """One place where heat is measured, and the trip points given for it. Degrees Celsius."""

    rank: Rank
    temperature: float
    passive: float | None = None
    hot: float | None = None
    critical: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """What one probe says: the fields of Readings that it knows, None or empty for the others."""

    zones: tuple[Zone, ...] = ()
    pressure: Pressure | None = None
    overcurrent: float | None = None
    gpu_load: float | None = None
    frequency: float | None = None
    memory_available: int | None = None
    memory_pressure: float | None = None
    on_battery: bool | None = None
    battery: float | None = None
    power_mode: str = ""
    facts: tuple[SensorFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """A name that no other probe of the device has, the unit of its value, and how to read it."""

    name: str
    unit: str
    # May raise anything, and may hang.
    read: Callable[[], Sample]

    def sample(self) -> Sample:
        """What it says; never raises: a failure becomes a fact with a problem."""
        try:
            return self.read()
        except NotCredible as error:
            return self.failed(str(error))
        except OSError as error:
            return self.failed(f"cannot be read ({error.strerror or type(error).__name__})")
        except Exception as error:  # noqa: BLE001  # psutil raises TypeError for a driver's oddities, and others may follow
            return self.failed(f"cannot be read ({type(error).__name__})")

    def failed(self, problem: str) -> Sample:
        return Sample(facts=(SensorFact(self.name, None, self.unit, problem),))


def read_file(path: Path) -> bytes:
    """The file's bytes, the first 256 KiB of them. Raises OSError.

    os.read, because Python's own raw files give None for EAGAIN, which Orin's thermal zones answer
    (node_exporter#3071).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) < _MOST_BYTES and (more := os.read(descriptor, _MOST_BYTES - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


class Tree:
    """The files of sys/, proc/ and var/ under one root."""

    def __init__(self, root: Path, read: ReadFile = read_file) -> None:
        self.root = root
        self._read = read

    def find(self, pattern: str) -> list[Path]:
        """The paths that match, in order."""
        return sorted(self.root.glob(pattern))

    def text(self, path: Path) -> str:
        """Raises OSError."""
        return self._read(path).decode("utf-8", "replace").strip()

    def number(self, path: Path) -> int:
        """Raises OSError, NotCredible."""
        text = self.text(path)
        if not _NUMBER.fullmatch(text):
            raise NotCredible(f"says {shown(text)}, which is no number")
        return int(text)

    def word(self, path: Path) -> str:
        """The text, made fit to be shown; empty when there is none or it cannot be read."""
        try:
            return printable(self.text(path))
        except (OSError, ValueError):  # ValueError: a path with a NUL in it, out of a damaged file
            return ""


def printable(text: str) -> str:
    return "".join(character for character in text if character.isascii() and character.isprintable())[:_SHOWN]


def shown(text: str) -> str:
    """What a sensor said, as part of a sentence."""
    return repr(printable(text)) if text else "nothing"
