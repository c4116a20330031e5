"""What is forgotten is gone from every file, whenever the box was killed on the way."""

from __future__ import annotations

import base64
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import Ledger, turn

from edge.errors import DiskFull, Unavailable
from edge.ledger import erase
from edge.ledger.events import Erased, TurnSaid
from edge.ledger.verify import verify
from edge.types import Filter, Receipt


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space", segment_bytes=4000) as ledger:
        yield ledger


def forget(ledger: Ledger, *ids: str, **options: object) -> Receipt:
    return erase.forget(ledger.log, ledger.database, ledger.memories, ledger.queries, ids=ids, **options)  # type: ignore[arg-type]  # the tests name real options


def resume(ledger: Ledger) -> int:
    return erase.resume(ledger.log, ledger.database, ledger.memories, ledger.queries)


def traces(directory: Path, words: str) -> list[str]:
    """The files that hold the words as UTF-8, UTF-16 or base64 at any alignment."""
    raw = words.encode()
    needles = [raw, words.encode("utf-16-le"), words.encode("utf-16-be"), raw.hex().encode()]
    # Of base64, what the neighbours do not change.
    needles += [base64.b64encode(b"\0" * shift + raw)[(shift * 8 + 5) // 6 : -4] for shift in range(3)]
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files for needle in needles if needle in path.read_bytes()]


def test_a_forgotten_turn_leaves_no_byte_in_any_file_while_the_box_runs_on(ledger: Ledger) -> None:
    rng = random.Random(1)
    secret = "qwertzuiop一二三四"
    for i in range(60):
        ledger.say(turn("".join(rng.choices("甲乙丙丁 戊己庚辛", k=200)), i))
    (old,) = ledger.say(turn(f"{secret} before", 100, tags=(f"tag-{secret}",), attributes=f"\x81{secret}".encode()))
    (new,) = ledger.say(turn(f"{secret} before and after, {secret}", 100), size=10)
    rowid = ledger.queries.select(Filter(since=new.turn.occurred_at), 100)
    assert rowid is not None
    ledger.memories.put_vectors("m", rowid, np.ones((len(rowid), 4), np.float32)).result()
    assert set(traces(ledger.directory, secret)) >= {"memory.sqlite-wal"}
    dropped: list[int] = []
    receipt = forget(ledger, new.pieces[1].id, drop_indexed=lambda rowids: dropped.extend(rowids) or 3)
    assert traces(ledger.directory, secret) == [] == traces(ledger.directory, "qwertz")
    assert (receipt.turns, receipt.memories, receipt.vectors) == (2, 1 + len(new.pieces), len(new.pieces))
    assert receipt.segments_rewritten >= 1 and receipt.snapshots_dropped == 3 and not receipt.dry_run
    assert set(receipt.memory_ids) == {piece.id for event in (old, new) for piece in event.pieces}
    assert set(dropped) >= set(rowid.tolist()) and set(rowid.tolist()) <= set(ledger.removed)
    marks = [ledger.memories.mark(event.fingerprint) for event in (old, new)]
    assert ledger.queries.is_erased(marks) == set(marks)
    assert ledger.queries.by_id(new.pieces[0].id) is None
    assert ledger.queries.search(["qwertzuiop"], 5, Filter()) == []
    ledger.say(turn("life goes on", 101))
    report = verify(ledger.directory)
    assert report.problems == [] and report.forgotten == 2 and report.turns == 61


def test_a_dry_run_counts_and_takes_nothing(ledger: Ledger) -> None:
    (event,) = ledger.say(turn("one two"), size=4)
    receipt = forget(ledger, event.pieces[0].id, "unknown", dry_run=True)
    assert (receipt.dry_run, receipt.id, receipt.turns, receipt.memories) == (True, "", 1, 2)
    assert ledger.queries.counts().memories == 2
    assert ledger.queries.resolve_forget(["unknown"], None).unknown == ("unknown",)


def test_forgetting_by_filter_takes_what_it_names_and_no_more(ledger: Ledger) -> None:
    ledger.say(*[turn(f"text {i}", i, session="x" if i % 2 else "y") for i in range(10)])
    assert forget(ledger, filter=Filter(sessions=("x",))).turns == 5
    assert ledger.queries.counts().memories == 5
    assert forget(ledger, filter=Filter(sessions=("x",))).turns == 0
    assert forget(ledger, filter=Filter()).turns == 5
    assert ledger.queries.counts().turns == 0
    assert verify(ledger.directory).problems == []


STEPS = ("log.erase", "memories.compact", "database.purge", "memories.finish_forgets")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("without_database", [False, True])
def test_a_forget_cut_off_at_any_step_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, without_database: bool
) -> None:
    directory = tmp_path / "space"
    secret = "qwertzuiop"
    with Ledger(directory, segment_bytes=1000) as ledger:
        events = ledger.say(*[turn(f"{secret} {i}", i) for i in range(6)], turn("stays", 9))
        owner, _, name = step.partition(".")

        def killed(*arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(getattr(ledger, owner), name, killed)
        with pytest.raises(KeyboardInterrupt):
            forget(ledger, *[event.pieces[0].id for event in events[:6]])
        monkeypatch.undo()
    if without_database:
        (directory / "memory.sqlite").unlink()
    with Ledger(directory, segment_bytes=1000) as ledger:
        assert resume(ledger) == 1
        assert traces(directory, secret) == []
        assert resume(ledger) == 0
        assert ledger.queries.counts().memories == 1
        assert ledger.queries.counts().erased == 6
        assert verify(directory).problems == []
        assert sum(isinstance(event, Erased) for event in ledger.log.replay()) == 6
        assert [e.turn.text for e in ledger.log.replay() if isinstance(e, TurnSaid)] == ["stays"]


def test_a_reader_that_keeps_old_pages_delays_the_last_traces_and_is_told(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "qwertzuiop"
    (event,) = ledger.say(turn(secret))
    with ledger.database.reader() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM memories").fetchone()
        real = ledger.database.purge
        with monkeypatch.context() as patch, pytest.raises(Unavailable, match="long read"):
            patch.setattr(ledger.database, "purge", lambda: real(timeout=0))
            forget(ledger, event.pieces[0].id)
        assert ledger.queries.by_id(event.pieces[0].id) is None
        connection.execute("COMMIT")
    assert resume(ledger) == 1
    assert traces(ledger.directory, secret) == []


def test_a_forget_that_the_database_has_no_room_for_says_so_and_is_finished_by_the_next_one(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.ledger import writes

    secret = "qwertzuiop"
    (event,) = ledger.say(turn(secret))

    def full(*arguments: object, **names: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch, pytest.raises(DiskFull):
        patch.setattr(writes, "set_applied", full)
        forget(ledger, event.pieces[0].id)
    ledger.memories.apply([]).result()
    assert ledger.memories.stalled is None
    assert traces(ledger.directory, secret)
    assert forget(ledger, event.pieces[0].id).turns == 0
    assert traces(ledger.directory, secret) == [] and verify(ledger.directory).problems == []


@settings(max_examples=15)
@given(
    texts=st.lists(st.text("甲乙丙丁戊ab c", min_size=1, max_size=400), min_size=2, max_size=25),
    gone=st.sets(st.integers(0, 24), min_size=1),
    size=st.sampled_from([20, 300]),
)
def test_no_forgotten_text_survives_among_any_neighbours(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], gone: set[int], size: int
) -> None:
    directory = tmp_path_factory.mktemp("erase")
    with Ledger(directory, segment_bytes=3000) as ledger:
        ids = []
        for i, text in enumerate(texts):
            events = ledger.say(turn(f"firstwords{i}x{text}middlewords{i}x{text}lastwords{i}x", i), size=size)
            ids.append(events[0].pieces[0].id)
        chosen = [i for i in range(len(texts)) if i in gone]
        forget(ledger, *[ids[i] for i in chosen])
        for i in chosen:
            # Long enough that none of the needles is in a file by chance: of five letters base64 leaves two.
            for word in (f"firstwords{i}x", f"middlewords{i}x", f"lastwords{i}x"):
                assert traces(directory, word) == []
        assert verify(directory).problems == []
