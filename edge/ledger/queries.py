"""Reading the view: by words, by filter, by id, by model; from any thread, never waiting for a writer."""

# ruff: noqa: S608  # statements are put together from constants, column names of rows.living() and question marks

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edge.ledger import writes
from edge.ledger.database import Database
from edge.ledger.rows import COLUMNS, SUPERSEDED, clean, living, marks, memory, unpack
from edge.ledger.search import search
from edge.ports import WordHit
from edge.types import Filter, Matrix, Memory, Micros, RowIds

_CHUNK = 500
_ALIVE = f"m.state <> {SUPERSEDED}"
_PENDING = (
    f"{_ALIVE} AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.memory = m.rowid) "
    "AND NOT EXISTS (SELECT 1 FROM refused r WHERE r.model = ? AND r.memory = m.rowid)"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the tables hold now. `superseded` memories are not among the `memories`; archived ones are."""

    turns: int
    memories: int
    superseded: int
    archived: int
    vectors: dict[str, int]
    refused: dict[str, int]
    erased: int


@dataclass(frozen=True, slots=True)
class Forgettable:
    """What a forget takes: whole turns, all their versions, all their memories."""

    turns: tuple[int, ...]
    memory_ids: tuple[str, ...]
    rowids: tuple[int, ...]
    vectors: int
    # Of the ids asked for, those that name no memory.
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnRow:
    n: int
    fingerprint: bytes
    memory_ids: tuple[str, ...]


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

    # What was said already.

    def seen(self, fingerprints: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        """The memory ids of those turns that are there, superseded ones too."""
        found: dict[bytes, tuple[str, ...]] = {}
        with self._database.reader() as connection:
            for part in _parts(fingerprints):
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
            for part in _parts(erasure_marks):
                rows = connection.execute(f"SELECT mark FROM erased WHERE mark IN ({marks(len(part))})", part)
                found.update(row[0] for row in rows)
        return found

    def turn_at(self, source: str, session: str, seq: int) -> TurnRow | None:
        """The newest version of a turn."""
        with self._database.reader() as connection:
            row = connection.execute(
                "SELECT n, fingerprint FROM turns WHERE source = ? AND session = ? AND seq = ? ORDER BY n DESC LIMIT 1",
                (source, session, seq),
            ).fetchone()
            if row is None:
                return None
            ids = connection.execute("SELECT id FROM memories WHERE turn_n = ? ORDER BY piece", (row[0],))
            return TurnRow(row[0], row[1], tuple(id for (id,) in ids))

    def fingerprints_of(self, turns: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        with self._database.reader() as connection:
            for part in _parts(turns):
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

    def vectors(self, model: str, rowids: RowIds) -> tuple[RowIds, Matrix]:
        """Stored vectors of those that have one, same order; shapes (n,) and (n, dimension)."""
        found: dict[int, bytes] = {}
        wanted = [int(rowid) for rowid in rowids]
        with self._database.reader() as connection:
            for part in _parts(wanted):
                found.update(
                    connection.execute(
                        f"SELECT memory, vector FROM vectors WHERE model = ? AND memory IN ({marks(len(part))})",
                        (model, *part),
                    )
                )
        kept = [rowid for rowid in wanted if rowid in found]
        if not kept:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        return np.array(kept, dtype=np.int64), unpack([found[rowid] for rowid in kept], len(found[kept[0]]) // 2)

    def fetch(self, rowids: Sequence[int]) -> dict[int, Memory]:
        """The living memories among them, archived ones too."""
        found: dict[int, Memory] = {}
        with self._database.reader() as connection:
            for part in _parts([int(rowid) for rowid in rowids]):
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM memories m WHERE m.rowid IN ({marks(len(part))}) AND {_ALIVE}", part
                )
                found.update((row[0], memory(row)) for row in rows)
        return found

    # For a reader of memories.

    def by_id(self, id: str) -> Memory | None:
        """Any memory that is not forgotten, a superseded one too."""
        with self._database.reader() as connection:
            row = connection.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.id = ?", (id,)).fetchone()
        return memory(row) if row else None

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

    def pending_of(self, model: str, ids: Sequence[str]) -> list[int]:
        """The rowids of those of these memories that are pending."""
        found: list[int] = []
        with self._database.reader() as connection:
            for part in _parts(ids):
                found += writes.numbers(
                    connection,
                    f"SELECT m.rowid FROM memories m WHERE m.id IN ({marks(len(part))}) AND {_PENDING}",
                    (*part, model, model),
                )
        return found

    def pending_count(self, model: str) -> int:
        counts = self.counts()
        return max(0, counts.memories - counts.vectors.get(model, 0) - counts.refused.get(model, 0))

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

            superseded = one(f"SELECT count(*) FROM memories WHERE state = {SUPERSEDED}")
            return Counts(
                turns=one("SELECT count(*) FROM turns"),
                memories=one("SELECT count(*) FROM memories") - superseded,
                superseded=superseded,
                archived=one("SELECT count(*) FROM memories WHERE archived = 1"),
                vectors=per_model("vectors"),
                refused=per_model("refused"),
                erased=one("SELECT count(*) FROM erased"),
            )

    def accessed_since(self, since: Micros) -> dict[str, tuple[int, Micros]]:
        """{memory id: (count, last)} of those recalled at or after `since`: what an Accesses event holds."""
        with self._database.reader() as connection:
            rows = connection.execute(
                "SELECT id, access_count, accessed_at FROM memories WHERE accessed_at >= max(?, 1)", (since,)
            )
            return {id: (count, last) for id, count, last in rows}

    def resolve_forget(self, ids: Sequence[str], filter: Filter | None) -> Forgettable:
        """What forgetting these memories, and all that the filter names, takes away.

        A turn goes whole, since its line in the log holds all its words; and with all its versions.
        """
        turns: set[int] = set()
        known: set[str] = set()
        with self._database.reader() as connection:
            for part in _parts(ids):
                rows = connection.execute(f"SELECT id, turn_n FROM memories WHERE id IN ({marks(len(part))})", part)
                for id, n in rows:
                    known.add(id)
                    turns.add(n)
            if filter is not None:
                where, values = living(filter)
                turns.update(
                    writes.numbers(connection, f"SELECT DISTINCT m.turn_n FROM memories m WHERE {where}", values)
                )
            for n in sorted(turns):
                name = connection.execute("SELECT source, session, seq FROM turns WHERE n = ?", (n,)).fetchone()
                turns.update(writes.versions_of(connection, name) if name else ())
            memories: list[tuple[int, str]] = []
            vectors = 0
            models = writes.models(connection, "vectors")
            for part in _parts(sorted(turns)):
                memories += connection.execute(
                    f"SELECT rowid, id FROM memories WHERE turn_n IN ({marks(len(part))}) ORDER BY rowid", part
                )
            for part in _parts([rowid for rowid, _ in memories]):
                for model in models:
                    vectors += connection.execute(
                        f"SELECT count(*) FROM vectors WHERE model = ? AND memory IN ({marks(len(part))})",
                        (model, *part),
                    ).fetchone()[0]
        return Forgettable(
            turns=tuple(sorted(turns)),
            memory_ids=tuple(id for _, id in memories),
            rowids=tuple(rowid for rowid, _ in memories),
            vectors=vectors,
            unknown=tuple(id for id in ids if id not in known),
        )

    def unfinished_forgets(self) -> list[tuple[str, Micros, dict[int, str]]]:
        """(id, when, {turn: mark}) of each forget whose rows are gone, and whose traces may not be."""
        sql = "SELECT id, at FROM forgets WHERE done = 0 AND n <= (SELECT value FROM meta WHERE key = 'applied')"
        with self._database.reader() as connection:
            return [
                (id, at, dict(connection.execute("SELECT turn, mark FROM erased WHERE forget = ?", (id,)).fetchall()))
                for id, at in connection.execute(sql).fetchall()
            ]


def _parts(values: Sequence[object]) -> Iterator[Sequence[object]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]
