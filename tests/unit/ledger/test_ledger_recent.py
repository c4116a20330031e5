"""The last turns of a session come from the log, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_fakes import START, Ledger, turn

from edge.ledger import recent as module
from edge.ledger.erase import forget
from edge.ledger.recent import last_turns
from edge.types import Turn


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space") as opened:
        yield opened


def last(ledger: Ledger, source: str = "chat", session: str = "s1", most: int = 50) -> list[Turn]:
    return list(last_turns(ledger.database, ledger.log.directory, source=source, session=session, most=most))


def seqs(turns: list[Turn]) -> list[int]:
    return [one.seq for one in turns]


def test_turns_come_whole_with_all_they_came_with(ledger: Ledger) -> None:
    long = turn("第一段。\n\n\t  " + "字" * 400 + "\u200b  \n尾巴 ", 1, tags=("a", "b"), attributes=b"\x81\xa1a\x01")
    ledger.say(turn("short", 0), long)
    assert last(ledger) == [long, turn("short", 0)]


def test_the_newest_come_first_and_no_more_than_asked_for(ledger: Ledger) -> None:
    ledger.say(*(turn(f"t{n}", n) for n in range(20)))
    assert seqs(last(ledger, most=3)) == [19, 18, 17]


def test_other_sessions_and_sources_stay_out(ledger: Ledger) -> None:
    ledger.say(turn("mine"), turn("theirs", session="s2"), turn("another's", source="mail"))
    assert [one.text for one in last(ledger)] == ["mine"]
    assert last(ledger, session="s3") == []
    assert last(ledger, source="sms") == []


def test_without_a_source_they_are_of_every_one_in_the_order_of_time(ledger: Ledger) -> None:
    ledger.say(
        turn("a1", 1, source="a", occurred_at=START),
        turn("b1", 1, source="b", occurred_at=START + 10),
        turn("a2", 2, source="a", occurred_at=START + 20),
        turn("elsewhere", 1, source="c", session="s2"),
    )
    assert [one.text for one in last(ledger, source="")] == ["a2", "b1", "a1"]


def test_of_one_source_seq_counts_and_not_a_clock_that_went_wrong(ledger: Ledger) -> None:
    ledger.say(turn("later", 2, occurred_at=START), turn("first", 1, occurred_at=START + 10**9))
    assert seqs(last(ledger)) == [2, 1]
    assert seqs(last(ledger, source="")) == [2, 1]


def test_superseded_and_forgotten_turns_never_appear(ledger: Ledger) -> None:
    ledger.say(turn("one", 1), turn("two", 2), turn("three", 3))
    ledger.say(turn("two, corrected", 2))
    assert [one.text for one in last(ledger)] == ["three", "two, corrected", "one"]
    gone = [memory.id for memory in ledger.queries.fetch(range(1, 10)).values() if memory.seq == 3]
    forget(ledger.log, ledger.database, ledger.memories, ledger.queries, ids=gone, filter=None, dry_run=False,
           drop_indexed=lambda rowids: 0)  # fmt: skip
    assert [one.text for one in last(ledger)] == ["two, corrected", "one"]


def test_a_turn_whose_line_is_damaged_is_left_out_and_hides_no_other(ledger: Ledger) -> None:
    ledger.say(*(turn(f"turn {n}", n) for n in range(5)))
    (segment,) = ledger.log.directory.glob("*.jsonl")
    raw = segment.read_bytes().replace(b"turn 2", b"turn X")
    segment.write_bytes(raw.replace(b'{"n":4,', b'{"n":9,'))
    assert seqs(last(ledger)) == [4, 1, 0]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=60), st.integers(500, 20_000), st.data())
def test_every_turn_is_found_wherever_its_line_lies(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], segment_bytes: int, data: st.DataObject
) -> None:
    turns = [turn("字" * size, seq) for seq, size in enumerate(sizes)]
    near = module._NEAR
    module._NEAR = data.draw(st.sampled_from([1, 200, 5000]))
    try:
        with Ledger(tmp_path_factory.mktemp("space"), segment_bytes=segment_bytes) as ledger:
            ledger.say(*turns)
            assert last(ledger, most=len(turns)) == turns[::-1]
    finally:
        module._NEAR = near
