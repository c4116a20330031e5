"""The database's shape, as a list that only grows: what was once applied is never edited, only followed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edge.errors import DataLoss


@dataclass(frozen=True, slots=True)
class Migration:
    name: str
    sql: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


_LEDGER = Migration(
    "0001_ledger",
    """
-- `applied` is the number of the last event of the log that these tables hold; `generation` changes whenever they
-- are made anew, and with them every rowid.
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
INSERT INTO meta VALUES ('applied', 0), ('generation', lower(hex(randomblob(16))));

-- Every version of every turn that is not forgotten; superseded_by is the number of the version that took its place.
CREATE TABLE turns (
    n INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    superseded_by INTEGER
);
CREATE INDEX turns_fingerprint ON turns (fingerprint);
CREATE INDEX turns_name ON turns (source, session, seq);

-- Rowids are the labels of the index: AUTOINCREMENT never gives one twice. Small columns come first, so that a
-- filter reads no overflow pages.
CREATE TABLE memories (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    turn_n INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    pieces INTEGER NOT NULL,
    state INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    occurred_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    weight REAL NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    accessed_at INTEGER NOT NULL DEFAULT 0,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    role TEXT NOT NULL,
    tags TEXT NOT NULL,
    text TEXT NOT NULL,
    attributes BLOB NOT NULL
);
CREATE INDEX memories_turn ON memories (turn_n);
CREATE INDEX memories_time ON memories (occurred_at);
CREATE INDEX memories_session ON memories (session);
CREATE INDEX memories_source ON memories (source);
CREATE INDEX memories_kind ON memories (kind);
CREATE INDEX memories_state ON memories (state);
CREATE INDEX memories_archived ON memories (archived) WHERE archived = 1;
CREATE INDEX memories_accessed ON memories (accessed_at) WHERE accessed_at > 0;

CREATE TABLE tags (tag TEXT NOT NULL, memory INTEGER NOT NULL, PRIMARY KEY (tag, memory)) WITHOUT ROWID;

-- float16, little-endian. UNIQUE is the covering index for "which memories have a vector of this model".
CREATE TABLE vectors (
    model TEXT NOT NULL,
    memory INTEGER NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model, memory)
);
-- Texts of which the model can make no vector, so that they are not tried for ever.
CREATE TABLE refused (
    model TEXT NOT NULL,
    memory INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (model, memory)
) WITHOUT ROWID;

-- The lexicon's terms, joined by spaces: whatever is not a space belongs to its term, and unicode61 only folds case.
CREATE VIRTUAL TABLE words USING fts5 (
    terms,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

-- What was forgotten: the mark knows it when it comes again; turn is the number of its line in the log.
CREATE TABLE erased (mark TEXT PRIMARY KEY, turn INTEGER NOT NULL, forget TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX erased_forget ON erased (forget);
-- Every forget; done once nothing of its turns is left in log and database.
CREATE TABLE forgets (
    id TEXT PRIMARY KEY,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    done INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX forgets_open ON forgets (id) WHERE done = 0;
""",
)

_REVISIONS = Migration(
    "0002_revisions",
    """
ALTER TABLE memories ADD COLUMN replaced_by TEXT;
ALTER TABLE memories ADD COLUMN valid_from INTEGER;
ALTER TABLE memories ADD COLUMN valid_until INTEGER;
CREATE INDEX memories_replaced ON memories (replaced_by) WHERE replaced_by IS NOT NULL;
ALTER TABLE turns ADD COLUMN by TEXT NOT NULL DEFAULT '';

-- What was changed about memories: `changes` as in the log, ids and numbers only. undone_by is the revision that took
-- it back, if that is so at present.
CREATE TABLE revisions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    why TEXT NOT NULL,
    by TEXT NOT NULL,
    undoes TEXT NOT NULL,
    undone_by TEXT NOT NULL,
    changes TEXT NOT NULL
);
CREATE INDEX revisions_hidden ON revisions (at) WHERE why = 'forgotten' AND undone_by = '';
-- Which revisions speak of a memory that is not erased.
CREATE TABLE revised (memory TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (memory, n)) WITHOUT ROWID;
""",
)

_TALLIES = Migration(
    "0003_tallies",
    """
-- How much came and was not kept: turns by rule (noise/<rule>), secrets by class (secret/<class>).
CREATE TABLE tallies (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
""",
)

_USED = Migration(
    "0004_used",
    """
-- When a memory was last used, for what looks for those that nobody used for long (ledger/unused.py).
CREATE INDEX memories_used ON memories (max(occurred_at, created_at, accessed_at));
-- What is neither archived nor unfound (rows.UNFOUND), however much is.
CREATE INDEX memories_at_hand ON memories (occurred_at) WHERE archived = 0 AND state NOT IN (4, 6, 7);
""",
)

_MERGING = Migration(
    "0005_merging",
    """
-- The state in which the rules looked at a memory last, to merge or promote it; 0 for never. See ledger/merges.py.
ALTER TABLE memories ADD COLUMN looked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_unlooked ON memories (rowid) WHERE state IN (2, 3) AND archived = 0 AND looked <> state;
-- What came back may meet what was said meanwhile; a candidate that was recalled may be known by now.
CREATE TRIGGER memories_look_again AFTER UPDATE OF state, archived, access_count ON memories
WHEN NEW.looked <> 0 AND NEW.state IN (2, 3) AND (
    OLD.state NOT IN (2, 3) OR NEW.archived < OLD.archived
    OR (NEW.state = 2 AND NEW.access_count > OLD.access_count)
)
BEGIN
    UPDATE memories SET looked = 0 WHERE rowid = NEW.rowid;
END;
CREATE INDEX revisions_why ON revisions (why) WHERE undone_by = '';
""",
)

_COLD = Migration(
    "0006_cold",
    """
-- What became cold and still has its words here: looked for once a minute, however much is cold. See ledger/cold.py.
CREATE INDEX memories_unstripped ON memories (turn_n) WHERE state = 7 AND text <> '';
""",
)

MIGRATIONS: tuple[Migration, ...] = (_LEDGER, _REVISIONS, _TALLIES, _USED, _MERGING, _COLD)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Brings the database to the end of the list, a transaction a migration.

    Raises DataLoss when what it has had is not the beginning of the list: it was made by another programme, or by a
    later version of this one.
    """
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and "migrations" not in names:
        raise DataLoss("its tables are not those of a ledger")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations (place INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL)"
    )
    check(connection, migrations)
    done = connection.execute("SELECT count(*) FROM migrations").fetchone()[0]
    for place, migration in enumerate(migrations[done:], done + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(migration.sql):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (place, migration.name, migration.digest))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def check(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Raises DataLoss unless the migrations that the database has had begin the list."""
    had = connection.execute("SELECT name, sha256 FROM migrations ORDER BY place").fetchall()
    expected = [(migration.name, migration.digest) for migration in migrations]
    if had != expected[: len(had)]:
        raise DataLoss("its migrations are not those of this version")


def statements(sql: str) -> Iterator[str]:
    """The statements of a script: a semicolon inside a string, a comment or a trigger ends none."""
    statement = ""
    for part in sql.split(";")[:-1]:
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement:
        raise ValueError("the script ends inside a statement")
