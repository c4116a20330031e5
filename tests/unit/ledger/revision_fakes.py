"""What the tests of revisions share: plans as services make them, and looks at all that a ledger has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from ledger_fakes import START, Ledger, turn

from edge.errors import FailedPrecondition
from edge.ledger.forgetting import Forgetting
from edge.ledger.queries import Queries
from edge.ledger.revising import Revisions
from edge.ledger.revisions import (
    Change,
    change,
)
from edge.types import Filter, MemoryState

CANDIDATE = MemoryState.CANDIDATE
HOUR = 3_600_000_000
EVERYTHING = Filter()
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(MemoryState),
        "weight": st.floats(0, 10),
        "archived": st.booleans(),
        "replaced_by": st.none() | st.text(min_size=1, max_size=9),
        "valid_from": st.none() | st.integers(0, 2**50),
        "valid_until": st.none() | st.integers(0, 2**50),
        "access_count": st.integers(0, 10**6),
        "accessed_at": st.integers(0, 2**50),
    },
).filter(bool)


def revisions(ledger: Ledger) -> Revisions:
    return Revisions(ledger.database, ledger.log, ledger.queries, lambda: ledger.memories.apply([]).result())


def forgetting(ledger: Ledger) -> Forgetting:
    drop = lambda rowids: 0  # noqa: E731  # there is no index here
    return Forgetting(ledger.log, ledger.database, ledger.memories, ledger.queries, revisions(ledger), drop)


def say(ledger: Ledger, *texts: str, state: MemoryState = CANDIDATE, **parts: Any) -> list[str]:
    first = ledger.queries.counts().turns
    events = ledger.say(*(turn(text, first + at, state=state, **parts) for at, text in enumerate(texts)))
    return [event.pieces[0].id for event in events]


def changed(*ids: str, **after: Any) -> Callable[[Queries], Sequence[Change]]:
    return lambda queries: [change(memory, **after) for memory in queries.by_ids(ids).values()]


def confirm(id: str) -> Callable[[Queries], Sequence[Change]]:
    """As a service does it: only what is a candidate."""

    def plan(queries: Queries) -> Sequence[Change]:
        memory = queries.by_ids([id])[id]
        if memory.state is not CANDIDATE:
            raise FailedPrecondition(f"it is {memory.state.name}")
        return [change(memory, state=MemoryState.CONFIRMED)]

    return plan


def merge(older: str, newer: str) -> Callable[[Queries], Sequence[Change]]:
    def plan(queries: Queries) -> Sequence[Change]:
        rows = queries.by_ids([older, newer])
        return [
            change(rows[older], state=MemoryState.SUPERSEDED, replaced_by=newer, valid_until=START),
            change(rows[newer], weight=5.0, access_count=rows[newer].access_count + rows[older].access_count),
        ]

    return plan


def rows(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Every row as it is, with what finds it; rowids are not what a rebuild promises."""
    with ledger.database.reader() as connection:
        connection.row_factory = None
        names = [row[1] for row in connection.execute("PRAGMA table_info(memories)")]
        found = {}
        for row in connection.execute("SELECT * FROM memories").fetchall():
            memory = dict(zip(names, row, strict=True))
            rowid = memory.pop("rowid")
            words = connection.execute("SELECT terms FROM words WHERE rowid = ?", (rowid,)).fetchone()
            tags = connection.execute("SELECT tag FROM tags WHERE memory = ? ORDER BY tag", (rowid,)).fetchall()
            found[memory["id"]] = {**memory, "words": words, "found by tags": tags}
        return found


def deeds(ledger: Ledger) -> list[Any]:
    with ledger.database.reader() as connection:
        return (
            connection.execute("SELECT * FROM revisions ORDER BY n").fetchall()
            + connection.execute("SELECT * FROM revised ORDER BY memory, n").fetchall()
        )


def rebuilt(ledger: Ledger) -> Ledger:
    ledger.close()
    for path in ledger.directory.glob("memory.sqlite*"):
        path.unlink()
    return Ledger(ledger.directory)


def listed(ledger: Ledger, filter: Filter = EVERYTHING) -> list[str]:
    return [memory.id for memory in ledger.queries.list_page(filter, 100)[0]]


def found(ledger: Ledger, word: str) -> list[str]:
    hits = ledger.queries.search(list(word), 100, EVERYTHING)
    memories = ledger.queries.fetch([hit.rowid for hit in hits])
    return [memory.id for memory in memories.values()]
