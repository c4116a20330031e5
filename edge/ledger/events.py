"""What the log holds, and its lines: JSON a line, each closed by its own checksum."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from edge.ledger.revisions import Revision, packed, unpacked
from edge.types import MemoryState, Micros, Piece, Turn

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
# `,"crc":"xxxxxxxx"}` ends every line.
_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"}')
_SEAL_BYTES = 18
_NUMBER = re.compile(rb'\{"n":(\d{1,18})[,}]')


@dataclass(frozen=True, slots=True)
class TurnSaid:
    """A turn, whole, and the memories it was cut into. The pieces' ids live here, so a rebuilt view has the same."""

    n: int
    at: Micros
    turn: Turn
    fingerprint: bytes
    pieces: tuple[Piece, ...]
    # What it says is in the cold file; its text is empty then, and the fingerprint that of the whole.
    cold: bool = False


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The intent to erase the lines `turns`; durable before anything is taken away.

    `marks` are HMAC-SHA256 of the turns' fingerprints in hex, one a turn: with them the box knows a forgotten turn
    when its source sends it again, and nobody without the box's key can learn from them what was said.
    """

    n: int
    at: Micros
    id: str
    turns: tuple[int, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Erased:
    """Stands where the line of a forgotten turn stood, under its number."""

    n: int
    at: Micros
    mark: str
    forget: str


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often each memory was recalled so far, and when last: {memory id: (count, last)}, totals, not differences."""

    n: int
    at: Micros
    counts: Mapping[str, tuple[int, Micros]]


@dataclass(frozen=True, slots=True)
class Tallied:
    """What came and was not kept, in numbers: turns by the rule of noise that kept them out (`noise/<rule>`), and the
    secrets taken out of the turns beside it, by class (`secret/<class>`). Differences, not totals."""

    n: int
    at: Micros
    counts: Mapping[str, int]


# Memories were confirmed, merged, archived, … Its changes are applied in the order of the log; each holds what was
# before, so that it can be undone by what the log says alone.
Revised = Revision


@dataclass(frozen=True, slots=True)
class Foreign:
    """A sound line of a kind that this version does not know, as a later one may have written; kept and passed over."""

    n: int
    at: Micros
    event: str


Event = TurnSaid | Forgotten | Erased | Accesses | Revised | Tallied | Foreign


class LineError(ValueError):
    """A line that is not what was written."""


def mark(key: bytes, fingerprint: bytes) -> str:
    """What stays of a forgotten turn: HMAC-SHA256(key, fingerprint) in hex (RFC 2104)."""
    return hmac.new(key, fingerprint, hashlib.sha256).hexdigest()


def encode(event: Event) -> bytes:
    """One line, newline included.

    Raises ValueError for what JSON in UTF-8 cannot hold: surrogates, infinite numbers, years outside 1 to 9999.
    """
    body = {"n": event.n, "at": _rfc3339(event.at)} | _fields(event)
    raw = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return b'%b,"crc":"%08x"}\n' % (raw, zlib.crc32(raw))


def decode(line: bytes) -> Event:
    """The event of one line, its newline included or not. Raises LineError."""
    line = line.rstrip(b"\n")
    seal = _SEAL.fullmatch(line, len(line) - _SEAL_BYTES) if len(line) > _SEAL_BYTES else None
    if seal is None or zlib.crc32(line[:-_SEAL_BYTES]) != int(seal.group(1), 16):
        raise LineError("the checksum does not hold")
    try:
        body = json.loads(line)
        n, at, kind = body["n"], _micros(body["at"]), body["event"]
        read = _READERS.get(kind)
        return Foreign(n, at, kind) if read is None else read(n, at, body)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise LineError(f"not an event ({type(error).__name__})") from None


def sound(line: bytes) -> bool:
    """Whether it is a whole line whose checksum holds."""
    try:
        decode(line)
    except LineError:
        return False
    return line.endswith(b"\n")


def number(line: bytes) -> int | None:
    """The event number that a line begins with, sound or not; for passing over lines without decoding them."""
    found = _NUMBER.match(line)
    return int(found.group(1)) if found else None


def _rfc3339(at: Micros) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except OverflowError:
        raise ValueError(f"{at} is no time of the years 1 to 9999") from None


def _micros(text: str) -> Micros:
    # Python 3.10's fromisoformat does not know the Z.
    return (datetime.fromisoformat(text.removesuffix("Z") + "+00:00") - _EPOCH) // _MICROSECOND


def _fields(event: Event) -> dict[str, Any]:
    if isinstance(event, TurnSaid):
        turn = event.turn
        body: dict[str, Any] = {
            "event": "turn",
            "source": turn.source,
            "session": turn.session,
            "seq": turn.seq,
            "role": turn.role,
            "occurred_at": _rfc3339(turn.occurred_at),
            "text": turn.text,
            "tags": list(turn.tags),
        }
        if turn.by:
            body["by"] = turn.by
        if turn.attributes:
            body["attributes"] = base64.b64encode(turn.attributes).decode()
        if event.cold:
            body["cold"] = True
        return body | {
            "kind": turn.kind,
            "state": turn.state.name.lower(),
            "weight": turn.weight,
            "fingerprint": event.fingerprint.hex(),
            "pieces": [[piece.id, piece.start, piece.end] for piece in event.pieces],
        }
    if isinstance(event, Forgotten):
        return {"event": "forgotten", "id": event.id, "turns": list(event.turns), "marks": list(event.marks)}
    if isinstance(event, Erased):
        return {"event": "erased", "mark": event.mark, "forget": event.forget}
    if isinstance(event, Accesses):
        return {"event": "accesses", "counts": {id: list(pair) for id, pair in event.counts.items()}}
    if isinstance(event, Revised):
        body = {"event": "revised", "id": event.id, "why": event.why, "by": event.by}
        if event.undoes:
            body["undoes"] = event.undoes
        return body | {"changes": packed(event.changes)}
    if isinstance(event, Tallied):
        return {"event": "tallied", "counts": dict(event.counts)}
    raise ValueError(f"events of the kind {event.event!r} belong to another version and are never written by this one")


def _turn_said(n: int, at: Micros, body: dict[str, Any]) -> TurnSaid:
    turn = Turn(
        source=body["source"],
        session=body["session"],
        seq=body["seq"],
        role=body["role"],
        occurred_at=_micros(body["occurred_at"]),
        text=body["text"],
        tags=tuple(body["tags"]),
        attributes=base64.b64decode(body.get("attributes", ""), validate=True),
        kind=body["kind"],
        state=MemoryState[body["state"].upper()],
        weight=float(body["weight"]),
        by=body.get("by", ""),
    )
    pieces = tuple(Piece(id, start, end) for id, start, end in body["pieces"])
    return TurnSaid(n, at, turn, bytes.fromhex(body["fingerprint"]), pieces, body.get("cold") is True)


def _forgotten(n: int, at: Micros, body: dict[str, Any]) -> Forgotten:
    turns, marks = tuple(body["turns"]), tuple(body["marks"])
    if len(turns) != len(marks):
        raise ValueError("a mark for each turn")
    return Forgotten(n, at, body["id"], turns, marks)


def _erased(n: int, at: Micros, body: dict[str, Any]) -> Erased:
    return Erased(n, at, body["mark"], body["forget"])


def _accesses(n: int, at: Micros, body: dict[str, Any]) -> Accesses:
    return Accesses(n, at, {id: (count, last) for id, (count, last) in body["counts"].items()})


def _revised(n: int, at: Micros, body: dict[str, Any]) -> Revised:
    return Revised(n, at, body["id"], body["why"], body["by"], unpacked(body["changes"]), body.get("undoes", ""))


def _tallied(n: int, at: Micros, body: dict[str, Any]) -> Tallied:
    counts = {str(name): int(count) for name, count in body["counts"].items()}
    if any(count < 0 for count in counts.values()):
        raise ValueError("counts of what came are not negative")
    return Tallied(n, at, counts)


_READERS: dict[str, Callable[[int, Micros, dict[str, Any]], Event]] = {
    "turn": _turn_said,
    "forgotten": _forgotten,
    "erased": _erased,
    "accesses": _accesses,
    "revised": _revised,
    "tallied": _tallied,
}
