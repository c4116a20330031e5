"""By words: BM25 over as many of the rarest terms as can be read in a few milliseconds."""

# ruff: noqa: S608  # statements are put together from constants, column names of rows.living() and question marks

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from edge.ledger.rows import literal, living
from edge.ports import WordHit
from edge.types import Filter

# Postings that one search may read: FTS5 takes some 2 microseconds to find and score one (measured at 30,000 rows),
# on a core that the query's vector is being made on at the same time. At 10,000 memories a search of 17 terms costs
# 1.5 ms of it; with 1,500 postings it is 2.4, for two more terms, each in over 6 % of all memories.
POSTINGS = 600
_TERMS = 200
_CACHE = 50_000
# Seconds for which a term's count may be taken as known; it only says which terms are the rarer ones.
_FRESH = 600.0
# The keyword index holds the living only. Without a filter this look into a small index is all that is asked of a
# hit: reading its row would cost as much as scoring it.
_UNARCHIVED = (
    "NOT EXISTS (SELECT 1 FROM memories m INDEXED BY memories_archived WHERE m.archived = 1 AND m.rowid = words.rowid)"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"


def search(
    connection: sqlite3.Connection,
    known: dict[str, tuple[int, float]],
    terms: Sequence[str],
    limit: int,
    filter: Filter,
) -> list[WordHit]:
    """Living memories of the filter that hold any of the terms, best first.

    The most frequent terms are left out when the postings of all would pass POSTINGS: they say least (their BM25
    weight is least) and cost most. Where even the rarest is in more memories than that, the newest of them are given,
    with scores that fall with age: among so many holders of one common term BM25 says next to nothing.

    `known` remembers the counts of terms, and when they were taken: counting costs as much as the search.
    """
    if limit <= 0:
        return []
    counted = []
    now = time.monotonic()
    for term in dict.fromkeys(terms[:_TERMS]):
        count, counted_at = known.get(term, (0, 0.0))
        # A term that was nowhere is looked for each time: it costs little, and may be somewhere by now.
        if not count or now - counted_at > _FRESH:
            count = connection.execute(_COUNT, (literal(term), POSTINGS + 1)).fetchone()[0]
            if len(known) >= _CACHE:
                known.clear()
            known[term] = count, now
        if count:
            # Of two that pass the bound, the longer is likely the rarer.
            counted.append((count, -len(term), term))
    counted.sort()
    table, where, values = _source(filter)
    kept: list[str] = []
    total = 0
    for count, _, term in counted:
        total += count
        if total > POSTINGS:
            break
        kept.append(literal(term))
    if kept:
        rows = connection.execute(
            f"SELECT words.rowid, -bm25(words) AS score FROM {table} "
            f"WHERE words MATCH ? AND {where} ORDER BY score DESC, words.rowid DESC LIMIT ?",
            (" OR ".join(kept), *values, limit),
        )
        return [WordHit(rowid, score) for rowid, score in rows]
    if not counted:
        return []
    rows = connection.execute(
        f"SELECT words.rowid FROM {table} WHERE words MATCH ? AND {where} ORDER BY words.rowid DESC LIMIT ?",
        (literal(counted[0][2]), *values, limit),
    )
    return [WordHit(rowid, 1e-6 / place) for place, (rowid,) in enumerate(rows, 1)]


def _source(filter: Filter) -> tuple[str, str, list[Any]]:
    """The table to search in, the condition on it, and the condition's parameters."""
    if filter.selective:
        where, values = living(filter)
        return "words CROSS JOIN memories m ON m.rowid = words.rowid", where, values
    return "words", "1" if filter.include_archived else _UNARCHIVED, []
