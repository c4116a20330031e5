"""Does the log hold, and does the view say what the log says? Read only, and never a word of a memory in a report."""

# ruff: noqa: S608  # statements are put together from constants

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edge.errors import EdgeError
from edge.ledger.coldfiles import paths, read
from edge.ledger.database import Database
from edge.ledger.events import Erased, Forgotten, Revised, TurnSaid, decode, sound
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.rows import COLD, FORGOTTEN, SUPERSEDED, UNFOUND, literal
from edge.ledger.segments import list_segments, read_lines, whole_bytes

LOG = "log"
DATABASE = "memory.sqlite"
# Problems of one kind that are named one by one; the others are counted.
_NAMED = 20
_SAMPLE = 500


@dataclass(slots=True)
class Report:
    """Counts, and what is wrong, a sentence each; nothing is wrong when `problems` is empty.

    `notes` are worth knowing, and no fault: a torn tail that the next start cuts off, a view that is behind the log.
    """

    segments: int = 0
    lines: int = 0
    turns: int = 0
    memories: int = 0
    revisions: int = 0
    forgotten: int = 0
    cold: int = 0
    damaged_lines: int = 0
    rows: int = 0
    applied: int = 0
    last_n: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.problems


# By memory id; None while a revision is not wholly in the database yet.
_States = dict[str, "int | None"]


@dataclass(slots=True)
class _Living:
    """What the log says of one turn."""

    name: bytes
    pieces: dict[str, bytes]
    state: int


def verify(space: Path) -> Report:
    """Checks the directory of one space (`log/`, `memory.sqlite`); the box may be running."""
    report = Report()
    # The view is looked at first: what it has, the log must have by the time it is read.
    view = _read_view(space / DATABASE, report)
    said, states = _read_log(space / LOG, view.applied if view is not None else 0, report)
    if view is not None:
        _compare(said, states, view, report)
    return report


def _read_log(directory: Path, applied: int, report: Report) -> tuple[dict[int, _Living], _States]:
    """Every turn of the log that is not erased, by number; and the states that revisions gave."""
    turns: dict[int, _Living] = {}
    states: _States = {}
    forgotten: dict[int, str] = {}
    names: set[str] = set()
    last_n = 0
    cold = _read_cold(directory / "cold", report)
    segments = list_segments(directory) if directory.is_dir() else []
    for place, segment in enumerate(segments):
        report.segments += 1
        if whole_bytes(segment.path) < segment.path.stat().st_size:
            words = f"{segment.path.name} ends in an unfinished line"
            if place == len(segments) - 1:
                report.notes.append(f"{words}; the next start cuts it off")
            else:
                report.problems.append(f"{words}, and is not the last segment")
        for line in read_lines(segment):
            report.lines += 1
            where = f"line {line.row} of {segment.path.name}"
            event = line.event
            if event is None:
                report.damaged_lines += 1
                _say(report, report.damaged_lines, f"{where} does not match its checksum")
                continue
            if event.n <= last_n:
                report.problems.append(f"{where} has the number {event.n}, which is not above {last_n} before it")
            last_n = event.n
            if isinstance(event, TurnSaid):
                if event.cold:
                    report.cold += 1
                    if event.n not in cold:
                        report.problems.append(
                            f"turn {event.n} is cold, and in no cold file; a backup of log/cold has it"
                        )
                turns[event.n] = _living(event, where, names, report)
            elif isinstance(event, Forgotten):
                forgotten |= dict.fromkeys(event.turns, event.id)
            elif isinstance(event, Erased):
                report.forgotten += 1
            elif isinstance(event, Revised):
                report.revisions += 1
                for one in event.changes:
                    if "state" in one.after:
                        states[one.id] = int(one.after["state"]) if event.n <= applied else None
    report.last_n = last_n
    report.turns = len(turns)
    report.memories = sum(len(turn.pieces) for turn in turns.values())
    for n in sorted(forgotten.keys() & turns.keys()):
        report.problems.append(
            f"turn {n} was forgotten by {forgotten[n]}, but its line is still in the log; start the box once to finish"
        )
        del turns[n]
    return turns, states


def _read_cold(directory: Path, report: Report) -> set[int]:
    """The numbers of the turns in the cold files."""
    found: set[int] = set()
    for path in paths(directory):
        try:
            lines = list(read(path))
        except EdgeError as error:
            report.problems.append(error.message)
            continue
        for row, line in enumerate(lines, 1):
            event = decode(line) if sound(line) else None
            if isinstance(event, TurnSaid) and event.turn.fingerprint() == event.fingerprint:
                found.add(event.n)
            else:
                report.problems.append(f"line {row} of {path.name} is no turn as it was written")
    return found


def _living(event: TurnSaid, where: str, names: set[str], report: Report) -> _Living:
    turn = event.turn
    if not event.cold and turn.fingerprint() != event.fingerprint:
        report.problems.append(f"the fingerprint of {where} is not that of its turn")
    pieces: dict[str, bytes] = {}
    for piece in event.pieces:
        if not event.cold and not 0 <= piece.start < piece.end <= len(turn.text):
            report.problems.append(f"memory {piece.id} of {where} is not a part of its text")
        if piece.id in names:
            report.problems.append(f"memory {piece.id} of {where} has the id of another")
        names.add(piece.id)
        pieces[piece.id] = _digest(turn.text[piece.start : piece.end])
    name = "\0".join((turn.source, turn.session, str(turn.seq)))
    return _Living(_digest(name), pieces, int(turn.state))


@dataclass(slots=True)
class _View:
    applied: int
    # Memory id to (turn number, digest of its text, state).
    rows: dict[str, tuple[int, bytes, int]]


def _read_view(path: Path, report: Report) -> _View | None:
    if not path.exists():
        report.notes.append(f"{path.name} is not there; the next start makes it from the log")
        return None
    try:
        database = Database(path, MIGRATIONS, read_only=True)
    except EdgeError as error:
        report.problems.append(error.message)
        return None
    with contextlib.closing(database):
        problems = database.integrity()
        report.problems += problems
        if problems:
            return None
        try:
            with database.reader() as connection:
                return _rows(connection, report)
        except EdgeError as error:
            report.problems.append(error.message)
            return None


def _rows(connection: sqlite3.Connection, report: Report) -> _View:
    connection.execute("BEGIN")
    try:
        applied = int(connection.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()[0])
        rows: dict[str, tuple[int, bytes, int]] = {}
        for id, turn, text, state in connection.execute("SELECT id, turn_n, text, state FROM memories"):
            rows[id] = (turn, _digest(text), state)
        report.problems += _words(connection)
    finally:
        connection.execute("COMMIT")
    report.applied = applied
    report.rows = len(rows)
    return _View(applied, rows)


def _words(connection: sqlite3.Connection) -> Iterator[str]:
    """A look at the keyword index: every living memory has its row, no other has, and samples find themselves.

    (FTS5's own integrity check writes; this one does not.)
    """
    for words, sql in (
        (
            "without a row in the keyword index",
            f"SELECT rowid FROM memories WHERE state NOT IN {UNFOUND} EXCEPT SELECT rowid FROM words",
        ),
        (
            "in the keyword index that no living memory has",
            f"SELECT rowid FROM words EXCEPT SELECT rowid FROM memories WHERE state NOT IN {UNFOUND}",
        ),
        (
            "with a vector that no living memory has",
            f"SELECT memory FROM vectors EXCEPT SELECT rowid FROM memories WHERE state NOT IN {UNFOUND}",
        ),
        ("with a tag that no memory has", "SELECT memory FROM tags EXCEPT SELECT rowid FROM memories"),
    ):
        found = connection.execute(sql).fetchall()
        if found:
            yield f"{len(found)} rows {words}; `edge rebuild --from-log` mends it"
    total = connection.execute("SELECT count(*) FROM words").fetchone()[0]
    missed = 0
    sample = connection.execute(
        "SELECT rowid, terms FROM words WHERE rowid % max(1, ? / ?) = 0", (total, _SAMPLE)
    ).fetchall()
    for rowid, terms in sample:
        term = max(terms.split(" "), key=len)
        if term:
            sql = "SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?"
            missed += connection.execute(sql, (literal(term), rowid)).fetchone() is None
    if missed:
        yield f"{missed} memories are not found by their own words; `edge rebuild --from-log` mends it"


def _compare(said: dict[int, _Living], states: _States, view: _View, report: Report) -> None:
    if view.applied > report.last_n:
        report.problems.append(f"the database has event {view.applied}, the log ends with {report.last_n}")
    elif view.applied < report.last_n:
        report.notes.append(f"the database is at event {view.applied} of {report.last_n}; the next start goes on")
    newest = {turn.name: n for n, turn in said.items()}
    newest_applied = {turn.name: n for n, turn in said.items() if n <= view.applied}
    missing = different = 0
    for n, turn in said.items():
        if n > view.applied:
            continue
        # A version that is not wholly in yet may have taken the place of this one already.
        superseded = {newest_applied[turn.name] != n, newest[turn.name] != n}
        for id, digest in turn.pieces.items():
            row = view.rows.pop(id, None)
            if row is None:
                missing += 1
                _say(report, missing, f"memory {id} of turn {n} is in the log, but not in the database")
            elif row[:2] != (n, digest) or not any(
                _agrees(row[2], states.get(id, turn.state), older) for older in superseded
            ):
                different += 1
                _say(report, different, f"memory {id} of turn {n} is not in the database as it is in the log")
    strange = 0
    for id, (n, _, _) in view.rows.items():
        if n <= view.applied:
            strange += 1
            _say(report, strange, f"memory {id} is in the database, but not in the log")


def _agrees(state: int, given: int | None, superseded: bool) -> bool:
    """Whether a memory is in the state that its turn or a revision gave it, or a newer version of the turn."""
    return given is None or state == (SUPERSEDED if superseded and given not in (FORGOTTEN, COLD) else given)


def _say(report: Report, count: int, words: str) -> None:
    if count <= _NAMED:
        report.problems.append(words)
    elif count == _NAMED + 1:
        report.problems.append("and more of the kind")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
