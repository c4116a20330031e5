"""What the ledger's tests share: a clock that ticks by itself, words that are characters, turns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from uuid6 import uuid7

from edge.ledger.database import Database
from edge.ledger.events import Event, TurnSaid
from edge.ledger.log import Allocator, Log
from edge.ledger.memories import Memories
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.types import Micros, Piece, Turn

KEY = b"k" * 32
START = 1_767_225_600_000_000


class TickingClock:
    def __init__(self) -> None:
        self._ticks = itertools.count(START, 1_000_000)

    def now(self) -> Micros:
        return next(self._ticks)

    def monotonic(self) -> float:
        return 0.0


class Characters:
    """A lexicon whose words are the characters, and the runs between spaces."""

    version = 1

    def index_terms(self, text: str) -> list[str]:
        return text.split() + [character for character in text if not character.isspace()]

    def share(self, terms: Sequence[str], text: str) -> float:
        return sum(term in text for term in terms) / len(terms) if terms else 0.0

    def query_terms(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.index_terms(text)))


def turn(text: str, seq: int = 0, **parts: object) -> Turn:
    values = {"source": "chat", "session": "s1", "seq": seq, "role": "user", "occurred_at": START + seq, "text": text}
    return Turn(**(values | parts))  # type: ignore[arg-type]  # the tests name real fields


def said(n: int, turn: Turn, size: int = 300, at: Micros = START) -> TurnSaid:
    starts = range(0, len(turn.text), size)
    pieces = tuple(Piece(str(uuid7()), start, min(start + size, len(turn.text))) for start in starts)
    return TurnSaid(n, at, turn, turn.fingerprint(), pieces)


class Ledger:
    """All of the room on one directory, wired as the box wires it."""

    def __init__(self, directory: Path, *, segment_bytes: int = 1 << 20) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.database = Database(directory / "memory.sqlite", MIGRATIONS)
        self.memories = Memories(self.database, Characters(), KEY)
        self.queries = Queries(self.database)
        self.removed: list[int] = []
        self.log = Log(directory / "log", clock=TickingClock(), segment_bytes=segment_bytes, on_durable=self._take)
        self.memories.apply(list(self.log.replay(self.memories.applied))).result()

    def _take(self, events: list[Event]) -> None:
        self.memories.apply(events).add_done_callback(lambda done: self.removed.extend(done.result().removed))

    def say(self, *turns: Turn, size: int = 300) -> list[TurnSaid]:
        def plan(numbers: Allocator) -> tuple[list[Event], None]:
            return [said(numbers.next(), turn, size, numbers.at) for turn in turns], None

        events, _ = self.log.submit(plan).result()
        self.memories.apply(events).result()
        return [event for event in events if isinstance(event, TurnSaid)]

    def close(self) -> None:
        self.log.close()
        self.memories.close()
        self.database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
