"""Whether what a receipt says was forgotten is gone: from every log, table and snapshot of a data directory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.errors import EdgeError, FailedPrecondition, InvalidArgument, NotFound
from edge.index.snapshot import Snapshots, UnusableError
from edge.ledger.coldfiles import SUFFIX, read
from edge.ledger.database import Database
from edge.ledger.events import Erased, Forgotten, LineError, TurnSaid, decode, mark
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.segments import Segment, read_lines
from edge.upkeep.verify import Verdict

_KEY_BYTES = 32
_DATABASE = "memory.sqlite"
# Problems of one kind that are named one by one.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Receipt:
    id: str
    turns: int
    marks: frozenset[str]
    memory_ids: frozenset[str]
    # When it is to be erased, for one that was only hidden; else empty.
    erases_at: str


@dataclass(slots=True)
class _Log:
    """What one log says of turns."""

    # Where each is that is there, by its mark, and by the ids of its memories, for which no key is needed.
    said: dict[str, str] = field(default_factory=dict)
    turns: int = 0
    # Of this forget: the turns that it was to erase, and those in whose place an erasure stands.
    forgotten: dict[int, str] = field(default_factory=dict)
    erased: dict[int, str] = field(default_factory=dict)
    event_n: int = 0
    damaged: int = 0


@dataclass(slots=True)
class _Looked:
    problems: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _said: dict[str, int] = field(default_factory=dict)

    def problem(self, kind: str, words: str) -> None:
        """Those of one kind are named up to a number."""
        self._said[kind] = self._said.get(kind, 0) + 1
        if self._said[kind] <= _NAMED:
            self.problems.append(words)
        elif self._said[kind] == _NAMED + 1:
            self.problems.append("and more of the kind")

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number


def prove(data: Path, receipt_file: Path, copies: Sequence[Path] = ()) -> Verdict:
    """Looks for what the receipt's marks name, in the data directory and in copies of it; the box may be running.

    Nothing of it is there when there are no problems: no line of any log, no row, no word, no vector in tables and
    snapshots; and in the place of each line stands its erasure. Needs the box's key, so the data directory and its
    copies must be this box's. Looks into `*.jsonl` and `memory.sqlite` wherever they are below these directories, and
    into no archives. Raises InvalidArgument for what is no receipt, NotFound where there is no box's data.
    """
    receipt = _read(receipt_file)
    root = data / "spaces"
    if not root.is_dir():
        raise NotFound(f"{data} holds no memories; name the data directory with --data or EDGE_DATA", field="data")
    key = _key(data)
    looked = _Looked()
    spaces = sorted(directory.parent for directory in (*root.glob("*/log"), *root.glob("private/*/log")))
    # Whatever the log erases while this runs is not there any more when the tables are read.
    logs = {space: _read_log(sorted((space / "log").glob("*.jsonl")), receipt.id, key) for space in spaces}
    wanted = receipt.marks | {one for log in logs.values() for one in log.forgotten.values()}
    if _check_receipt(receipt, logs.values(), looked):
        return Verdict(looked.problems, looked.counts)
    for space, log in logs.items():
        name = str(space.relative_to(root))
        _check_log(name, log, wanted | receipt.memory_ids, looked)
        looked.count("turns", log.turns)
        with _opened(space / _DATABASE, name, looked) as database:
            if database is not None:
                _check_tables(name, database, receipt, log, wanted, key, looked)
                _check_snapshots(name, space / "index", database, looked)
    seen = {path for space in spaces for path in ((space / _DATABASE), *(space / "log").glob("*.jsonl"))}
    for directory in (data, *copies):
        _check_cold(directory, wanted | receipt.memory_ids, key, looked)
        _check_copies(directory, seen, receipt, wanted, key, looked)
    return Verdict(looked.problems, looked.counts)


def _read(path: Path) -> _Receipt:
    try:
        raw = json.loads(path.read_text("utf-8"))
        if raw["dry_run"]:
            raise InvalidArgument(f"erased: {path} is of a dry run, which erased nothing", field="erased")
        marks, ids = raw["marks"], raw["memory_ids"]
        if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in (marks, ids)):
            raise ValueError
        # Receipts had the second name once.
        erases_at = str(raw.get("erases_at") or raw.get("erased_at") or "")
        return _Receipt(str(raw["id"]), int(raw["turns"]), frozenset(marks), frozenset(ids), erases_at)
    except OSError as error:
        raise InvalidArgument(f"erased: {path} cannot be read ({error.strerror})", field="erased") from None
    except (ValueError, KeyError, TypeError):
        raise InvalidArgument(
            f"erased: {path} is no receipt; `edge forget --receipt FILE` writes one", field="erased"
        ) from None


def _key(data: Path) -> bytes:
    path = data / "identity" / "erase.key"
    with contextlib.suppress(OSError):
        key = path.read_bytes()
        if len(key) == _KEY_BYTES:
            return key
    raise FailedPrecondition(
        f"{path} cannot be read, and without the box's key nobody can tell what a receipt is about; run this on the "
        "box's own machine, as its user",
        reason="KEY_UNREADABLE",
    )


def _read_log(paths: Iterable[Path], forget: str, key: bytes) -> _Log:
    log = _Log()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            for line in read_lines(Segment(path, 0)):
                event = line.event
                if event is None:
                    log.damaged += 1
                elif isinstance(event, TurnSaid):
                    where = f"line {line.row} of {path.name}"
                    # What it says and what it is said to say; they are one unless somebody changed the file.
                    log.said[mark(key, event.fingerprint)] = where
                    log.said[mark(key, event.turn.fingerprint())] = where
                    log.said |= dict.fromkeys((piece.id for piece in event.pieces), where)
                    log.turns += 1
                elif isinstance(event, Forgotten) and event.id == forget:
                    log.event_n = event.n
                    log.forgotten |= dict(zip(event.turns, event.marks, strict=True))
                elif isinstance(event, Erased) and event.forget == forget:
                    log.erased[event.n] = event.mark
    return log


def _check_receipt(receipt: _Receipt, logs: Iterable[_Log], looked: _Looked) -> bool:
    """Whether nothing is to be erased yet: it is still there then, as it should be."""
    marks = [one for log in logs for one in log.forgotten.values()]
    if not marks:
        unknown = f"no log of this box knows a forget of the id {receipt.id}"
        hidden = f"{receipt.id} is only hidden yet; ask again after {receipt.erases_at}, or say `edge forget --now`"
        looked.problem("receipt", hidden if receipt.erases_at else unknown)
    elif len(marks) != receipt.turns or not receipt.marks <= set(marks):
        looked.problem("receipt", "the receipt is not what the log says of this forget; was it changed?")
    return not marks and bool(receipt.erases_at)


def _check_log(name: str, log: _Log, wanted: frozenset[str], looked: _Looked) -> None:
    for where in sorted({log.said[one] for one in wanted & log.said.keys()}):
        looked.problem("said", f"{name}: {where} still holds a turn of the receipt; start the box once to finish")
    for n, one in log.forgotten.items():
        if log.erased.get(n) != one:
            looked.problem("erasure", f"{name}: no erasure stands in the place of turn {n}")
    looked.count("erased lines", len(log.erased))
    if log.damaged:
        looked.problem(
            "damaged", f"{name}: {log.damaged} damaged lines of the log cannot be read, so they prove nothing"
        )


@contextlib.contextmanager
def _opened(path: Path, name: str, looked: _Looked) -> Iterator[Database | None]:
    """Read-only; None where it is not there, or cannot be read, which is a problem."""
    database = None
    if path.exists():
        try:
            database = Database(path, MIGRATIONS, read_only=True)
        except EdgeError as error:
            looked.problem("unreadable", f"{name}: {error.message}")
    try:
        yield database
    finally:
        if database is not None:
            database.close()


def _check_tables(
    name: str,
    database: Database,
    receipt: _Receipt,
    log: _Log,
    wanted: frozenset[str],
    key: bytes,
    looked: _Looked,
) -> None:
    looked.count("databases")
    with database.reader() as connection:
        there = [mark(key, one) in wanted for (one,) in connection.execute("SELECT fingerprint FROM turns")]
        rows = connection.execute("SELECT id, turn_n FROM memories").fetchall()
        ours = sum(id in receipt.memory_ids or n in log.forgotten for id, n in rows)
        orphans = {
            "words": "SELECT count(*) FROM words WHERE rowid NOT IN (SELECT rowid FROM memories)",
            "vectors": "SELECT count(*) FROM vectors WHERE memory NOT IN (SELECT rowid FROM memories)",
            "tags": "SELECT count(*) FROM tags WHERE memory NOT IN (SELECT rowid FROM memories)",
        }
        left = {what: connection.execute(sql).fetchone()[0] for what, sql in orphans.items()}
        known = {one for (one,) in connection.execute("SELECT mark FROM erased WHERE forget = ?", (receipt.id,))}
        applied = connection.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()[0]
    looked.count("memories", len(rows))
    if any(there) or ours:
        looked.problem("rows", f"{name}: the database still has {sum(there)} turns and {ours} memories of the receipt")
    for what, count in left.items():
        if count:
            looked.problem("orphans", f"{name}: the database has {count} {what} that are of no memory")
    if log.event_n and (applied < log.event_n or not set(log.forgotten.values()) <= known):
        looked.problem("behind", f"{name}: the database does not know of this forget yet; start the box once")


def _check_snapshots(name: str, directory: Path, database: Database, looked: _Looked) -> None:
    with database.reader() as connection:
        rowids = {rowid for (rowid,) in connection.execute("SELECT rowid FROM memories")}
        generation = str(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])
    named = set()
    for manifest in sorted(directory.glob("*.json")):
        try:
            told: Any = json.loads(manifest.read_text("utf-8"))["snapshot"]
            named.add(str(told["file"]))
            graph = Snapshots(directory, told["model"], told["dimension"], generation, read_only=True).load()
        except (OSError, ValueError, KeyError, TypeError, UnusableError) as error:
            looked.problem("snapshot", f"{name}: {manifest.name} cannot be checked ({error}); start the box once")
            continue
        looked.count("snapshots")
        strange = sum(int(rowid) not in rowids for rowid in graph.rowids()) if graph is not None else 0
        if strange:
            looked.problem("snapshot", f"{name}: {manifest.name} holds vectors of {strange} memories that are gone")
    for path in sorted(directory.glob("*.hnsw*")):
        if path.name not in named:
            looked.problem("snapshot", f"{name}: {path.name} was left over; the next start removes it")


def _check_cold(directory: Path, wanted: frozenset[str], key: bytes, looked: _Looked) -> None:
    """The cold files of spaces and of copies alike: one of a space that holds something of it was not written anew."""
    for path in sorted(directory.rglob(f"*{SUFFIX}")):
        looked.count("cold files")
        try:
            for line in read(path):
                event = decode(line)
                if isinstance(event, TurnSaid):
                    names = {mark(key, event.fingerprint), mark(key, event.turn.fingerprint())}
                    if wanted & (names | {piece.id for piece in event.pieces}):
                        looked.problem("cold", f"{path} still holds turn {event.n} of the receipt; start the box once")
        except (EdgeError, LineError) as error:
            looked.problem("cold damaged", f"{path} cannot be read ({error}), so it proves nothing")


def _check_copies(
    directory: Path, seen: set[Path], receipt: _Receipt, wanted: frozenset[str], key: bytes, looked: _Looked
) -> None:
    """Logs and tables that are no space's own: backups, what was copied by hand, what a crash left."""
    for path in sorted({*directory.rglob("*.jsonl"), *directory.rglob(_DATABASE)} - seen):
        looked.count("copies")
        if path.suffix == ".jsonl":
            log = _read_log([path], receipt.id, key)
            for where in sorted({log.said[one] for one in (wanted | receipt.memory_ids) & log.said.keys()}):
                looked.problem("copy", f"{path}: {where} still holds a turn of the receipt; delete the copy")
            continue
        with _opened(path, str(path), looked) as database:
            if database is None:
                continue
            with database.reader() as connection:
                prints = connection.execute("SELECT fingerprint FROM turns")
                there = sum(mark(key, one) in wanted for (one,) in prints)
                ids = connection.execute("SELECT id FROM memories")
                there = there or sum(one in receipt.memory_ids for (one,) in ids)
            if there:
                looked.problem("copy", f"{path} still has {there} turns of the receipt; delete the copy")
