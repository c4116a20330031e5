"""The files of a log: their order, their tails, and rewriting one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from edge.ledger.disk import sync, sync_directory
from edge.ledger.events import Erased, Event, LineError, TurnSaid, decode, encode, number

_NAME = re.compile(r"\d{4}-\d{2}-\d{2}-(\d{6,})\.jsonl")
_BEGINNING = b'{"n":'


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    number: int


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line and its place in the file, from 1. A damaged one has no event; its `n` is a guess by its place."""

    row: int
    n: int
    event: Event | None


def list_segments(directory: Path) -> list[Segment]:
    """In the order of writing."""
    found = ((_NAME.fullmatch(path.name), path) for path in directory.glob("*.jsonl"))
    return sorted((Segment(path, int(name.group(1))) for name, path in found if name), key=lambda s: s.number)


def first_number(segment: Segment) -> int | None:
    """The first event's number by a look at the first bytes; None for an empty or damaged beginning, or no file."""
    try:
        with segment.path.open("rb") as file:
            return number(file.read(32))
    except FileNotFoundError:
        return None


def read_lines(segment: Segment) -> Iterator[Line]:
    """The whole lines of a segment; what follows the last newline is not one."""
    with segment.path.open("rb") as file:
        n = 0
        for row, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                return
            try:
                event: Event | None = decode(raw)
            except LineError:
                event = None
            # A damaged newline makes one line of two or more: count the beginnings in it.
            n = event.n if event else n + max(1, raw.count(_BEGINNING))
            yield Line(row, n, event)


def whole_bytes(path: Path) -> int:
    """How many bytes of the file are whole lines; the rest is the tail of a write that never finished."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            at = file.read(end - start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            end = start
    return 0


def holds_turn(segment: Segment, erased: Mapping[int, Erased | TurnSaid]) -> bool:
    """Whether any line of the segment still has to be replaced."""
    with segment.path.open("rb") as file:
        return any(replacement for _, replacement in _replaced(file, erased))


def rewrite(segment: Segment, erased: Mapping[int, Erased | TurnSaid]) -> None:
    """The segment with the lines of `erased` replaced, in one step: whoever looks finds the old file or the new one.

    A damaged line is replaced when it begins with a number to be erased and follows the line of the number before;
    one whose own number cannot be trusted so far stays, since it may be any other turn's.
    Raises OSError, the old file untouched.
    """
    scratch = segment.path.with_name(segment.path.name + ".tmp")
    try:
        with segment.path.open("rb") as source, open(scratch, "wb", opener=_private) as copy:
            copy.writelines(
                encode(replacement) if replacement else raw for raw, replacement in _replaced(source, erased)
            )
            copy.flush()
            sync(copy.fileno())
        scratch.replace(segment.path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
    sync_directory(segment.path.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _replaced(
    file: BinaryIO, erased: Mapping[int, Erased | TurnSaid]
) -> Iterator[tuple[bytes, Erased | TurnSaid | None]]:
    """Each line, and what is to stand in its place. Lines of other numbers are not decoded: appends wait for this."""
    previous = None
    for raw in file:
        n = number(raw)
        replacement = erased.get(n) if n is not None else None
        if replacement:
            try:
                said = isinstance(decode(raw), TurnSaid)
            except LineError:
                said = previous is not None and n == previous + 1
            if not said:
                replacement = None
        yield raw, replacement
        previous = n
