"""The door: what a turn may keep of what it brings, whether it is noise, and how firmly it is remembered.

Everything that is kept comes through here first, whole: before it is fingerprinted, cut, logged or embedded. So
no file holds a secret, not even as the hash of a text with one in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack

from edge.admission.noise import RULES, Noise, judge
from edge.admission.redact import Redacted, Redactor, SessionRedactor
from edge.admission.redact.stream import resumes
from edge.admission.tiers import tier
from edge.config import Config
from edge.errors import InvalidArgument
from edge.types import DEFAULT_KIND, MemoryState, Turn

# Sessions with a private key in them, and turns that were a part of one, that are known at once.
_SESSIONS = 2048
_LINES = 16_384


@dataclass(frozen=True, slots=True)
class Admitted:
    """A turn as it may be kept; `noise` says why it is not to be. `hidden` counts secrets, by class or pattern."""

    turn: Turn
    noise: Noise | None
    hidden: Mapping[str, int]


def redactor(config: Config) -> Redactor | None:
    """As the configuration has it; None when redaction is off. Raises InvalidArgument that names the key."""
    wanted = config.admission
    return Redactor(config.recall.language, wanted.optional, wanted.patterns) if wanted.redact else None


def kept(rules: Sequence[str]) -> frozenset[str]:
    """Rules of noise that are off. Raises InvalidArgument (admission.keep) for one that there is not."""
    for rule in rules:
        if rule not in RULES:
            raise InvalidArgument(
                f"admission.keep: there is no rule {rule!r}; there are {', '.join(RULES)}", field="admission.keep"
            )
    return frozenset(rules)


class Gate:
    """Of one space; safe from any thread. Pure, but for what it knows of private keys that come line by line."""

    def __init__(self, redactor: Redactor | None, keep: Collection[str] = (), *, tiers: bool = True) -> None:
        self._redactor = redactor
        self._keys = None if redactor is None else _Keys(redactor)
        self._keep = keep
        self._tiers = tiers

    def admit(self, turn: Turn, before: Callable[[Turn], tuple[int, str]]) -> Admitted:
        """Linear in the turn's size: some 50 ms for 1 MiB.

        The turns of a session come in their order. `before` gives (seq, text) of what is kept of this turn or, where
        nothing is, of the one before it in its session, (-1, "") where there is none; it is asked for what looks like
        a part of a key whose beginning is not known. What it raises comes through.
        """
        hidden: dict[str, int] = {}
        clean = turn
        if self._redactor is not None and self._keys is not None:
            clean = _redacted(turn, self._redactor, self._keys.redact(turn, before), hidden)
        noise = judge(clean, self._keep)
        if noise is None and self._tiers and _speaks(clean) and (found := tier(clean)).rule:
            clean = replace(clean, state=found.state, weight=found.weight, kind=found.kind)
        return Admitted(clean, noise, hidden)


def _speaks(turn: Turn) -> bool:
    """Whether the user says it, and nobody has said yet what to make of it."""
    said = turn.state is MemoryState.TEMPORARY and turn.kind == DEFAULT_KIND
    return said and turn.role.strip().casefold() == "user"


def _redacted(turn: Turn, redactor: Redactor, text: Redacted, hidden: dict[str, int]) -> Turn:
    """The names of source, session and role stay: they are how the turn is known."""

    def note(found: Redacted) -> str:
        for name, count in found.counts.items():
            hidden[name] = hidden.get(name, 0) + count
        return found.text

    def redact(text: str, name: str = "") -> str:
        clean = redactor.redact(text)
        if name and not clean.counts:
            # What is called "password" may look like any word.
            named = redactor.redact(f"{name}: {text}")
            if named.counts and named.text.startswith(f"{name}: "):
                return note(named)[len(name) + 2 :]
        return note(clean)

    words = note(text)
    tags = tuple(dict.fromkeys(map(redact, turn.tags)))
    attributes = turn.attributes
    if attributes:
        # Checked at the door: one plain map, 64 KiB and 32 levels at most.
        plain = msgpack.unpackb(attributes)
        clean = _plain(plain, redact)
        attributes = attributes if clean is plain else msgpack.packb(clean)
    if words is turn.text and tags == turn.tags and attributes is turn.attributes:
        return turn
    return replace(turn, text=words, tags=tags, attributes=attributes)


def _plain(value: Any, redact: Callable[..., str], name: str = "") -> Any:
    """The same object where nothing changed, so that what has no secret keeps its very bytes."""
    if isinstance(value, str):
        clean = redact(value, name)
        return value if clean == value else clean
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        clean = redact(text, name)
        return value if clean == text else clean.encode()
    if isinstance(value, list):
        items = [_plain(item, redact, name) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = [(_plain(key, redact), _plain(inner, redact, key)) for key, inner in value.items()]
        if all(key is old and inner is value[old] for (key, inner), old in zip(pairs, value, strict=True)):
            return value
        found: dict[str, Any] = {}
        for key, inner in pairs:
            # Two secrets used as keys have one placeholder: neither value may be lost for it.
            place, free = 1, key
            while free in found:
                place += 1
                free = f"{key} {place}"
            found[free] = inner
        return found
    return value


@dataclass(eq=False, slots=True)
class _Followed:
    redactor: SessionRedactor
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Keys:
    """Private keys that a program sends line by line, a turn each: which sessions are in the middle of one.

    A line by itself looks like anything. So that one which is sent again is known again (else it would come out as it
    is, and as another turn), the turns that were lines of a key are kept in mind; for those of long ago, or of before
    the last start, what was kept of the session tells.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[str, str], _Followed] = OrderedDict()
        self._lines: OrderedDict[tuple[str, str, int], None] = OrderedDict()

    def redact(self, turn: Turn, before: Callable[[Turn], tuple[int, str]]) -> Redacted:
        session, line = (turn.source, turn.session), (turn.source, turn.session, turn.seq)
        with self._lock:
            followed, again = self._sessions.get(session), line in self._lines
        unknown = followed is None
        if followed is None:
            followed = _Followed(SessionRedactor(self._redactor))

        def kept() -> str:
            seq, text = before(turn)
            # Where the session is followed, its order is known: only an earlier sending of this very turn tells more.
            return text if unknown or seq == turn.seq else ""

        with followed.lock:
            inside = followed.redactor.inside
            if not inside and (again or resumes(turn.text, kept)):
                rest = SessionRedactor(self._redactor, inside=True)
                if unknown:
                    followed.redactor, inside = rest, True
                else:
                    return rest.redact(turn.text)
            redacted = followed.redactor.redact(turn.text)
            if inside or followed.redactor.inside:
                self._keep(session, followed, line if inside else None)
        return redacted

    def _keep(self, session: tuple[str, str], followed: _Followed, line: tuple[str, str, int] | None) -> None:
        with self._lock:
            self._sessions[session] = followed
            self._sessions.move_to_end(session)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
            if line is not None:
                self._lines[line] = None
                self._lines.move_to_end(line)
                if len(self._lines) > _LINES:
                    self._lines.popitem(last=False)
