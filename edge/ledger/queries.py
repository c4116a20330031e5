"""Reading the view: by words, by filter, by id, by model; from any thread, never waiting for a writer."""

# ruff: noqa: S608  # statements are put together from constants, column names of rows.living() and question marks

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edge.ledger import writes
from edge.ledger.database import Database
from edge.ledger.forgets import Forgettable, forgettable, of_turns, parts, unfinished
from edge.ledger.neighbours import around
from edge.ledger.rows import (
    COLD,
    COLUMNS,
    FORGOTTEN,
    REJECTED,
    UNFOUND,
    UNSHOWN_STATES,
    clean,
    living,
    marks,
    memory,
    unpack,
)
from edge.ledger.search import any_archived, search
from edge.ports import WordHit
from edge.types import Filter, Matrix, Memory, Micros, RowIds

_ALIVE = f"m.state NOT IN {UNFOUND}"
_PENDING = (
    f"{_ALIVE} AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.memory = m.rowid) "
    "AND NOT EXISTS (SELECT 1 FROM refused r WHERE r.model = ? AND r.memory = m.rowid)"
)

# Vectors that one statement reads: two megabytes of the default model's.
_VECTORS = 2000


@dataclass(frozen=True, slots=True)
class Counts:
    """What the tables hold now. `superseded` memories, with those that are hidden until they are erased or `cold`, are
    not among the `memories`; archived ones are."""

    turns: int
    memories: int
    superseded: int
    archived: int
    cold: int
    vectors: dict[str, int]
    refused: dict[str, int]
    erased: int

    def without(self, model: str) -> int:
        """Memories that have neither a vector of this model nor its refusal."""
        return max(0, self.memories - self.vectors.get(model, 0) - self.refused.get(model, 0))


class Queries:
    """Implements ports.MemoryReader and ports.VectorSource over the ledger's database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: dict[str, tuple[int, float]] = {}

    def generation(self) -> str:
        """Changes when the tables were made anew: rowids of another generation mean nothing here."""
        with self._database.reader() as connection:
            return str(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])

    def applied(self) -> int:
        with self._database.reader() as connection:
            return int(connection.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()[0])

    def routing(self) -> str:
        """How texts were given to models last, as Memories.keep_routing has it; empty when there was one model."""
        with self._database.reader() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'routing'").fetchone()
            return str(row[0]) if row else ""

    # What was said already.

    def seen(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        """The memory ids of those turns that are there, superseded ones too."""
        found: dict[bytes, tuple[str, ...]] = {}
        with self._database.reader() as connection:
            for part in parts(fingerprints):
                rows = connection.execute(
                    f"SELECT fingerprint, max(n) FROM turns WHERE fingerprint IN ({marks(len(part))}) "
                    "GROUP BY fingerprint",
                    part,
                ).fetchall()
                for fingerprint, n in rows:
                    ids = connection.execute("SELECT id FROM memories WHERE turn_n = ? ORDER BY piece", (n,))
                    found[fingerprint] = tuple(row[0] for row in ids)
        return found

    def is_erased(self, erasure_marks: Sequence[str]) -> set[str]:
        """Those of the marks (`Memories.mark` of a fingerprint) whose turns were forgotten."""
        found: set[str] = set()
        with self._database.reader() as connection:
            for part in parts(erasure_marks):
                rows = connection.execute(f"SELECT mark FROM erased WHERE mark IN ({marks(len(part))})", part)
                found.update(row[0] for row in rows)
        return found

    def hidden(self, fingerprints: Sequence[bytes]) -> set[bytes]:
        """Those whose turns are hidden until they are erased."""
        found: set[bytes] = set()
        with self._database.reader() as connection:
            if connection.execute(f"SELECT NOT EXISTS (SELECT 1 FROM memories WHERE state = {FORGOTTEN})").fetchone()[
                0
            ]:
                return found
            for part in parts(fingerprints):
                rows = connection.execute(
                    f"SELECT t.fingerprint FROM turns t WHERE t.fingerprint IN ({marks(len(part))}) AND EXISTS "
                    f"(SELECT 1 FROM memories m WHERE m.turn_n = t.n AND m.state = {FORGOTTEN})",
                    part,
                )
                found.update(row[0] for row in rows)
        return found

    def said_before(self, source: str, session: str, seq: int) -> tuple[int, str]:
        """(seq, text) of the last piece of this turn, its newest version; where there is none, of the turn before it in
        its session; (-1, "") where there is none either."""
        with self._database.reader() as connection:
            row = connection.execute(
                "SELECT t.seq, m.text FROM turns t JOIN memories m ON m.turn_n = t.n "
                "WHERE t.source = ? AND t.session = ? AND t.seq <= ? "
                "ORDER BY t.seq DESC, t.n DESC, m.piece DESC LIMIT 1",
                (source, session, seq),
            ).fetchone()
        return (row[0], row[1]) if row else (-1, "")

    def fingerprints_of(self, turns: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        with self._database.reader() as connection:
            for part in parts(turns):
                found.update(
                    connection.execute(f"SELECT n, fingerprint FROM turns WHERE n IN ({marks(len(part))})", part)
                )
        return found

    # For a recall.

    def search(self, terms: Sequence[str], limit: int, filter: Filter) -> list[WordHit]:
        """By words, best first; see edge.ledger.search."""
        with self._database.reader() as connection:
            return search(connection, self._counts, clean(terms), limit, filter)

    def select(self, filter: Filter, limit: int) -> RowIds | None:
        """The living memories of a filter, ascending; None when there are more than `limit`."""
        where, values = living(filter)
        with self._database.reader() as connection:
            found = writes.numbers(
                connection, f"SELECT m.rowid FROM memories m WHERE {where} LIMIT ?", (*values, limit + 1)
            )
        return None if len(found) > limit else np.sort(np.array(found, dtype=np.int64))

    def any_archived(self) -> bool:
        with self._database.reader() as connection:
            return any_archived(connection)

    def vectors(self, model: str, rowids: RowIds) -> tuple[RowIds, Matrix]:
        """Stored vectors of those that have one, same order; shapes (n,) and (n, dimension)."""
        kept: list[int] = []
        blobs: list[bytes] = []
        with self._database.reader() as connection:
            for start in range(0, len(rowids), _VECTORS):
                # One row of all, not a row each; see writes.numbers. SQLite joins blobs byte by byte, and the cast only
                # takes the name of a text off them.
                found, joined = connection.execute(
                    "SELECT json_group_array(v.memory), CAST(group_concat(v.vector, '') AS BLOB) "
                    "FROM json_each(?) wanted CROSS JOIN vectors v ON v.model = ? AND v.memory = wanted.value",
                    (json.dumps(rowids[start : start + _VECTORS].tolist()), model),
                ).fetchone()
                kept += json.loads(found)
                blobs.append(joined or b"")
        if not kept:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        return np.array(kept, dtype=np.int64), unpack(b"".join(blobs), len(kept))

    def fetch(self, rowids: Sequence[int]) -> dict[int, Memory]:
        """The living memories among them, archived ones too."""
        found: dict[int, Memory] = {}
        with self._database.reader() as connection:
            for part in parts([int(rowid) for rowid in rowids]):
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM memories m WHERE m.rowid IN ({marks(len(part))}) AND {_ALIVE}", part
                )
                found.update((row[0], memory(row)) for row in rows)
        return found

    def around(self, rowids: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The living memories next to each, in the order in which they were said; see `neighbours`."""
        found: dict[int, tuple[int, ...]] = {}
        with self._database.reader() as connection:
            for part in parts([int(rowid) for rowid in rowids]):
                found.update(around(connection, part))
        return found

    # For a reader of memories.

    def by_id(self, id: str) -> Memory | None:
        """Any memory that is not forgotten, a superseded one too."""
        found = self.by_ids([id]).get(id)
        return None if found is None or found.state in UNSHOWN_STATES else found

    def by_ids(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Those of them that are not erased, whatever their state: hidden ones too."""
        found: dict[str, Memory] = {}
        with self._database.reader() as connection:
            for part in parts(ids):
                rows = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id IN ({marks(len(part))})", part)
                found.update((row[1], memory(row)) for row in rows)
        return found

    def archived_of(self, ids: Sequence[str], archived: bool) -> list[str]:
        """Those of them that are archived, or that are not; of the living and not rejected alone."""
        with self._database.reader() as connection:
            rows = connection.execute(
                # The plus keeps SQLite from going through all that is archived.
                f"SELECT id FROM memories WHERE +archived = ? AND state NOT IN {UNFOUND} AND state <> {REJECTED} "
                "AND id IN (SELECT value FROM json_each(?))",
                (archived, json.dumps(ids)),
            )
            return [id for (id,) in rows]

    def replaced_by(self, ids: Sequence[str]) -> dict[str, Memory]:
        """The memories whose place these took, by their own ids, oldest first; hidden ones too."""
        found: dict[str, Memory] = {}
        with self._database.reader() as connection:
            for part in parts(ids):
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM memories m WHERE m.replaced_by IN ({marks(len(part))}) ORDER BY m.rowid",
                    part,
                )
                found.update((row[1], memory(row)) for row in rows)
        return found

    def history_of(self, id: str) -> list[str]:
        """The ids of the memories whose place this one took, oldest first."""
        found = self.replaced_by([id]).values()
        return [older.id for older in found if older.state not in UNSHOWN_STATES]

    def list_page(
        self, filter: Filter, page_size: int, after: tuple[Micros, int] | None = None
    ) -> tuple[list[Memory], tuple[Micros, int] | None]:
        """The living memories of a filter, newest first, and where the next page begins; None after the last.

        `after` is (occurred_at, rowid) of the last memory seen, so that what comes or goes meanwhile shifts nothing.
        """
        where, values = living(filter)
        if after is not None:
            where += " AND (m.occurred_at, m.rowid) < (?, ?)"
            values += after
        with self._database.reader() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM memories m WHERE {where} ORDER BY m.occurred_at DESC, m.rowid DESC LIMIT ?",
                (*values, page_size + 1),
            ).fetchall()
        page = [memory(row) for row in rows[:page_size]]
        return page, (page[-1].occurred_at, page[-1].rowid) if len(rows) > page_size else None

    # For the embedder and the index.

    def pending(self, model: str, after_rowid: int, limit: int) -> list[tuple[int, str]]:
        """(rowid, text) of living memories without a vector of this model, ascending from after `after_rowid`."""
        with self._database.reader() as connection:
            return connection.execute(
                f"SELECT m.rowid, m.text FROM memories m WHERE m.rowid > ? AND {_PENDING} ORDER BY m.rowid LIMIT ?",
                (after_rowid, model, model, limit),
            ).fetchall()

    def pending_rowids(self, model: str) -> list[int]:
        """All of them."""
        with self._database.reader() as connection:
            return writes.numbers(
                connection, f"SELECT m.rowid FROM memories m WHERE {_PENDING} ORDER BY m.rowid", (model, model)
            )

    def pending_of(self, model: str, ids: Sequence[str]) -> list[int]:
        """The rowids of those of these memories that are pending."""
        found: list[int] = []
        with self._database.reader() as connection:
            for part in parts(ids):
                found += writes.numbers(
                    connection,
                    f"SELECT m.rowid FROM memories m WHERE m.id IN ({marks(len(part))}) AND {_PENDING}",
                    (*part, model, model),
                )
        return found

    def vector_rowids(self, model: str) -> RowIds:
        """All that should be in the index, ascending."""
        with self._database.reader() as connection:
            found = writes.numbers(connection, "SELECT memory FROM vectors WHERE model = ? ORDER BY memory", (model,))
        return np.array(found, dtype=np.int64)

    def iter_vectors(self, model: str, rowids: RowIds, chunk: int) -> Iterator[tuple[RowIds, Matrix]]:
        """In chunks of at most `chunk` rows; those that went meanwhile are left out."""
        for start in range(0, len(rowids), chunk):
            found, matrix = self.vectors(model, rowids[start : start + chunk])
            if len(found):
                yield found, matrix

    # For the owner.

    def counts(self) -> Counts:
        with self._database.reader() as connection:

            def one(sql: str) -> int:
                return int(connection.execute(sql).fetchone()[0])

            def per_model(table: str) -> dict[str, int]:
                return {
                    model: connection.execute(f"SELECT count(*) FROM {table} WHERE model = ?", (model,)).fetchone()[0]
                    for model in writes.models(connection, table)
                }

            # Each by an index alone, so that the rows of a large archive are not read.
            superseded = one(f"SELECT count(*) FROM memories WHERE state IN {UNFOUND}")
            memories = one("SELECT count(*) FROM memories") - superseded
            at_hand = one(f"SELECT count(*) FROM memories WHERE archived = 0 AND state NOT IN {UNFOUND}")
            return Counts(
                turns=one("SELECT count(*) FROM turns"),
                memories=memories,
                superseded=superseded,
                archived=memories - at_hand,
                cold=one(f"SELECT count(*) FROM memories WHERE state = {COLD}"),
                vectors=per_model("vectors"),
                refused=per_model("refused"),
                erased=one("SELECT count(*) FROM erased"),
            )

    def tallies(self) -> dict[str, int]:
        """How much came and was not kept, by the names of events.Tallied."""
        with self._database.reader() as connection:
            return dict(connection.execute("SELECT name, count FROM tallies ORDER BY name").fetchall())

    def accessed_since(self, since: Micros) -> dict[str, tuple[int, Micros]]:
        """{memory id: (count, last)} of those recalled at or after `since`: what an Accesses event holds."""
        with self._database.reader() as connection:
            rows = connection.execute(
                "SELECT id, access_count, accessed_at FROM memories WHERE accessed_at >= max(?, 1)", (since,)
            )
            return {id: (count, last) for id, count, last in rows}

    def resolve_forget(
        self, ids: Sequence[str], filter: Filter | None, *, history: bool = True, hidden: bool = True
    ) -> Forgettable:
        """See forgets.forgettable."""
        with self._database.reader() as connection:
            return forgettable(connection, ids, filter, history=history, hidden=hidden)

    def of_turns(self, turns: Iterable[int]) -> Forgettable:
        """See forgets.of_turns."""
        with self._database.reader() as connection:
            return of_turns(connection, turns)

    def unfinished_forgets(self) -> list[tuple[str, Micros, dict[int, str]]]:
        """See forgets.unfinished."""
        with self._database.reader() as connection:
            return unfinished(connection)
