"""By words: the rarest terms bring the candidates, all terms score them (BM25)."""

# ruff: noqa: S608  # statements are put together from constants, column names of rows.living() and question marks

from __future__ import annotations

import heapq
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from edge.ledger.rows import literal, living, marks
from edge.ports import WordHit
from edge.types import Filter

# Postings that one search may read, newest first. FTS5 gives one in a third of a microsecond, and takes one to score
# it: its bm25() reads every posting of every term twice, which for common terms is most of the table.
POSTINGS = 500
# The same with a filter, which reads the row of each.
FILTERED = 600
# Candidates that are scored over all terms, unless more are asked for: 15 to 30 microseconds each.
SCORED = 32
# Postings that are counted for a term; the count of a term that has more is estimated.
_COUNTED = 1000
_TERMS = 200
_CACHE = 50_000
# Seconds for which a term's count may be taken as known.
_FRESH = 600.0
# BM25's two constants, as FTS5 and Lucene have them.
_K1, _B = 1.2, 0.75
# What a term of one character counts: each is in a large part of all memories.
_SINGLE = 0.6
# A filter that leaves no more memories than this is answered from those alone.
_FEW = 256
# The keyword index holds the living only. Without a filter this look into a small index is all that is asked of a
# posting: reading its row would cost as much as scoring it.
_UNARCHIVED = (
    "NOT EXISTS (SELECT 1 FROM memories m INDEXED BY memories_archived WHERE m.archived = 1 AND m.rowid = words.rowid)"
)
_ARCHIVED = "SELECT EXISTS (SELECT 1 FROM memories WHERE archived = 1)"
_COUNT = "SELECT count(*), max(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)"


def search(
    connection: sqlite3.Connection,
    known: dict[str, tuple[int, float]],
    terms: Sequence[str],
    limit: int,
    filter: Filter,
) -> list[WordHit]:
    """Living memories of the filter that hold any of the terms, best first. A term given n times counts n times.

    The terms that can say most bring the candidates, newest first, until POSTINGS are read: common terms are in too
    many memories to be read through. The best of the candidates are then scored over all the terms, as their own
    texts have them, so what a common term says is not lost. A filter that leaves few memories is answered exactly.

    Scores are parts of what the whole query says here, so that those of a small space and of a large one compare: a
    term says less among ten memories than among ten thousand.

    `known` remembers how many memories hold a term, and when that was counted: counting costs as much as the search.
    """
    if limit <= 0 or not terms:
        return []
    total, average = _totals(connection)
    weights, whole = _weights(connection, known, terms, total)
    if not weights:
        return []
    passes = "1"
    values: list[Any] = []
    if filter.selective:
        where, values = living(filter)
        few = connection.execute(f"SELECT m.rowid FROM memories m WHERE {where} LIMIT ?", (*values, _FEW + 1))
        candidates = [rowid for (rowid,) in few]
        if len(candidates) <= _FEW:
            return _scored(connection, candidates, weights, whole, average)[:limit]
        passes = f"EXISTS (SELECT 1 FROM memories m WHERE m.rowid = words.rowid AND {where})"
    elif not filter.include_archived and any_archived(connection):
        passes = _UNARCHIVED
    rough: dict[int, float] = {}
    left = FILTERED if filter.selective else POSTINGS
    sql = f"SELECT words.rowid, {passes} FROM words WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?"
    for term, weight in weights.items():
        postings = connection.execute(sql, (*values, literal(term), left)).fetchall()
        for rowid, passed in postings:
            if passed:
                rough[rowid] = rough.get(rowid, 0.0) + weight
        left -= len(postings)
        if left <= 0:
            if not rough:
                # All that was read fails the filter: what passes is looked for behind it, by this term alone.
                rough = _behind(connection, term, passes, values, limit)
            break
    best = heapq.nlargest(max(limit, SCORED), zip(rough.values(), rough, strict=True))
    return _scored(connection, [rowid for _, rowid in best], weights, whole, average)[:limit]


def any_archived(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_ARCHIVED).fetchone()[0])


def _behind(
    connection: sqlite3.Connection, term: str, passes: str, values: Sequence[Any], limit: int
) -> dict[int, float]:
    """The newest memories that hold a term and pass a filter, however many do not; each as good as the next."""
    sql = f"SELECT words.rowid FROM words WHERE words MATCH ? AND {passes} ORDER BY words.rowid DESC LIMIT ?"
    return {rowid: 1.0 for (rowid,) in connection.execute(sql, (literal(term), *values, limit))}


def _weights(
    connection: sqlite3.Connection, known: dict[str, tuple[int, float]], terms: Sequence[str], total: int
) -> tuple[dict[str, float], float]:
    """The terms that are anywhere, each with what it says, the most telling first; and what all terms say, those that
    are nowhere included."""
    weights: dict[str, float] = {}
    whole = 0.0
    now = time.monotonic()
    top = 0
    for term, times in list(Counter(terms).items())[:_TERMS]:
        count, counted_at = known.get(term, (0, 0.0))
        # A term that was nowhere is looked for each time: it costs little, and may be somewhere by now.
        if not count or now - counted_at > _FRESH:
            count, last = connection.execute(_COUNT, (literal(term), _COUNTED)).fetchone()
            if count == _COUNTED:
                # So many among the memories up to this one: as many in proportion among all.
                top = top or connection.execute("SELECT max(rowid) FROM memories").fetchone()[0] or last
                count = max(count, count * top // last)
            if len(known) >= _CACHE:
                known.clear()
            known[term] = count, now
        count = min(count, total)
        rarity = math.log(1 + (total - count + 0.5) / (count + 0.5))
        weight = rarity * times * (_SINGLE if len(term) == 1 else 1.0)
        whole += weight
        if count:
            weights[term] = weight
    return dict(sorted(weights.items(), key=lambda item: (-item[1], -len(item[0]), item[0]))), whole


def _scored(
    connection: sqlite3.Connection, rowids: Sequence[int], weights: Mapping[str, float], whole: float, average: float
) -> list[WordHit]:
    """Those that hold any of the terms, by BM25 (Robertson and Zaragoza, 2009, with Lucene's idf), best first; each as
    a part of `whole`."""
    hits = []
    for start in range(0, len(rowids), 500):
        part = rowids[start : start + 500]
        rows = connection.execute(f"SELECT id, c0 FROM words_content WHERE id IN ({marks(len(part))})", part)
        for rowid, text in rows:
            held = text.split(" ")
            length = _K1 * (1 - _B + _B * len(held) / average)
            score = 0.0
            holds = set(held).__contains__
            for term, weight in weights.items():
                if holds(term):
                    count = held.count(term)
                    score += weight * count * (_K1 + 1) / (count + length)
            if score > 0:
                hits.append(WordHit(rowid, score / whole))
    hits.sort(key=lambda hit: (-hit.score, -hit.rowid))
    return hits


def _totals(connection: sqlite3.Connection) -> tuple[int, float]:
    """How many memories the keyword index holds, and how many terms each on average.

    FTS5 keeps both sums in one record, its "averages record" (fts5_index.c), as SQLite's varints; bm25() itself
    reads it there. Counting would read the whole table.
    """
    row = connection.execute("SELECT block FROM words_data WHERE id = 1").fetchone()
    numbers = [0]
    for byte in row[0] if row else b"":
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(0)
    total, tokens = numbers[0], numbers[1] if len(numbers) > 1 else 0
    return max(total, 1), max(tokens / max(total, 1), 1.0)
