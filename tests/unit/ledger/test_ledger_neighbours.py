"""What was said beside a memory, by the ledger's own SQL."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import Ledger, turn

from edge.types import Turn


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space") as ledger:
        yield ledger


def rowids(ledger: Ledger) -> dict[str, int]:
    """By text, of all memories that are still there."""
    with ledger.database.reader() as connection:
        return {text: rowid for rowid, text in connection.execute("SELECT rowid, text FROM memories")}


def beside(ledger: Ledger, text: str) -> list[str]:
    """The texts of those next to the memory of this text, in order."""
    known = rowids(ledger)
    names = {rowid: text for text, rowid in known.items()}
    return [names[rowid] for rowid in ledger.queries.around([known[text]]).get(known[text], ())]


def archive(ledger: Ledger, text: str) -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE memories SET archived = 1 WHERE text = ?", (text,))

    ledger.database.submit(write).result()


def test_the_turns_before_and_after_are_beside_a_turn(ledger: Ledger) -> None:
    ledger.say(*(turn(text, seq) for seq, text in enumerate("abc")))
    assert beside(ledger, "b") == ["a", "c"]


def test_the_first_and_the_last_have_one_neighbour_and_a_lonely_one_has_none(ledger: Ledger) -> None:
    ledger.say(turn("a", 0), turn("b", 1), turn("alone", 0, session="other"))
    assert beside(ledger, "a") == ["b"]
    assert beside(ledger, "b") == ["a"]
    assert beside(ledger, "alone") == []


def test_the_order_is_that_of_the_session_and_not_that_of_arrival(ledger: Ledger) -> None:
    ledger.say(turn("c", 2), turn("a", 0), turn("b", 1))
    assert beside(ledger, "b") == ["a", "c"]
    assert beside(ledger, "a") == ["b"]


def test_numbers_that_are_left_out_part_nobody(ledger: Ledger) -> None:
    ledger.say(turn("a", 3), turn("b", 40), turn("c", 2**31))
    assert beside(ledger, "b") == ["a", "c"]


def test_pieces_of_a_turn_are_beside_each_other_and_its_ends_beside_the_next_turns(ledger: Ledger) -> None:
    ledger.say(turn("aaabbb", 0), turn("cccdddeee", 1), turn("fffggg", 2), size=3)
    assert beside(ledger, "ccc") == ["bbb", "ddd"]
    assert beside(ledger, "ddd") == ["ccc", "eee"]
    assert beside(ledger, "eee") == ["ddd", "fff"]
    assert beside(ledger, "aaa") == ["bbb"]
    assert beside(ledger, "ggg") == ["fff"]


def test_sessions_of_one_name_in_two_sources_are_two(ledger: Ledger) -> None:
    ledger.say(turn("a", 0), turn("b", 1, source="other"), turn("c", 2), turn("d", 3, source="other"))
    assert beside(ledger, "a") == ["c"]
    assert beside(ledger, "b") == ["d"]


def test_a_turn_that_was_said_anew_is_beside_in_its_new_words_only(ledger: Ledger) -> None:
    ledger.say(turn("a", 0), turn("old", 1), turn("c", 2))
    ledger.say(turn("new", 1))
    assert beside(ledger, "a") == ["new"]
    assert beside(ledger, "new") == ["a", "c"]
    ledger.say(turn("newer", 1))
    assert beside(ledger, "c") == ["newer"]


def test_a_new_version_with_fewer_pieces_has_those_only(ledger: Ledger) -> None:
    ledger.say(turn("a", 0), turn("oldold", 1), turn("c", 2), size=3)
    ledger.say(turn("new", 1), size=3)
    assert beside(ledger, "c") == ["new"]
    assert beside(ledger, "a") == ["new"]


def test_what_is_archived_is_beside_nobody_but_has_neighbours_itself(ledger: Ledger) -> None:
    ledger.say(*(turn(text, seq) for seq, text in enumerate("abc")))
    archive(ledger, "b")
    assert beside(ledger, "a") == []
    assert beside(ledger, "b") == ["a", "c"]


def test_what_is_not_there_has_no_neighbours_and_is_no_error(ledger: Ledger) -> None:
    ledger.say(turn("a", 0))
    assert ledger.queries.around([]) == {}
    assert ledger.queries.around([12345, -1]) == {}


def test_many_may_be_asked_about_at_once(ledger: Ledger) -> None:
    ledger.say(*(turn(f"第{n}句", n) for n in range(2300)))
    known = rowids(ledger)
    found = ledger.queries.around(list(known.values()))
    assert len(found) == 2300
    in_order = [known[f"第{n}句"] for n in range(2300)]
    for at, rowid in enumerate(in_order):
        assert found[rowid] == tuple(in_order[max(0, at - 1) : at] + in_order[at + 1 : at + 2])


TURNS = st.lists(
    st.tuples(st.sampled_from("xy"), st.sampled_from("st"), st.integers(0, 5), st.integers(1, 7)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(TURNS)
def test_whatever_was_said_neighbours_are_those_of_the_session_read_through(
    said: list[tuple[str, str, int, int]],
) -> None:
    with tempfile.TemporaryDirectory() as directory, Ledger(Path(directory) / "space") as ledger:
        current: dict[tuple[str, str, int], Turn] = {}
        for n, (source, session, seq, length) in enumerate(said):
            one = turn(f"{n:02}" + "a" * length, seq, source=source, session=session)
            current[source, session, seq] = one
            ledger.say(one, size=3)
        with ledger.database.reader() as connection:
            rows = connection.execute(
                "SELECT rowid, source, session, seq, piece FROM memories WHERE state <> 4 ORDER BY 2, 3, 4, 5"
            ).fetchall()
        found = ledger.queries.around([row[0] for row in rows])
        for at, (rowid, *name, _, _) in enumerate(rows):
            nearby = (rows[other] for other in (at - 1, at + 1) if 0 <= other < len(rows))
            assert found[rowid] == tuple(other[0] for other in nearby if list(other[1:3]) == name)
