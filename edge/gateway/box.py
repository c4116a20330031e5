"""What the gateway asks of a box, in plain values: `real` asks one, `fake` is one in memory, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rights:
    """Who asks, as the box's log names it, what its token may do in at least one space, and the box's language."""

    caller: str
    scopes: frozenset[str]
    language: str = "zh"


@dataclass(frozen=True, slots=True)
class Item:
    """A memory. `occurred_at` is in microseconds since 1970 UTC; `previous` and `next` are the URIs of the pieces
    beside it in its turn, where it was read by itself and has any.
    """

    uri: str
    text: str
    occurred_at: int
    source: str
    state: str = ""
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    piece: int = 0
    pieces: int = 1
    relevance: float = 1.0
    previous: str = ""
    next: str = ""

    @property
    def id(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def day(self) -> str:
        """In UTC, as the context block has it."""
        return f"{datetime.fromtimestamp(self.occurred_at // 1_000_000, timezone.utc):%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Question:
    query: str
    top_k: int = 5
    deep: bool = False
    # Microseconds since 1970 UTC.
    since: int | None = None
    until: int | None = None
    space: str = ""
    level: str = "abstract"


@dataclass(frozen=True, slots=True)
class Found:
    """`block` is the context block, each line of which begins with the id of its memory; items best first."""

    items: Sequence[Item]
    block: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What a model wants kept. The same `request_id` with the same content and source is kept once."""

    request_id: str
    content: str
    tags: tuple[str, ...]
    weight: float
    source: str
    # Microseconds since 1970 UTC.
    occurred_at: int


@dataclass(frozen=True, slots=True)
class Kept:
    """`hidden` counts the secrets that were taken out, by class."""

    items: Sequence[Item]
    hidden: dict[str, int]


@dataclass(frozen=True, slots=True)
class Gone:
    """What a forget took, or would take. `until`: when it is erased for good, RFC 3339; empty: it is."""

    id: str
    turns: int
    memories: int
    uris: Sequence[str] = ()
    until: str = ""


@dataclass(frozen=True, slots=True)
class Saved:
    key: str
    value: str
    revision: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """`event` is what undoes it."""

    item: Item
    event: str


class Box(Protocol):
    """Every method raises edge.errors, Unavailable within two seconds where no box answers."""

    async def rights(self) -> Rights: ...

    async def search(self, question: Question) -> Found: ...

    async def keep(self, note: Note) -> Kept: ...

    async def read(self, id: str, level: str) -> Item: ...

    async def newest(self, spaces: Sequence[str], kinds: Sequence[str], states: Sequence[str]) -> Sequence[Item]: ...

    async def forget(self, id: str, dry_run: bool) -> Gone: ...

    async def confirm(self, id: str) -> Confirmed: ...

    async def spaces(self) -> Sequence[str]: ...

    async def state(self, key: str) -> Saved: ...

    async def states(self) -> Sequence[Saved]: ...

    async def put_state(self, key: str, value: str) -> Saved: ...

    async def close(self) -> None: ...


# What a list shows at most.
NEWEST = 20
