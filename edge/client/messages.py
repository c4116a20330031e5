"""A message of turns, with what became of each."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from edge.client.failures import from_status
from edge.errors import EdgeError
from edge.v1.memory_pb2 import IngestRequest, IngestResult
from edge.v1.types_pb2 import Memory, Turn


class IngestState(enum.IntEnum):
    """What became of a turn; the numbers are the wire's."""

    STORED = 1
    SEARCHABLE = 2
    DUPLICATE = 3
    FILTERED = 4
    REJECTED = 5


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of the turn at `position` of the input, from 0.

    `rule` names what FILTERED it, and `hidden` counts the secrets that were taken out of it before it was kept.

    `error` says why it was FILTERED or REJECTED. Beside SEARCHABLE it is no failure, and nothing to send again: the
    turn is found by its words only (reason WORDS_ONLY), and the message says why.
    """

    position: int
    state: IngestState
    fingerprint: str = ""
    memory_ids: tuple[str, ...] = ()
    error: EdgeError | None = None
    rule: str = ""
    hidden: Mapping[str, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Item:
    position: int
    turn: Turn | None
    bytes: int
    refused: Ingested | None = None


class Remembered(list[Memory]):
    """The memories that a sentence became; `hidden` counts the secrets that were taken out of it, by class."""

    def __init__(self, memories: Iterable[Memory], hidden: Mapping[str, int]) -> None:
        super().__init__(memories)
        self.hidden = dict(hidden)


class Message:
    """Turns that travel together, with what is known of each."""

    __slots__ = ("acknowledged", "items", "request", "results", "sent", "settled")

    def __init__(self, ref: str, items: list[Item]) -> None:
        self.items = items
        self.results: list[Ingested | None] = [item.refused for item in items]
        # The wire's index counts only the turns that were sent.
        self.sent = [slot for slot, item in enumerate(items) if item.turn is not None]
        self.request: IngestRequest | None = IngestRequest(
            client_ref=ref, turns=[item.turn for item in items if item.turn is not None]
        )
        self.acknowledged = self.settled = not self.sent

    def take(self, results: Iterable[IngestResult]) -> None:
        for result in results:
            if 0 <= result.index < len(self.sent):
                slot = self.sent[result.index]
                self.results[slot] = _ingested(self.items[slot].position, result)

    @property
    def stored(self) -> bool:
        """Whether a turn of it is in the log, perhaps not to be found yet; a repeated one waits as a new one does."""
        waits = (IngestState.STORED, IngestState.DUPLICATE)
        return any(result is not None and result.state in waits for result in self.results)

    def close(self) -> None:
        """What the box said nothing of is told as such."""
        self.settled = True
        for slot in self.sent:
            if self.results[slot] is None:
                error = EdgeError("the box gave no answer for this turn; send it again")
                self.results[slot] = Ingested(self.items[slot].position, IngestState.REJECTED, error=error)


def _ingested(position: int, result: IngestResult) -> Ingested:
    try:
        state = IngestState(result.state)
    except ValueError:
        error = EdgeError(f"the box gave this turn the state {result.state}, unknown to this client; update the client")
        return Ingested(position, IngestState.REJECTED, error=error)
    return Ingested(
        position,
        state,
        result.fingerprint,
        tuple(result.memory_ids),
        from_status(result.error) if result.HasField("error") else None,
        result.rule,
        dict(result.hidden),
    )
