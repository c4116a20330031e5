"""Turns from files of JSON lines, each checked by itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from edge.cli.times import instant
from edge.client.requests import turn_of
from edge.errors import InvalidArgument

# A turn's text may have 1 MiB, which JSON escapes can make six of.
LINE_BYTES = 8 * 1024 * 1024
DEFAULT_SOURCE = "cli"
DEFAULT_ROLE = "user"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file: the turn in it, or what is wrong with it. `where` is file:number."""

    where: str
    bytes: int
    turn: Any = None
    error: InvalidArgument | None = None


def file_session(path: Path) -> str:
    """The session of a file's turns that name none: the same when the file is read again, also when it has grown.

    Another for another file of that name, or when other words begin it (a log that was rotated): turns whose numbers
    merely happen to agree must never take each other's place.
    """
    with path.open("rb") as file:
        first = file.readline(LINE_BYTES)
    return f"{path.name}-{hashlib.sha256(os.fsencode(path.resolve()) + first).hexdigest()[:12]}"


def read(stream: BinaryIO, name: str, session: str) -> Iterator[Line]:
    """Every line that is not blank. A line too long is passed over without being held."""
    number = 0
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        length = len(raw)
        where = f"{name}:{number}"
        if length > LINE_BYTES and not raw.endswith(b"\n"):
            while not raw.endswith(b"\n") and (raw := stream.readline(LINE_BYTES)):
                length += len(raw)
            message = f"line: has {length} bytes; {LINE_BYTES} at most"
            yield Line(where, length, error=InvalidArgument(message, field="line"))
            continue
        try:
            turn = parse(raw, session, number)
        except InvalidArgument as error:
            yield Line(where, length, error=error)
        else:
            if turn is not None:
                yield Line(where, length, turn)


def parse(raw: bytes, session: str, number: int) -> Any:
    """The turn of a line, None if it is blank. Raises InvalidArgument that names the field."""
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        message = f"line: is not UTF-8 (byte {error.start + 1}); save the file as UTF-8"
        raise InvalidArgument(message, field="line") from None
    if not text:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        message = f"line: is not JSON ({error.msg}, column {error.colno}); write one object a line"
        raise InvalidArgument(message, field="line") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidArgument(f"line: cannot be taken: {reason}", field="line") from None
    if not isinstance(value, dict):
        raise InvalidArgument("line: must be a JSON object with at least `text`", field="line")
    fields = {"source": DEFAULT_SOURCE, "session": session, "seq": number, "role": DEFAULT_ROLE, **value}
    if "occurred_at" in fields:
        fields["occurred_at"] = instant(fields["occurred_at"], "occurred_at")
    return turn_of(fields)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice; keep one")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
