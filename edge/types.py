"""The nouns: Turn, Memory, Fact, Hit, Space."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edge.errors import InvalidArgument

# Every time inside the box is an int: microseconds since 1970-01-01 UTC.
Micros = int
DAY: Micros = 86_400_000_000
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # Shape (dimension,), float32, L2 norm 1.
    Vector = NDArray[np.float32]
    # Shape (n, dimension), float32, each row L2 norm 1.
    Matrix = NDArray[np.float32]
    # Shape (n,), int64: SQLite rowids, which are the labels of the index.
    RowIds = NDArray[np.int64]
else:
    # Clients import this file, and need no numpy for it.
    Vector = Matrix = RowIds = Any

_SEGMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
DEFAULT_KIND = "turn"
NOTE_KIND = "note"


class MemoryState(enum.IntEnum):
    """Where a memory stands between heard and known; the numbers are those of the wire."""

    TEMPORARY = 1
    CANDIDATE = 2
    CONFIRMED = 3
    SUPERSEDED = 4
    # Proposed, and turned down: out of recalls and lists unless the archived ones are asked for.
    REJECTED = 5
    # Forgotten, and still to be brought back for a while (forgetting.grace_seconds): no answer shows it.
    FORGOTTEN = 6
    # Faded, and moved to the cold file with all that it says: no answer shows it; undoing that brings it back.
    COLD = 7


class Depth(enum.IntEnum):
    AUTO = 1
    SHALLOW = 2
    DEEP = 3


class Level(enum.IntEnum):
    ABSTRACT = 1
    OVERVIEW = 2
    DETAIL = 3


class Lane(enum.IntEnum):
    """Who waits for a vector: recalls go before ingests."""

    RECALL = 0
    INGEST = 1


class TurnState(enum.IntEnum):
    """What became of a turn; the numbers are those of the wire's IngestState."""

    STORED = 1
    SEARCHABLE = 2
    DUPLICATE = 3
    FILTERED = 4
    REJECTED = 5


class Pressure(enum.IntEnum):
    """How hard heat, power and memory press on the device; the numbers are those of the wire."""

    NOMINAL = 1
    WARM = 2
    HOT = 3
    CRITICAL = 4


@dataclass(frozen=True, slots=True)
class SensorFact:
    """What one sensor says, for the owner: its last value, or why it has none."""

    name: str
    value: float | None
    # "C", "bytes", "share", "percent", "events/s", or empty for a plain number.
    unit: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said, checked and whole. `attributes` is one msgpack map, or empty."""

    source: str
    session: str
    seq: int
    role: str
    occurred_at: Micros
    text: str
    tags: tuple[str, ...] = ()
    attributes: bytes = b""
    kind: str = DEFAULT_KIND
    state: MemoryState = MemoryState.TEMPORARY
    weight: float = 1.0
    # Who handed it in: "owner" or a client's name; empty where nobody noted it. No part of the fingerprint.
    by: str = ""

    def fingerprint(self) -> bytes:
        """SHA-256 of (source, session, seq, role, text), each with its length: equal only for equal turns."""
        digest = hashlib.sha256()
        for part in (self.source, self.session, str(self.seq), self.role, self.text):
            raw = part.encode()
            digest.update(len(raw).to_bytes(8, "big"))
            digest.update(raw)
        return digest.digest()


@dataclass(frozen=True, slots=True)
class Piece:
    """A memory to be: characters [start, end) of its turn's text."""

    id: str
    start: int
    end: int


@dataclass(slots=True)
class Memory:
    """A piece of a turn as the ledger has it.

    To be treated as frozen. It is not, because a recall makes a hundred of them, and a frozen one takes 12 microseconds
    to make in place of 3.
    """

    rowid: int
    id: str
    kind: str
    state: MemoryState
    text: str
    source: str
    session: str
    seq: int
    role: str
    occurred_at: Micros
    created_at: Micros
    weight: float
    tags: tuple[str, ...]
    access_count: int
    accessed_at: Micros
    archived: bool
    piece: int
    pieces: int
    attributes: bytes
    space: str = ""
    # The memory that took its place: it was merged into that one, or contradicted by it.
    replaced_by: str | None = None
    # When what it says held; None for always.
    valid_from: Micros | None = None
    valid_until: Micros | None = None

    @property
    def uri(self) -> str:
        return f"edge://{self.space}/{self.kind}/{self.id}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories; every part given must hold. Times are half-open: since <= occurred_at < until."""

    since: Micros | None = None
    until: Micros | None = None
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    include_archived: bool = False
    # Empty: all that a recall may give. SUPERSEDED and REJECTED are given where they are named.
    states: tuple[MemoryState, ...] = ()

    @property
    def selective(self) -> bool:
        """Whether it narrows at all (include_archived widens)."""
        narrowing = (self.tags, self.kinds, self.sources, self.sessions, self.states)
        return self.since is not None or self.until is not None or any(narrowing)


@dataclass(frozen=True, slots=True)
class Signals:
    """What each line of evidence says, each 0 to 1; recall.fuse makes a score of them."""

    semantic: float = 0.0
    lexical: float = 0.0
    association: float = 0.0
    # Whether it is of the time that the question names, or tells a time that the question asks for.
    time: float = 0.0
    recency: float = 0.0
    frequency: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float
    signals: Signals
    # From 1 on it bears on the question; see recall.relevance.
    relevance: float = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """What a recall is asked. `deadline` is a time.monotonic() value, None for no hurry.

    "Yesterday" is the day before `asked_at` (None: now) in the asker's `zone` (IANA; empty: the box's own).
    """

    query: str
    spaces: tuple[str, ...]
    depth: Depth = Depth.AUTO
    top_k: int = 5
    filter: Filter = field(default_factory=Filter)
    level: Level = Level.DETAIL
    with_context: bool = False
    context_tokens: int = 400
    # Whether each line of the context begins with its memory's id.
    context_ids: bool = False
    deadline: float | None = None
    asked_at: Micros | None = None
    zone: str = ""
    # No hits at all, when none bears on the question.
    only_relevant: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recall gives back: best first. `timing` holds (stage, seconds) in order, the whole under "total"."""

    hits: tuple[Hit, ...]
    depth: Depth
    trigger: str = ""
    context: str = ""
    timing: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as the manifest has it, and what runs it."""

    id: str
    dimension: int
    device: str
    workers: int
    bytes: int
    # Tokens of the longest window that is run at once.
    window: int = 512
    # Whether rows may share a run; else each is run alone.
    batch_invariant: bool = False
    # "zh", "en" or "any": whose texts it is for, where several models run.
    language: str = "any"
    # About the cosine of a query with a text that has nothing to do with it; where recall.relevance says that one
    # answers it; and of those that stand behind the best. They make the cosines of two models comparable.
    unrelated: float = 0.25
    related: float = 0.64
    behind: float = 0.35


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a forget took away, in numbers."""

    id: str
    dry_run: bool
    turns: int
    memories: int
    vectors: int
    segments_rewritten: int
    snapshots_dropped: int
    memory_ids: tuple[str, ...]
    # Rows of the keyword index, memories that were candidates, and revisions that speak of these memories.
    words: int = 0
    candidates: int = 0
    revisions: int = 0
    # HMAC-SHA256 of each turn's fingerprint in hex, keyed by the box's secret: `edge verify --erased` knows the turns
    # by them, and nobody without the key can test a guess.
    marks: tuple[str, ...] = ()
    # Hidden from everything, and erased for good at this time unless it is undone before; None: erased.
    erased_at: Micros | None = None


class Scope(enum.IntEnum):
    """What a token may do; the numbers are those of the wire."""

    READ = 1
    WRITE = 2
    DELETE = 3
    # The box itself: tokens, spaces, models, backups.
    ADMIN = 4


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes in the spaces that match: `*`, `public`, `work`, `private/<name>` or `private/*`."""

    pattern: str
    scopes: frozenset[Scope]

    def covers(self, scope: Scope, space: str) -> bool:
        return scope in self.scopes and (
            self.pattern in ("*", space) or (self.pattern == "private/*" and space.startswith("private/"))
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call. `token` is the token's id; empty for whoever needs none (the owner, or one who pairs)."""

    name: str
    grants: tuple[Grant, ...]
    owner: bool = False
    token: str = ""

    def may(self, scope: Scope, space: str) -> bool:
        """Whether in this space; False for what is not a space's name."""
        try:
            check_space(space)
        except InvalidArgument:
            return False
        return any(grant.covers(scope, space) for grant in self.grants)

    @property
    def administers(self) -> bool:
        """Whether it may do what concerns the whole box: ADMIN under `*`, and under nothing narrower."""
        return any(grant.pattern == "*" and Scope.ADMIN in grant.scopes for grant in self.grants)

    @property
    def home(self) -> str:
        """Where a write goes that names no space."""
        return "public" if self.owner else f"private/{self.name}"


OWNER = Caller("owner", (Grant("*", frozenset(Scope)),), owner=True)


def check_space(name: str, field: str = "space") -> str:
    """The name, if it is `public`, `work` or `private/<name>`; else InvalidArgument."""
    if name in ("public", "work"):
        return name
    head, _, tail = name.partition("/")
    if head == "private" and _SEGMENT.fullmatch(tail):
        return name
    raise InvalidArgument(
        f"{field}: no such kind of space; use public, work or private/<name>, the name of a-z, 0-9, _ and -, "
        "63 characters at most",
        field=field,
    )


def check_name(name: str, field: str = "name") -> str:
    """The name of a client, if it may stand in `private/<name>`; else InvalidArgument."""
    if _SEGMENT.fullmatch(name):
        return name
    raise InvalidArgument(
        f"{field}: use a-z, 0-9, _ and -, a letter or digit first, 63 characters at most", field=field
    )


def check_kind(name: str, field: str = "kind") -> str:
    """The name, if it can stand in a URI; else InvalidArgument."""
    if _SEGMENT.fullmatch(name):
        return name
    raise InvalidArgument(f"{field}: use a-z, 0-9, _ and -, 63 characters at most", field=field)
