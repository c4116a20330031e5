"""What is forgotten with grace is hidden from everything, comes back whole, or goes with its history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_fakes import START, Ledger, turn
from revision_fakes import (
    EVERYTHING,
    HOUR,
    changed,
    forgetting,
    found,
    listed,
    merge,
    rebuilt,
    revisions,
    rows,
    say,
)

from edge.errors import FailedPrecondition
from edge.ledger.revisions import (
    MERGED,
    REJECTED,
    WEIGHTED,
)
from edge.ledger.verify import verify
from edge.types import Filter, MemoryState


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "space") as ledger:
        yield ledger


def test_a_forget_with_grace_shows_nothing_any_more_and_can_be_undone(ledger: Ledger) -> None:
    kept, secret = say(ledger, "我喜欢茶", "我的秘密是茶", tags=("x",))
    before = rows(ledger)
    ask = forgetting(ledger)

    receipt = ask.forget([secret], None, grace=HOUR)

    assert (receipt.turns, receipt.memories, receipt.candidates, receipt.words) == (1, 1, 1, 1)
    assert receipt.erased_at is not None and len(receipt.marks) == 1
    for filter in (EVERYTHING, Filter(include_archived=True), Filter(states=tuple(MemoryState)), Filter(tags=("x",))):
        assert listed(ledger, filter) == [kept]
    assert found(ledger, "茶") == [kept] and ledger.queries.by_id(secret) is None
    assert ledger.queries.hidden([turn("我的秘密是茶", 1, tags=("x",)).fingerprint()])
    assert ask.forget([secret], None, grace=HOUR).turns == 0
    assert verify(ledger.directory).problems == []

    undone = revisions(ledger).undo(receipt.id, "owner")
    assert rows(ledger) == before and set(found(ledger, "茶")) == {kept, secret}
    assert ask.carry_out(START + 10**15) == [] and ledger.queries.counts().erased == 0

    # The undo of the undo hides it again, under the forget's own time and id.
    revisions(ledger).undo(undone.id, "owner")
    (done,) = ask.carry_out(START + 10**15)
    assert done.id == receipt.id and done.marks == receipt.marks
    assert ledger.queries.by_ids([secret]) == {} and listed(ledger) == [kept]
    deed = revisions(ledger).find(receipt.id)
    assert deed is not None and deed.erased and "for good" in revisions(ledger).obstacle(deed)
    assert ask.carry_out(START + 10**15) == [] and verify(ledger.directory).problems == []


def test_a_hidden_turn_stays_hidden_when_its_source_says_more_and_only_it_is_erased(ledger: Ledger) -> None:
    (old,) = ledger.say(turn("旧的秘密", 1))
    ask = forgetting(ledger)
    receipt = ask.forget([old.pieces[0].id], None, grace=HOUR)
    (new,) = ledger.say(turn("新的话", 1))
    assert ledger.queries.by_id(old.pieces[0].id) is None
    (done,) = ask.carry_out(START + 10**15)
    assert (done.id, done.turns) == (receipt.id, 1)
    assert listed(ledger) == [new.pieces[0].id] and verify(ledger.directory).problems == []


def test_forgetting_a_memory_takes_what_it_had_replaced_and_a_filter_brings_that_back(ledger: Ledger) -> None:
    older, newer, other = say(ledger, "我住在上海", "我住在杭州", "别的", tags=("x",))
    (third,) = say(ledger, "我住在北京", session="later")
    here = revisions(ledger)
    here.revise(merge(older, newer), MERGED, "rule")
    here.revise(merge(newer, third), MERGED, "rule")
    before = rows(ledger)

    # Named by a filter: what it took the place of is again what it was; a link in the middle is mended.
    dry = forgetting(ledger).forget([third], None, dry_run=True)
    assert set(dry.memory_ids) == {older, newer, third}
    forgetting(ledger).forget([], Filter(sessions=("later",)))
    assert set(listed(ledger)) == {newer, other}
    back = ledger.queries.by_ids([newer, older])
    assert back[newer].replaced_by is None and back[older].replaced_by == newer
    assert verify(ledger.directory).problems == []
    assert before[older] == rows(ledger)[older]

    # Named by id: all that said the same goes with it.
    receipt = forgetting(ledger).forget([newer], None)
    assert set(receipt.memory_ids) == {older, newer} and receipt.revisions == 3
    assert listed(ledger) == [other] and verify(ledger.directory).problems == []


def test_the_link_over_a_forgotten_one_leads_to_what_took_its_place(ledger: Ledger) -> None:
    older, newer, third = say(ledger, "我住在上海", "我住在杭州", "我住在北京")
    here = revisions(ledger)
    here.revise(merge(older, newer), MERGED, "rule")
    here.revise(merge(newer, third), MERGED, "rule")
    forgetting(ledger).forget([newer], None, history=False)
    assert ledger.queries.by_ids([older])[older].replaced_by == third
    assert listed(ledger) == [third] and verify(ledger.directory).problems == []


def test_a_forget_by_filter_reaches_what_is_archived_rejected_or_replaced(ledger: Ledger) -> None:
    archived, rejected, replaced, newer = say(ledger, "一", "二", "三", "四", tags=("x",))
    here = revisions(ledger)
    here.archive([archived], "rule")
    here.revise(changed(rejected, state=MemoryState.REJECTED), REJECTED, "owner")
    here.revise(merge(replaced, newer), MERGED, "rule")
    assert forgetting(ledger).forget([], Filter(tags=("x",))).turns == 4
    assert rows(ledger) == {} and verify(ledger.directory).problems == []


def test_an_id_of_an_erased_memory_may_stay_in_a_revision_and_nothing_else_of_it(ledger: Ledger) -> None:
    first, second = say(ledger, "qwertzuiop", "二")
    here = revisions(ledger)
    both = here.revise(changed(first, second, weight=3.0), WEIGHTED, "owner")
    alone = here.revise(changed(first, weight=4.0), WEIGHTED, "owner")
    assert both is not None and alone is not None
    forgetting(ledger).forget([first], None)
    with pytest.raises(FailedPrecondition, match="forgotten"):
        here.undo(alone.id, "owner")
    here.undo(both.id, "owner")
    assert ledger.queries.by_ids([second])[second].weight == 1.0
    assert not [path for path in ledger.directory.rglob("*") if path.is_file() and b"qwertz" in path.read_bytes()]
    again = rebuilt(ledger)
    with again:
        assert list(rows(again)) == [second] and verify(again.directory).problems == []
