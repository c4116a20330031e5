"""Whatever is wrong with a space is said in a sentence, without a word of a memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_fakes import START, Ledger, said, turn

from edge.ledger.events import Forgotten, encode
from edge.ledger.verify import verify

SECRET = "qwertzuiop"


@pytest.fixture
def space(tmp_path: Path) -> Path:
    directory = tmp_path / "space"
    with Ledger(directory, segment_bytes=2000) as ledger:
        ledger.say(*[turn(f"{SECRET} {i}", i, tags=("t",)) for i in range(8)], size=5)
        ledger.say(turn(f"{SECRET} 3, newer", 3))
    return directory


def sql(space: Path, statement: str) -> None:
    connection = sqlite3.connect(space / "memory.sqlite")
    connection.execute(statement)
    connection.commit()
    connection.close()


def last_segment(space: Path) -> Path:
    return max((space / "log").iterdir())


def append(space: Path, line: bytes) -> None:
    with last_segment(space).open("ab") as file:
        file.write(line)


def change_byte(space: Path) -> None:
    path = min((space / "log").iterdir())
    path.write_bytes(path.read_bytes().replace(SECRET.encode(), b"qwertzuiog", 1))


def test_a_sound_space_is_clean_and_counted(space: Path) -> None:
    report = verify(space)
    assert report.clean and report.problems == [] == report.notes
    assert (report.turns, report.lines, report.last_n, report.applied) == (9, 9, 9, 9)
    assert report.memories == report.rows > 9 and report.segments > 1


def test_it_may_run_beside_the_box(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.say(turn("a"))
        assert verify(tmp_path).clean


def test_nothing_yet_is_clean(tmp_path: Path) -> None:
    assert verify(tmp_path).clean


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (change_byte, "does not match its checksum"),
        (lambda space: append(space, encode(said(2, turn("x", 99)))), "which is not above 9"),
        (lambda space: append(space, encode(Forgotten(10, START, "f", (1,), ("m",)))), "was forgotten by f"),
        (lambda space: sql(space, "DELETE FROM memories WHERE turn_n = 2"), "is in the log, but not in the database"),
        (lambda space: sql(space, "UPDATE memories SET text = 'other' WHERE turn_n = 2"), "as it is in the log"),
        (lambda space: sql(space, "UPDATE memories SET state = 4 WHERE turn_n = 2"), "as it is in the log"),
        (
            lambda space: sql(space, "UPDATE memories SET id = 'x' WHERE rowid = 2"),
            "in the database, but not in the log",
        ),
        (lambda space: sql(space, "UPDATE meta SET value = 99 WHERE key = 'applied'"), "the log ends with 9"),
        (lambda space: sql(space, "DELETE FROM words WHERE rowid = 2"), "without a row in the keyword index"),
        (lambda space: sql(space, "DELETE FROM words_data WHERE id > 10"), "the database|by their own words|malformed"),
        (lambda space: (space / "memory.sqlite").write_bytes(b"x" * 9000), "not a database"),
    ],
)
def test_what_is_wrong_is_named_without_the_words_of_a_memory(
    space: Path, harm: Callable[[Path], object], words: str
) -> None:
    harm(space)
    report = verify(space)
    assert not report.clean
    import re

    assert any(re.search(words, problem) for problem in report.problems), report.problems
    assert not any(SECRET in problem for problem in report.problems + report.notes)


def test_what_the_next_start_mends_is_only_noted(space: Path) -> None:
    append(space, b'{"n":10')
    sql(space, "UPDATE meta SET value = 8 WHERE key = 'applied'")
    report = verify(space)
    assert report.clean and len(report.notes) == 2
    (space / "memory.sqlite").unlink()
    assert verify(space).clean


def test_pieces_outside_their_text_and_shared_ids_are_named(space: Path) -> None:
    event = said(10, turn("abc", 50))
    bad = type(event)(10, START, event.turn, event.fingerprint, (type(event.pieces[0])("id", 1, 9),) * 2)
    append(space, encode(bad))
    problems = "\n".join(verify(space).problems)
    assert "is not a part of its text" in problems and "has the id of another" in problems
