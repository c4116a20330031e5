"""Whatever is done can be undone in reverse order, survives a rebuild and a kill, and comes back from its line."""

from __future__ import annotations

import itertools
import json
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import START, Ledger
from revision_fakes import (
    CANDIDATE,
    FIELDS,
    HOUR,
    changed,
    deeds,
    forgetting,
    found,
    listed,
    merge,
    rebuilt,
    revisions,
    rows,
    say,
)

from edge.errors import EdgeError
from edge.ledger.events import Event, LineError, Revised, decode, encode
from edge.ledger.revisions import (
    CONFIRMED,
    MERGED,
    WEIGHTED,
    Change,
    Conflict,
    Fields,
    change,
    inverse,
)
from edge.ledger.verify import verify
from edge.types import Memory, MemoryState


def one_change(id: str, before: dict[str, Any], data: Callable[[], dict[str, Any]]) -> Change:
    after = {**before, **{name: value for name, value in data().items() if name in before}}
    return Change(id, Fields(**before), Fields(**after))  # type: ignore[typeddict-item]  # drawn from the fields


@given(st.data())
def test_a_revision_comes_back_from_its_line_and_holds_no_text(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.text("abc-", min_size=1), max_size=4, unique=True))
    changes = tuple(one_change(id, data.draw(FIELDS), lambda: data.draw(FIELDS)) for id in ids)
    event: Event = Revised(7, START, "id", data.draw(st.sampled_from([CONFIRMED, "dreamt"])), "owner", changes, "x")
    assert decode(encode(event)) == event
    assert json.loads(encode(event))["event"] == "revised"


def test_a_field_of_a_later_version_is_passed_over_and_a_value_that_makes_no_sense_is_damage() -> None:
    change = Change("a", Fields(weight=1.0), Fields(weight=2.0))
    line = encode(Revised(1, START, "id", WEIGHTED, "owner", (change,)))
    assert decode(sealed(line.replace(b'{"weight":2.0}', b'{"weight":2.0,"mood":"blue"}'))) == decode(line)
    for wrong in (b'{"weight":11}', b'{"weight":null}', b'{"state":"dreamt"}', b"{}", b'{"weight":"2"}', b"2"):
        with pytest.raises(LineError):
            decode(sealed(line.replace(b'{"weight":2.0}', wrong)))


def sealed(line: bytes) -> bytes:
    body = line.rstrip(b"\n")[:-18]
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


@pytest.mark.parametrize(
    "fields", [{"weight": float("nan")}, {"weight": -1.0}, {"access_count": -1}, {"replaced_by": ""}, {"state": 3}]
)
def test_what_the_log_cannot_hold_is_not_written(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AttributeError)):
        encode(Revised(1, START, "id", WEIGHTED, "owner", (Change("a", Fields(**fields), Fields(**fields)),)))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["confirm", "reject", "archive", "restore", "merge", "weigh", "date", "hide"]),
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 9),
    ),
    max_size=12,
)


def step(ledger: Ledger, ids: list[str], kind: str, first: int, second: int, value: int) -> str:
    """The id of what was done; empty when nothing was."""
    here, id = revisions(ledger), ids[first]
    now = ledger.queries.by_ids(ids)

    def living(memory: Memory) -> bool:
        return memory.state not in (MemoryState.SUPERSEDED, MemoryState.FORGOTTEN)

    if kind == "hide":
        return forgetting(ledger).forget([id], None, grace=HOUR).id
    if kind == "merge":
        if first == second or not living(now[id]) or not living(now[ids[second]]):
            return ""
        done = here.revise(merge(id, ids[second]), MERGED, "rule")
        return done.id if done else ""
    if kind in ("archive", "restore"):
        made = getattr(here, kind)(ids[min(first, second) : max(first, second) + 1], "rule")
        return made[0].id if made else ""
    if not living(now[id]):
        return ""
    fields: dict[str, Any] = {
        "confirm": {"state": MemoryState.CONFIRMED},
        "reject": {"state": MemoryState.REJECTED},
        "weigh": {"weight": float(value), "accessed_at": START + value},
        "date": {"valid_from": value, "valid_until": None if value % 2 else value + 1},
    }[kind]
    done = here.revise(changed(id, **fields), CONFIRMED, "owner")
    return done.id if done else ""


@settings(max_examples=40)
@given(STEPS, st.integers(0, 12))
def test_undoing_in_reverse_order_gives_the_first_state_and_a_rebuild_the_last(
    steps: list[tuple[str, int, int, int]], kept: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ledger = Ledger(Path(directory) / "space")
        try:
            ids = say(ledger, "甲乙", "乙丙", "丙丁", "丁戊", "戊甲", tags=("x",))
            first = rows(ledger)
            done = [id for id in (step(ledger, ids, *one) for one in steps) if id]
            assert verify(ledger.directory).problems == []
            undone = [revisions(ledger).undo(id, "owner").id for id in reversed(done[kept:])]
            if kept == 0:
                assert rows(ledger) == first
            live, told = rows(ledger), deeds(ledger)
            ledger = rebuilt(ledger)
            assert rows(ledger) == live and deeds(ledger) == told
            # And the undos in reverse order bring back what was undone.
            for id in reversed(undone):
                revisions(ledger).undo(id, "owner")
            for id in reversed(done):
                revisions(ledger).undo(id, "owner")
            assert rows(ledger) == first
            assert verify(ledger.directory).problems == []
        finally:
            ledger.close()


@given(st.data())
def test_an_inverse_takes_back_only_what_is_still_as_it_was_left(data: st.DataObject) -> None:
    memory = Memory(
        1, "a", "turn", CANDIDATE, "", "", "", 0, "", 0, 0, 1.0, (), 2, 0, False, 0, 1, b""
    )  # fmt: skip
    done = change(memory, **data.draw(FIELDS))
    after = applied(memory, done)
    (back,) = inverse([done], {"a": after}) or [Change("a", Fields(), Fields())]
    assert applied(after, back) == memory
    assert inverse([done], {}) == []
    other = data.draw(st.floats(0, 10).filter(lambda weight: weight not in (1.0, after.weight)))
    if "weight" in done.after:
        with pytest.raises(Conflict):
            inverse([done], {"a": applied(after, change(after, weight=other))})


def applied(memory: Memory, done: Change) -> Memory:
    return replace(memory, **done.after)  # type: ignore[arg-type]  # fields of Memory


def cut_off(ledger: Ledger, patch: pytest.MonkeyPatch, at: int) -> None:
    """The ledger's writer dies before its transaction number `at` from now on."""
    commit, count = ledger.memories._commit, itertools.count(1)

    def counted(batch: Any) -> None:
        if next(count) >= at:
            raise RuntimeError("killed")
        commit(batch)

    patch.setattr(ledger.memories, "_commit", counted)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_kill_between_the_log_and_the_rows_or_between_their_slices_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    directory = tmp_path / "space"
    with Ledger(directory) as ledger:
        ids = say(ledger, *(f"茶{n}" for n in range(120)))
        before = rows(ledger)
    with Ledger(directory) as ledger:
        cut_off(ledger, monkeypatch, at + 1)
        with pytest.raises((EdgeError, RuntimeError)):
            forgetting(ledger).forget(ids, None, grace=HOUR)
    with Ledger(directory) as ledger:
        assert listed(ledger) == [] == found(ledger, "茶") and verify(directory).problems == []
        (hidden,) = revisions(ledger).latest(9)
        cut_off(ledger, monkeypatch, at + 1)
        with pytest.raises((EdgeError, RuntimeError)):
            revisions(ledger).undo(hidden.id, "owner")
    with Ledger(directory) as ledger:
        assert rows(ledger) == before and verify(directory).problems == []
        assert revisions(ledger).latest(1)[0].undoes == hidden.id
