"""What the core asks of the world; nothing more (each port five verbs at most)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from edge.types import Filter, Lane, Matrix, Memory, Micros, ModelInfo, Pressure, RowIds, SensorFact, Vector


class Clock(Protocol):
    """Wall time for events, monotonic time for intervals."""

    def now(self) -> Micros: ...

    def monotonic(self) -> float:
        """Seconds; goes on during sleep where the system can (CLOCK_BOOTTIME)."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as token ids in windows of the model's length; most texts are one window."""

    windows: tuple[tuple[int, ...], ...]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.windows))


class Embedder(Protocol):
    """Texts to vectors, on the calling thread. Safe to call from `info.workers` threads at once."""

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, texts: Sequence[str], lane: Lane) -> list[Encoded]:
        """Tokens, ready to run; the recall lane gets the model's query instruction."""
        ...

    def embed(self, batch: Sequence[Encoded]) -> Matrix:
        """One row an item. A row the model could not make (NaN, infinity, zero) comes back as all NaN.

        The row of an item does not depend on the other items: cosine >= 0.9999 whatever the batch.
        """
        ...

    def release(self) -> int:
        """Gives the system back what runs need, once there was none for `Embedding.idle_release` seconds.

        Returns for how many padded tokens at once there are still buffers: runs within them take no new memory.

        To be called once a second or so by a thread that may wait some milliseconds; safe beside `embed`, and nothing
        at all while there is work or nothing to give back.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """How hard the inference threads may work just now."""

    # Of one ingest batch: its longest text times its count.
    padded_tokens: int
    # Ingest threads that may run at once.
    threads: int
    # Share of the time that an ingest thread may run, 0 to 1.
    duty: float
    # Whether snapshots, rebuilds and the like may start.
    background: bool
    # The reading that decided, in words.
    reason: str
    # Tokens of the longest window that memory allows to be run at all, for either lane; 0: none.
    row_tokens: int = 1 << 20
    level: Pressure = Pressure.NOMINAL


@dataclass(frozen=True, slots=True)
class GovernorState:
    """The budget and what it comes from, for the owner. Temperatures in degrees Celsius, memory in bytes."""

    budget: Budget
    # Wall time of the last change of level, and how many there were since the start.
    since: Micros
    changes: int
    temperature: float | None = None
    limit: float | None = None
    memory_available: int | None = None
    sensors: tuple[SensorFact, ...] = ()


class Governor(Protocol):
    """Decides the budget from what the device says."""

    def budget(self) -> Budget: ...

    def observe(self, padded_tokens: int, seconds: float, cpu_seconds: float) -> None:
        """One batch was run: so long it took, and so long the processor worked on it (a neighbour takes no part)."""
        ...

    def state(self) -> GovernorState: ...


@dataclass(frozen=True, slots=True)
class QueueStatus:
    recalls: int
    ingests: int
    ingest_tokens: int
    drain_seconds: float
    tokens_per_second: float
    # Seconds that the longest present run of the model has taken, once it is said to hang; else 0.
    stalled: float = 0.0


class Vectorizer(Protocol):
    """The batcher as recall and ingest see it: texts go in, futures come out."""

    @property
    def info(self) -> ModelInfo: ...

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        """A future a text, never blocking.

        A future fails with VectorRefused (this text only), DeadlineExceeded, or what its batch failed with.
        Raises Exhausted, with retry_after, when the lane would take longer to drain than its bound.
        """
        ...

    def tokens(self, text: str) -> int:
        """How many tokens the model's tokenizer makes of the text."""
        ...

    def status(self) -> QueueStatus:
        """How busy it is. Recalls that stand still in a model that hangs are failed with Unavailable by then."""
        ...


class Lexicon(Protocol):
    """Words of Chinese and English."""

    @property
    def version(self) -> int:
        """Grows when it makes other terms than before: what was indexed with an older one is then indexed anew."""
        ...

    def index_terms(self, text: str) -> list[str]:
        """Every term under which the text is to be found, in order, repeated as often as it occurs."""
        ...

    def query_terms(self, text: str) -> list[str]:
        """The terms to look for; one that counts double comes twice, the second time behind all others. Always literal:
        there is no query syntax."""
        ...

    def share(self, terms: Sequence[str], text: str) -> float:
        """Of a query's terms, the part that the text has, 0 to 1; a term that counts double counts double."""
        ...


@dataclass(frozen=True, slots=True)
class WordHit:
    rowid: int
    # BM25 as a part of what the whole query says in its space, higher is better, above 0.
    score: float


class MemoryReader(Protocol):
    """The ledger as a recall sees it; safe from any thread, never waits for a writer."""

    def search(self, terms: Sequence[str], limit: int, filter: Filter) -> list[WordHit]:
        """By words, best first."""
        ...

    def select(self, filter: Filter, limit: int) -> RowIds | None:
        """The living memories of a filter, ascending; None when there are more than `limit`."""
        ...

    def any_archived(self) -> bool:
        """Whether anything is archived at all."""
        ...

    def vectors(self, model: str, rowids: RowIds) -> tuple[RowIds, Matrix]:
        """Stored vectors of those that have one, same order."""
        ...

    def fetch(self, rowids: Sequence[int]) -> dict[int, Memory]:
        """The living memories among them."""
        ...

    def around(self, rowids: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The living memories next to each: the pieces beside it, and at the ends of its turn those of the turn before
        and the turn after in its session."""
        ...


class VectorIndex(Protocol):
    """Nearness; safe from any thread."""

    def search(self, vector: Vector, k: int) -> tuple[RowIds, Vector]:
        """At most k nearest, best first, with cosines. Empty for an empty index."""
        ...

    def add(self, rowids: RowIds, vectors: Matrix) -> None:
        """Found by the next search."""
        ...

    def remove(self, rowids: RowIds) -> None:
        """Not found by the next search. Unknown rowids are ignored."""
        ...

    def __len__(self) -> int: ...


class VectorSource(Protocol):
    """Where an index is built from: the ledger's stored vectors of one model."""

    def vector_rowids(self, model: str) -> RowIds:
        """All that should be in the index, ascending."""
        ...

    def iter_vectors(self, model: str, rowids: RowIds, chunk: int) -> Iterator[tuple[RowIds, Matrix]]:
        """In chunks of at most `chunk` rows."""
        ...
