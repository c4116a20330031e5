"""Between the tables and the nouns: rows to memories, filters to SQL, terms to FTS5, vectors to bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge.types import Filter, Matrix, Memory, MemoryState

COLUMNS = (
    "m.rowid, m.id, m.kind, m.state, m.text, m.source, m.session, m.seq, m.role, m.occurred_at, m.created_at, "
    "m.weight, m.tags, m.access_count, m.accessed_at, m.archived, m.piece, m.pieces, m.attributes, "
    "m.replaced_by, m.valid_from, m.valid_until"
)
SUPERSEDED = int(MemoryState.SUPERSEDED)
REJECTED = int(MemoryState.REJECTED)
FORGOTTEN = int(MemoryState.FORGOTTEN)
COLD = int(MemoryState.COLD)
# States, as SQL has them, of what neither words nor vectors find any more; the index memories_at_hand has them too.
UNFOUND = f"({SUPERSEDED}, {FORGOTTEN}, {COLD})"
UNFOUND_STATES = (MemoryState.SUPERSEDED, MemoryState.FORGOTTEN, MemoryState.COLD)
# And of those what no answer shows.
UNSHOWN = f"({FORGOTTEN}, {COLD})"
UNSHOWN_STATES = (MemoryState.FORGOTTEN, MemoryState.COLD)
# What unicode61 takes for the end of a token whatever its categories, what FTS5's query parser takes for the end of
# the query (NUL), and what UTF-8 cannot hold. (Tried with every code point on SQLite 3.40.)
_BREAKS = re.compile("[\\0\\s\u180e\ufffe\uffff\ud800-\udfff]")
_STATES = {int(state): state for state in MemoryState}


def memory(row: Sequence[Any]) -> Memory:
    """Of a row of COLUMNS."""
    # fmt: off  # as COLUMNS has them; two halves would be two tuples more for each of some hundred rows of a recall
    (
        rowid,
        id,
        kind,
        state,
        text,
        source,
        session,
        seq,
        role,
        occurred_at,
        created_at,
        weight,
        tags,
        access_count,
        accessed_at,
        archived,
        piece,
        pieces,
        attributes,
        replaced_by,
        valid_from,
        valid_until,
    ) = row
    # fmt: on
    return Memory(
        rowid,
        id,
        kind,
        _STATES[state],
        text,
        source,
        session,
        seq,
        role,
        occurred_at,
        created_at,
        weight,
        tuple(json.loads(tags)) if tags != "[]" else (),
        access_count,
        accessed_at,
        bool(archived),
        piece,
        pieces,
        attributes,
        replaced_by=replaced_by,
        valid_from=valid_from,
        valid_until=valid_until,
    )


def living(filter: Filter) -> tuple[str, list[Any]]:
    """The condition on `memories m` that holds for the living memories of a filter, and its parameters.

    A filter that names SUPERSEDED or REJECTED is given those too.
    """
    clauses = [f"m.state NOT IN {UNFOUND}"]
    values: list[Any] = []
    if filter.states:
        clauses = [f"m.state IN ({marks(len(filter.states))}) AND m.state NOT IN {UNSHOWN}"]
        values.extend(map(int, filter.states))
    if not filter.include_archived:
        named = MemoryState.REJECTED in filter.states
        clauses.append(f"(m.archived = 0 OR m.state = {REJECTED})" if named else "m.archived = 0")
    narrowed, more = narrowing(filter)
    return " AND ".join(clauses + narrowed), values + more


def narrowing(filter: Filter) -> tuple[list[str], list[Any]]:
    """The conditions of a filter that do not speak of states, and their parameters."""
    clauses: list[str] = []
    values: list[Any] = []
    if filter.since is not None:
        clauses.append("m.occurred_at >= ?")
        values.append(filter.since)
    if filter.until is not None:
        clauses.append("m.occurred_at < ?")
        values.append(filter.until)
    for column, names in (("kind", filter.kinds), ("source", filter.sources), ("session", filter.sessions)):
        if names:
            clauses.append(f"m.{column} IN ({marks(len(names))})")
            values.extend(names)
    for tag in filter.tags:
        clauses.append("m.rowid IN (SELECT memory FROM tags WHERE tag = ?)")
        values.append(tag)
    return clauses, values


def marks(count: int) -> str:
    return ",".join("?" * count)


def clean(terms: Iterable[str]) -> list[str]:
    """Terms that FTS5 keeps whole, the same way when they are stored and when they are looked for."""
    return [term for term in (_BREAKS.sub("", term) for term in terms) if term]


def literal(term: str) -> str:
    """The term as FTS5 syntax that means nothing but itself."""
    return '"' + term.replace('"', '""') + '"'


def pack(vectors: Matrix) -> NDArray[np.float16]:
    """As stored: float16, little-endian."""
    return vectors.astype("<f2")


def unpack(stored: bytes, count: int) -> Matrix:
    """Shape (count, dimension), float32, of so many vectors one behind the other, as stored."""
    return np.frombuffer(stored, dtype="<f2").reshape(count, -1).astype(np.float32)


def stored(vectors: Matrix) -> Matrix:
    """The vectors as they come back from the database, rounded to float16: what an index must be given, so that a
    rebuilt one gives the same answers."""
    return pack(vectors).astype(np.float32)
