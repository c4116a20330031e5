"""secure_delete, and the copies of rows that it does not know of."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.ledger.scrub import scrub


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.sqlite"


@pytest.fixture(params=[512, 4096, 65536])
def connection(path: Path, request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {request.param}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("CREATE TABLE texts (text TEXT, size INTEGER)")
    connection.execute("CREATE INDEX by_text ON texts (text)")
    yield connection
    connection.close()


def scrubbed(path: Path) -> int:
    file = os.open(path, os.O_RDWR)
    try:
        return scrub(file)
    finally:
        os.close(file)


def churn(connection: sqlite3.Connection, seed: int) -> tuple[set[str], set[str]]:
    """Rows of all lengths come and go, and trees are balanced time and again; what is left, and what is gone."""
    chance = random.Random(seed)
    living: dict[str, None] = {}
    gone = set()
    connection.execute("BEGIN")
    for number in range(3000):
        if chance.random() < (0.6 if number < 1500 else 0.3) or not living:
            text = f"{chance.getrandbits(64):016x}" + "." * int(chance.expovariate(1 / 100))
            living[text] = None
            connection.execute("INSERT INTO texts VALUES (?, ?)", (text, len(text)))
        else:
            text = chance.choice(list(living))
            del living[text]
            gone.add(text)
            connection.execute("DELETE FROM texts WHERE text = ?", (text,))
    connection.execute("COMMIT")
    return set(living), gone


def traces(path: Path, texts: set[str]) -> list[str]:
    raw = path.read_bytes()
    return [text for text in texts if text[:16].encode() in raw]


def test_what_balancing_left_behind_is_gone_and_every_row_is_still_there(
    path: Path, connection: sqlite3.Connection
) -> None:
    for seed in range(3):
        living, gone = churn(connection, seed)

        assert scrubbed(path) > 0
        assert scrubbed(path) == 0

        assert traces(path, gone) == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        again = sqlite3.connect(path)
        assert {row[0] for row in again.execute("SELECT text FROM texts")} == living
        assert all(again.execute("SELECT 1 FROM texts WHERE text = ?", (text,)).fetchone() for text in living)
        again.close()
        connection.execute("DELETE FROM texts")


def test_a_file_that_is_empty_or_cut_short_is_left_alone(tmp_path: Path) -> None:
    for raw in (b"", b"SQLite format 3\0", b"\x0d" * 8192):
        path = tmp_path / "file"
        path.write_bytes(raw)

        assert scrubbed(path) == 0
        assert path.read_bytes() == raw
