"""What is done to memories is an event, applied in the order of the log, and can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_fakes import START, Ledger, turn
from revision_fakes import (
    CANDIDATE,
    changed,
    confirm,
    forgetting,
    found,
    listed,
    merge,
    revisions,
    rows,
    say,
)

from edge.errors import FailedPrecondition, NotFound
from edge.ledger.events import Revised
from edge.ledger.revising import CHANGED
from edge.ledger.revisions import (
    CONFIRMED,
    MERGED,
    NOT_UNDOABLE,
    PROMOTED,
    REJECTED,
    UNDONE,
    WEIGHTED,
    Change,
    Fields,
    change,
)
from edge.ledger.verify import verify
from edge.types import Filter, MemoryState


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space") as ledger:
        yield ledger


def test_of_two_who_confirm_one_candidate_the_second_is_told_what_it_found(ledger: Ledger) -> None:
    (id,) = say(ledger, "我家的猫叫豆包")
    here = revisions(ledger)

    def attempt(by: str) -> str:
        try:
            done = here.revise(confirm(id), CONFIRMED, by)
        except FailedPrecondition as error:
            return error.message
        assert done is not None
        return done.by

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, map(str, range(8))))
    assert answers.count("it is CONFIRMED") == 7
    (event,) = [event for event in ledger.log.replay() if isinstance(event, Revised)]
    assert event.by in answers and event.changes == (
        Change(id, Fields(state=CANDIDATE), Fields(state=MemoryState.CONFIRMED)),
    )
    assert ledger.queries.by_ids([id])[id].state is MemoryState.CONFIRMED


def test_a_plan_made_of_what_was_there_before_is_refused(ledger: Ledger) -> None:
    (id,) = say(ledger, "一")
    old = ledger.queries.by_ids([id])[id]
    here = revisions(ledger)
    here.revise(changed(id, weight=2.0), WEIGHTED, "owner")
    with pytest.raises(FailedPrecondition) as caught:
        here.revise(lambda _: [change(old, weight=3.0)], WEIGHTED, "owner")
    assert caught.value.reason == CHANGED
    with pytest.raises(NotFound):
        here.revise(lambda _: [Change("nobody", Fields(weight=1.0), Fields(weight=2.0))], WEIGHTED, "owner")
    assert here.revise(changed(id, weight=2.0), WEIGHTED, "owner") is None


@pytest.mark.parametrize(
    "fields", [{"state": MemoryState.FORGOTTEN}, {"state": MemoryState.REJECTED, "archived": False}]
)
def test_states_that_need_more_than_a_revision_are_not_given_by_one(ledger: Ledger, fields: dict[str, Any]) -> None:
    (id,) = say(ledger, "一")
    with pytest.raises(ValueError, match=r"forget|archived"):
        revisions(ledger).revise(changed(id, **fields), WEIGHTED, "owner")


def test_a_rejected_candidate_is_out_of_recalls_and_lists_until_it_is_undone(ledger: Ledger) -> None:
    kept, gone = say(ledger, "我喜欢茶", "我喜欢咖啡")
    done = revisions(ledger).revise(changed(gone, state=MemoryState.REJECTED), REJECTED, "owner")
    assert done is not None
    assert listed(ledger) == [kept] == found(ledger, "喜欢")
    assert set(listed(ledger, Filter(include_archived=True))) == {kept, gone}
    assert listed(ledger, Filter(states=(MemoryState.REJECTED,))) == [gone]
    assert listed(ledger, Filter(states=(CANDIDATE,))) == [kept]
    assert revisions(ledger).restore([gone], "owner") == []
    revisions(ledger).undo(done.id, "owner")
    assert set(listed(ledger)) == {kept, gone} == set(found(ledger, "喜欢"))
    assert verify(ledger.directory).problems == []


def test_a_merged_memory_is_history_and_comes_back_whole(ledger: Ledger) -> None:
    older, newer = say(ledger, "钥匙在花盆下", "钥匙就在花盆下面", tags=("家",))
    (row,) = ledger.queries.select(Filter(until=START + 1), 9)  # type: ignore[union-attr]  # there are not more than 9
    ledger.memories.put_vectors("m", np.array([row]), np.ones((1, 4), np.float32)).result()
    ledger.memories.add_accesses({int(row): (3, START)}).result()
    before = rows(ledger)

    done = revisions(ledger).revise(merge(older, newer), MERGED, "rule")

    assert done is not None
    assert listed(ledger) == [newer] == found(ledger, "花盆")
    assert listed(ledger, Filter(tags=("家",))) == [newer]
    history = ledger.queries.by_id(older)
    assert history is not None and history.replaced_by == newer and history.valid_until == START
    assert listed(ledger, Filter(states=(MemoryState.SUPERSEDED,))) == [older]
    assert ledger.queries.by_ids([newer])[newer].access_count == 3
    assert list(ledger.queries.replaced_by([newer])) == [older]
    assert list(ledger.queries.vector_rowids("m")) == [] and row in ledger.removed
    assert verify(ledger.directory).problems == []

    undone = revisions(ledger).undo(done.id, "owner")
    assert rows(ledger) == before and undone.why == UNDONE and undone.undoes == done.id
    assert row in [rowid for rowid, _ in ledger.queries.pending("m", 0, 10)]
    assert set(found(ledger, "花盆")) == {older, newer}
    assert verify(ledger.directory).problems == []


def test_an_undo_can_be_undone_and_so_can_that(ledger: Ledger) -> None:
    (id,) = say(ledger, "一")
    here = revisions(ledger)
    first = here.revise(confirm(id), CONFIRMED, "owner")
    assert first is not None
    last = first
    for state in (CANDIDATE, MemoryState.CONFIRMED, CANDIDATE):
        undone = here.undo(last.id, "owner")
        assert ledger.queries.by_ids([id])[id].state is state and undone.undoes == last.id
        with pytest.raises(FailedPrecondition, match=undone.id):
            here.undo(last.id, "owner")
        last = undone
    with pytest.raises(NotFound):
        here.undo("nothing of this id", "owner")


def test_what_was_changed_again_since_cannot_be_undone_and_the_later_change_is_named(ledger: Ledger) -> None:
    (id,) = say(ledger, "一")
    here = revisions(ledger)
    first = here.revise(changed(id, weight=2.0), WEIGHTED, "owner")
    second = here.revise(changed(id, weight=3.0), WEIGHTED, "owner")
    assert first is not None and second is not None
    with pytest.raises(FailedPrecondition, match=second.id) as caught:
        here.undo(first.id, "owner")
    assert caught.value.reason == NOT_UNDOABLE
    here.undo(second.id, "owner")
    here.undo(first.id, "owner")
    assert ledger.queries.by_ids([id])[id].weight == 1.0


def test_recalls_between_a_merge_and_its_undo_are_kept(ledger: Ledger) -> None:
    older, newer = say(ledger, "一", "二")
    rowids = {memory.id: memory.rowid for memory in ledger.queries.by_ids([older, newer]).values()}
    ledger.memories.add_accesses({rowids[older]: (3, START), rowids[newer]: (1, START)}).result()
    done = revisions(ledger).revise(merge(older, newer), MERGED, "rule")
    assert done is not None
    ledger.memories.add_accesses({rowids[newer]: (2, START + 1)}).result()
    revisions(ledger).undo(done.id, "owner")
    counts = {memory.id: memory.access_count for memory in ledger.queries.by_ids([older, newer]).values()}
    assert counts == {older: 3, newer: 3}


def test_a_newer_version_of_a_turn_wins_over_what_is_said_of_the_older_one(ledger: Ledger) -> None:
    (event,) = ledger.say(turn("我住在上海", 1, state=CANDIDATE))
    id = event.pieces[0].id
    here = revisions(ledger)
    done = here.revise(confirm(id), CONFIRMED, "owner")
    assert done is not None
    ledger.say(turn("我住在杭州", 1))
    with pytest.raises(FailedPrecondition, match="newer version"):
        here.undo(done.id, "owner")
    # A plan that the new version came in between of.
    stale = Revised(
        0, 0, "late", CONFIRMED, "owner", (Change(id, Fields(state=CANDIDATE), Fields(state=MemoryState.CONFIRMED)),)
    )
    events, _ = ledger.log.submit(lambda n: ([Revised(n.next(), n.at, *astuple(stale)[2:])], None)).result()
    ledger.memories.apply(events).result()
    assert ledger.queries.by_ids([id])[id].state is MemoryState.SUPERSEDED
    assert found(ledger, "住") != [id] and verify(ledger.directory).problems == []


def astuple(event: Revised) -> tuple[Any, ...]:
    return (event.n, event.at, event.id, event.why, event.by, event.changes, event.undoes)


def test_archived_memories_leave_recalls_in_parts_and_come_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.ledger.revising.AT_ONCE", 2)
    ids = say(ledger, *(f"茶{n}" for n in range(5)))
    done = revisions(ledger).archive(ids, "rule")
    assert [len(one.changes) for one in done] == [2, 2, 1]
    assert listed(ledger) == [] == found(ledger, "茶")
    assert revisions(ledger).archive(ids, "rule") == []
    revisions(ledger).undo(done[0].id, "owner")
    assert set(listed(ledger)) == set(ids[:2])
    revisions(ledger).restore(ids, "owner")
    assert set(listed(ledger)) == set(ids) == set(found(ledger, "茶"))
    assert verify(ledger.directory).problems == []


def test_the_last_deed_of_somebody_is_that_of_nobody_else_and_goes_back_in_time(ledger: Ledger) -> None:
    here = revisions(ledger)
    first, second = say(ledger, "一", "二", by="phone")
    say(ledger, "三", by="owner")
    confirmed = here.revise(confirm(first), CONFIRMED, "phone")
    promoted = here.revise(changed(second, state=MemoryState.CONFIRMED), PROMOTED, "rule")
    assert confirmed is not None and promoted is not None
    assert [deed.id for deed in here.latest(9)][:2] == [promoted.id, confirmed.id]
    for expected in (confirmed.id, second, first):
        last = here.last_of("phone")
        assert last is not None and last.id == expected
        if expected == confirmed.id:
            here.undo(last.id, "phone")
        else:
            forgetting(ledger).forget([last.id], None)
    assert here.last_of("phone") is None and here.last_of("stranger") is None
