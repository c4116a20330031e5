"""The last turns of a session, word for word: which they are by the tables, what they say by the log."""

from __future__ import annotations

import heapq
import itertools
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from edge.ledger.database import Database
from edge.ledger.events import LineError, TurnSaid, decode, number
from edge.ledger.rows import UNSHOWN
from edge.ledger.segments import Segment, first_number, list_segments
from edge.types import Turn

# Where halving ends and reading line by line begins.
_NEAR = 64 * 1024
# Of those that are hidden until they are erased, or cold, nothing is said any more.
_LAST = (
    "SELECT occurred_at, n FROM turns WHERE source = ? AND session = ? AND superseded_by IS NULL "  # noqa: S608  # a constant number
    f"AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.turn_n = turns.n AND m.state IN {UNSHOWN}) "
    "ORDER BY seq DESC LIMIT ?"
)


def last_turns(database: Database, log: Path, *, source: str, session: str, most: int) -> Iterator[Turn]:
    """At most `most` turns of a session, newest first; `source` "" for those of every source.

    Of one source in the order of seq, of several in the order of occurred_at. Pieces leave out what cannot be seen
    between them, so each text is read from the log, when it is asked for. Left out are turns that were superseded or
    forgotten, and one whose line is damaged.
    """
    with database.reader() as connection:
        sources = [source] if source else _sources(connection)
        found = [_numbers(connection, name, session, most) for name in sources]
    # Each list keeps its own order, whatever a source's clock did.
    merged = heapq.merge(*found, key=lambda row: row[0], reverse=True)
    wanted = [n for _, n in itertools.islice(merged, most)]
    segments = list_segments(log) if wanted else []
    firsts = [first_number(segment) or 0 for segment in segments]
    for n in wanted:
        turn = _read(segments, firsts, n)
        if turn is not None:
            yield turn


def _sources(connection: sqlite3.Connection) -> list[str]:
    """All there are, by one look into the index for each."""
    found: list[str] = []
    name = ""
    while True:
        name = connection.execute("SELECT min(source) FROM turns WHERE source > ?", (name,)).fetchone()[0]
        if name is None:
            return found
        found.append(name)


def _numbers(connection: sqlite3.Connection, source: str, session: str, most: int) -> list[tuple[int, int]]:
    """(occurred_at, number in the log), the highest seq first."""
    return connection.execute(_LAST, (source, session, most)).fetchall()


def _read(segments: list[Segment], firsts: list[int], n: int) -> Turn | None:
    """The turn of this number; None when its line is erased, damaged or not there."""
    # The last segment that begins at or before it; one with a damaged beginning, 0 here, may hold it as well.
    place = max((at for at, first in enumerate(firsts) if 0 < first <= n), default=0)
    while place < len(segments) and not firsts[place] > n:
        try:
            with segments[place].path.open("rb") as file:
                line = _line(file, n)
        except FileNotFoundError:
            line = None
        if line is not None:
            try:
                event = decode(line)
            except LineError:
                return None
            return event.turn if isinstance(event, TurnSaid) and event.n == n else None
        place += 1
    return None


def _line(file: BinaryIO, n: int) -> bytes | None:
    """The line that begins with this number, by halving: the numbers of a segment only grow."""
    low, high = 0, file.seek(0, os.SEEK_END)
    end = high
    while high - low > _NEAR:
        middle = (low + high) // 2
        # To the first line that begins here or later.
        file.seek(middle - 1)
        file.readline()
        start = file.tell()
        found = number(file.readline()) if start < high else None
        if found is not None and found <= n:
            low = start
        else:
            high = middle
    # A damaged number sends the halving astray; then every line is looked at.
    return _scan(file, n, low, high) or _scan(file, n, 0, end)


def _scan(file: BinaryIO, n: int, start: int, end: int) -> bytes | None:
    """The line of this number among those that begin in [start, end)."""
    file.seek(start)
    while start < end and (line := file.readline()):
        if number(line) == n:
            return line
        start += len(line)
    return None
