"""One writer, many readers, and a file that may be thrown away."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.errors import DataLoss, DiskFull, ReadOnly, Unavailable
from edge.ledger.database import Database
from edge.ledger.migrations import MIGRATIONS, Migration, statements

NOTES = (Migration("1", "CREATE TABLE notes (body TEXT);"),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a b?.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path, NOTES)
    yield database
    database.close()


def add(database: Database, body: str) -> None:
    database.submit(lambda connection: connection.execute("INSERT INTO notes VALUES (?)", (body,))).result()


def bodies(database: Database) -> list[str]:
    with database.reader() as connection:
        return [row[0] for row in connection.execute("SELECT body FROM notes ORDER BY rowid")]


def test_a_job_is_one_transaction_and_its_failure_is_its_own(database: Database) -> None:
    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES ('half')")
        raise LookupError

    failed = database.submit(broken)
    add(database, "whole")
    with pytest.raises(LookupError):
        failed.result()
    assert bodies(database) == ["whole"]


def test_a_reader_sees_the_last_commit_and_waits_for_no_writer(database: Database) -> None:
    add(database, "before")
    inside, go = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES ('during')")
        inside.set()
        go.wait()

    future = database.submit(slow)
    inside.wait()
    assert bodies(database) == ["before"]
    go.set()
    future.result()
    assert bodies(database) == ["before", "during"]


def test_urgent_jobs_go_first_and_cancelled_ones_not_at_all(database: Database) -> None:
    go = threading.Event()
    order: list[str] = []
    database.submit(lambda connection: go.wait())
    late = database.submit(lambda connection: order.append("late"))
    dropped = database.submit(lambda connection: order.append("dropped"))
    first = database.submit(lambda connection: order.append("first"), urgent=True)
    assert dropped.cancel()
    go.set()
    late.result()
    first.result()
    assert order == ["first", "late"]


def test_readers_cannot_write(database: Database) -> None:
    with pytest.raises(ReadOnly), database.reader() as connection:
        connection.execute("INSERT INTO notes VALUES ('no')")


def test_closing_drains_empties_the_write_ahead_log_and_then_refuses(path: Path, database: Database) -> None:
    for i in range(20):
        database.submit(lambda connection, i=i: connection.execute("INSERT INTO notes VALUES (?)", (str(i),)))
    database.close()
    assert not path.with_name(path.name + "-wal").exists()
    with pytest.raises(Unavailable):
        add(database, "late")
    with pytest.raises(Unavailable), database.reader():
        pass
    database.close()
    again = Database(path, NOTES)
    assert len(bodies(again)) == 20
    again.close()


def test_a_purge_empties_the_write_ahead_log_or_says_that_a_reader_keeps_it(path: Path, database: Database) -> None:
    add(database, "x")
    wal = path.with_name(path.name + "-wal")
    with database.reader() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM notes").fetchall()
        add(database, "y")
        assert not database.purge(timeout=0)
        connection.execute("COMMIT")
    assert database.purge() and wal.stat().st_size == 0


def test_a_full_disk_fails_the_job_and_after_room_is_made_the_next_works(database: Database) -> None:
    add(database, "before")

    def limit(connection: sqlite3.Connection, pages: int) -> int:
        return int(connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0])

    database.submit(lambda connection: limit(connection, 1), transaction=False).result()
    with pytest.raises(DiskFull):
        add(database, "x" * 100_000)
    add(database, "small")
    database.submit(lambda connection: limit(connection, 1_000_000), transaction=False).result()
    add(database, "y" * 100_000)
    assert [body[0] for body in bodies(database)] == ["b", "s", "y"]


def test_it_is_private_to_its_owner(path: Path, database: Database) -> None:
    add(database, "x")
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "content", [b"not a database, and long enough to be seen as such" * 100, b"SQLite format 3\0" + b"\xff" * 8192]
)
def test_a_foreign_file_is_named_and_can_be_discarded(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DataLoss, match=r"a b\?\.sqlite"):
        Database(path, NOTES)
    Database.discard(path)
    assert not list(path.parent.iterdir())
    Database(path, NOTES).close()


def test_an_empty_file_is_a_new_database_even_beside_an_old_write_ahead_log(path: Path) -> None:
    path.write_bytes(b"")
    path.with_name(path.name + "-wal").write_bytes(b"\xff" * 5000)
    database = Database(path, NOTES)
    add(database, "x")
    database.close()


def test_another_programmes_tables_are_not_touched(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(DataLoss, match="not those of a ledger"):
        Database(path, NOTES)


def test_migrations_grow_and_are_never_edited(path: Path, database: Database) -> None:
    database.close()
    more = (*NOTES, Migration("2", "ALTER TABLE notes ADD COLUMN title TEXT;"))
    Database(path, more).close()
    Database(path, more).close()
    for wrong in (NOTES, (Migration("1", "CREATE TABLE notes (body BLOB);"), more[1])):
        with pytest.raises(DataLoss, match="migrations"):
            Database(path, wrong)


def test_a_migration_that_fails_leaves_nothing_of_itself(path: Path, database: Database) -> None:
    database.close()
    with pytest.raises(Unavailable):
        Database(path, (*NOTES, Migration("2", "CREATE TABLE fine (x); CREATE TABLE notes (x);")))
    again = Database(path, NOTES)
    with again.reader() as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'fine'").fetchall() == []
    again.close()


def test_reading_only_needs_the_file_and_changes_nothing(path: Path, database: Database) -> None:
    add(database, "x")
    database.close()
    before = path.read_bytes()
    reading = Database(path, NOTES, read_only=True)
    assert bodies(reading) == ["x"] and reading.integrity() == []
    with pytest.raises(ReadOnly):
        add(reading, "y")
    reading.close()
    assert path.read_bytes() == before
    with pytest.raises(DataLoss, match="does not exist"):
        Database(path.with_name("none"), NOTES, read_only=True)


def test_integrity_names_what_is_wrong(path: Path, database: Database) -> None:
    for i in range(200):
        add(database, f"{i}" * 100)
    database.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 3 + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    damaged = Database(path, NOTES)
    assert damaged.integrity()
    with pytest.raises(DataLoss):
        damaged.submit(lambda connection: connection.execute("SELECT max(length(body)) FROM notes").fetchall()).result()
    damaged.close()


def test_statements_end_where_sqlite_says_so() -> None:
    script = "-- a; b\nCREATE TABLE a (x DEFAULT ';');\nCREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END;\n"
    assert len(list(statements(script))) == 2
    with pytest.raises(ValueError, match="inside"):
        list(statements("CREATE TABLE a (x DEFAULT ';"))


def test_the_ledgers_own_migrations_run(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.sqlite", MIGRATIONS)
    assert database.integrity() == []
    database.close()
