"""Looking for what should be gone: a text or a vector in any file below a directory, however it may be written."""

from __future__ import annotations

import base64
import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from edge.index.vectors import clean_rows
from edge.types import Vector

# Of a vector: short enough to be on one page of SQLite (a blob of 1,024 bytes may go over two), long enough that
# nothing else has the same bytes.
_STRETCH = 160


def written(text: str) -> dict[str, bytes]:
    """The text as bytes: UTF-8, UTF-16 either way, as a JSON escape, and inside base64 at each of its alignments."""
    raw = text.encode()
    ways = {
        "UTF-8": raw,
        "UTF-16LE": text.encode("utf-16-le"),
        "UTF-16BE": text.encode("utf-16-be"),
        "JSON": json.dumps(text)[1:-1].encode(),
    }
    for shift in range(3):
        # Three bytes are four letters; letters that hold a neighbour's bits too are left out.
        whole = base64.b64encode(b"\0" * shift + raw)
        ways[f"base64+{shift}"] = whole[-(-8 * shift // 6) : (shift + len(raw)) * 8 // 6]
    return ways


def word(term: str) -> dict[str, bytes]:
    """A term of the keyword index. FTS5 leaves out what a term shares with the one before it, so the end is enough."""
    return {f"term {way}": raw for way, raw in written(term[2:]).items() if way.startswith("UTF")}


def stretches(vector: Vector) -> dict[str, bytes]:
    """A vector as the database has it, as the index has it, and as the model gave it: beginning, middle and end."""
    half = vector.astype("<f2")
    _, (indexed,) = clean_rows(np.array([1]), half[np.newaxis].astype(np.float32), len(vector))
    ways: dict[str, bytes] = {}
    for name, row in (("float16", half), ("float32", indexed), ("float32 unrounded", vector.astype("<f4"))):
        for place in (0, len(row) // 2, len(row) - _STRETCH):
            part = row[place : place + _STRETCH]
            assert np.count_nonzero(part) > 8, "too even to be told from other bytes"
            ways[f"{name} at {place}"] = part.tobytes()
    return ways


def files(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file with its bytes; one that goes while it is read, as a renamed one does, is left out."""
    for path in sorted(directory.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def found(directory: Path, needles: Mapping[str, bytes]) -> list[str]:
    """Which needle is in which file: "<file>: <needle>"."""
    return [
        f"{path.relative_to(directory)}: {name}"
        for path, raw in files(directory)
        for name, needle in needles.items()
        if needle in raw
    ]


def terms(database: Path) -> set[str]:
    """Every term of the keyword index."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
        try:
            return {row[0] for row in connection.execute("SELECT term FROM vocabulary")}
        finally:
            connection.execute("DROP TABLE vocabulary")
