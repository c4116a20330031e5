"""Merging, replacing and promoting by rule, on a real ledger: what is done, what never is, and what can be undone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import START, Ledger, turn
from revision_fakes import HOUR, changed, confirm, forgetting, rebuilt, revisions, rows

from edge.admission import merge
from edge.admission.merge import Relation
from edge.ledger.merges import Merges
from edge.ledger.queries import Queries
from edge.ledger.revising import Revisions
from edge.ledger.revisions import MERGED, PROMOTED, REPLACED
from edge.types import Filter, Memory, MemoryState
from edge.upkeep import merging
from edge.upkeep.merger import Merger

CANDIDATE, CONFIRMED, SUPERSEDED = MemoryState.CANDIDATE, MemoryState.CONFIRMED, MemoryState.SUPERSEDED
DAY = 24 * HOUR
NUTS = ("我对花生过敏", "我对花生过敏。", "我对花生是过敏的", "我对花生过敏！")
HERE, THERE = "我住在北京", "我住在上海"


class Everything(dict[str, object]):
    """Indexes without models, so that no vector is waited for."""

    def near(self, queries: Queries, rowid: int, count: int) -> list[tuple[str, int, float]]:
        found = queries.select(Filter(include_archived=True), 10_000)
        assert found is not None
        return [("model", int(one), 0.95) for one in found][:count]


class Shelf:
    """A space in which everything is near everything, so that the words alone decide."""

    name = "public"

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.merges = Merges(ledger.database)
        self.revisions: Any = revisions(ledger)
        self.queries = ledger.queries
        self.indexes: Any = Everything()
        self._seqs = itertools.count(ledger.queries.counts().turns)

    def check_room(self) -> None:
        """There is enough."""

    def flush_accesses(self) -> None:
        """Nothing is recalled here."""

    def say(self, text: str, state: MemoryState = CANDIDATE, at: int = 0, **parts: Any) -> str:
        """The id of what is said; `at` in days."""
        seq = next(self._seqs)
        (event,) = self.ledger.say(turn(text, seq, state=state, occurred_at=START + at * DAY, **parts))
        return event.pieces[0].id

    def settle(self) -> None:
        merger = Merger(lambda: [self], lambda: True, lambda: 0.0)
        for _ in range(1000):
            if not merger.slice(self):
                return
        raise AssertionError("it never comes to an end")

    def get(self, id: str) -> Memory:
        return self.ledger.queries.by_ids([id])[id]

    def living(self) -> list[str]:
        return [memory.text for memory in self.ledger.queries.list_page(Filter(), 1000)[0]]

    def made(self, *whys: str) -> list[Any]:
        return [deed for deed in self.revisions.latest(1000) if deed.why in (whys or (MERGED, REPLACED, PROMOTED))]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with Ledger(tmp_path / "space") as ledger:
        yield Shelf(ledger)


def test_what_says_the_same_later_stands_for_both_and_carries_what_both_were(shelf: Shelf) -> None:
    older = shelf.say(NUTS[0], CONFIRMED, at=0, weight=5.0, tags=("health",))
    newer = shelf.say(NUTS[1], at=1, tags=("food", "health"))
    shelf.revisions.revise(changed(older, access_count=3, accessed_at=START + 9 * DAY), "weighted", "me")
    shelf.revisions.revise(changed(newer, access_count=1, accessed_at=START + 2 * DAY), "weighted", "me")

    shelf.settle()

    was, now = shelf.get(older), shelf.get(newer)
    assert (was.state, was.replaced_by, was.valid_until) == (SUPERSEDED, newer, START + DAY)
    assert (now.state, now.weight, now.access_count, now.accessed_at) == (CONFIRMED, 5.0, 4, START + 9 * DAY)
    assert shelf.living() == [NUTS[1]] and shelf.ledger.queries.history_of(newer) == [older]
    assert [(deed.by, deed.memory_ids) for deed in shelf.made()] == [("rule", (older, newer))]
    assert shelf.merges.counts() == {MERGED: 1}


def test_an_undone_merge_is_undone_whole_and_never_done_again(shelf: Shelf) -> None:
    older, newer = shelf.say(NUTS[0], CONFIRMED, at=0, weight=5.0), shelf.say(NUTS[1], at=1)
    before = shelf.get(newer)
    shelf.settle()

    shelf.revisions.undo(shelf.made(MERGED)[0].id, "owner")
    shelf.settle()

    assert sorted(shelf.living()) == sorted(NUTS[:2])
    assert (shelf.get(newer).state, shelf.get(newer).weight) == (before.state, before.weight)
    assert shelf.get(older).replaced_by is None and shelf.merges.counts() == {}
    # Nor does a third one take the place of what was brought back.
    third = shelf.say(NUTS[2], at=2)
    shelf.settle()
    assert shelf.get(older).state is CONFIRMED
    assert shelf.get(newer).replaced_by == third


def test_what_contradicts_takes_the_place_and_says_from_when_to_when(shelf: Shelf) -> None:
    older, newer = shelf.say(HERE, at=0), shelf.say(THERE, at=3)
    shelf.settle()
    was, now = shelf.get(older), shelf.get(newer)
    assert (was.state, was.replaced_by, was.valid_until) == (SUPERSEDED, newer, START + 3 * DAY)
    assert (now.state, now.valid_from) == (CANDIDATE, START + 3 * DAY)
    # Said again it has held since it was said first.
    again = shelf.say(f"{THERE}。", at=7)
    shelf.settle()
    assert shelf.get(again).valid_from == START + 3 * DAY and shelf.living() == [f"{THERE}。"]
    assert [deed.why for deed in shelf.made()] == [MERGED, REPLACED]


def test_a_proposal_contradicts_nothing_that_is_known_until_its_owner_confirms_it(shelf: Shelf) -> None:
    known, proposed = shelf.say(HERE, CONFIRMED, at=0, weight=5.0), shelf.say(THERE, at=1)
    shelf.settle()
    assert sorted(shelf.living()) == sorted((HERE, THERE)) and not shelf.made()
    shelf.revisions.revise(confirm(proposed), "confirmed", "owner")
    shelf.settle()
    assert shelf.living() == [THERE] and shelf.get(known).replaced_by == proposed


def test_what_only_a_rule_takes_for_known_does_not_contradict_what_its_owner_said(shelf: Shelf) -> None:
    shelf.say(HERE, CONFIRMED, at=0, weight=5.0)
    for at in range(1, 4):
        shelf.say(THERE + "。" * at, at=at)
    shelf.settle()
    assert sorted(shelf.living()) == sorted((HERE, THERE + "。。。"))
    assert [deed.why for deed in shelf.made()] == [PROMOTED, MERGED, MERGED]
    # Said once more, it is as firm as what was merged into it, and no firmer.
    newest = shelf.say(THERE, at=5)
    shelf.settle()
    assert shelf.get(newest).state is CONFIRMED and shelf.merges.known_by_rule(newest)
    assert sorted(shelf.living()) == sorted((HERE, THERE))


def test_what_is_temporary_archived_rejected_or_forgotten_takes_no_part(shelf: Shelf) -> None:
    temporary = shelf.say(NUTS[0], MemoryState.TEMPORARY, at=0)
    archived, rejected, hidden = (shelf.say(text, at=at) for at, text in enumerate(NUTS[:3], 1))
    shelf.revisions.archive([archived], "owner")
    shelf.revisions.revise(changed(rejected, state=MemoryState.REJECTED), "rejected", "owner")
    shelf.revisions.hide([hidden], None, "owner", id="forget", history=True)
    kept = shelf.say(NUTS[3], at=9)
    shelf.settle()
    assert not shelf.made() and shelf.get(kept).state is CANDIDATE
    assert shelf.get(temporary).replaced_by is None
    # What comes back meets what was said meanwhile.
    shelf.revisions.restore([archived], "owner")
    shelf.revisions.undo("forget", "owner")
    shelf.settle()
    assert {shelf.get(id).state for id in (archived, hidden)} == {SUPERSEDED} and shelf.get(kept).state is CONFIRMED


def test_two_speakers_and_the_parts_of_one_turn_stand_apart(shelf: Shelf) -> None:
    shelf.say(NUTS[0], role="Alice")
    shelf.say(NUTS[0], role="Bob", at=1)
    shelf.ledger.say(turn(NUTS[0] * 2, 70, state=CANDIDATE), size=len(NUTS[0]))
    shelf.settle()
    assert len(shelf.living()) == 4 and not shelf.made()


def test_no_tag_is_lost(shelf: Shelf) -> None:
    shelf.say(NUTS[0], tags=("health",))
    shelf.say(NUTS[1], at=1)
    shelf.settle()
    assert len(shelf.living()) == 2


def test_no_kind_that_somebody_chose_is_lost(shelf: Shelf) -> None:
    chosen, note = shelf.say(NUTS[0], CONFIRMED, kind="diet"), shelf.say(NUTS[1], CONFIRMED, at=1, kind="note")
    shelf.settle()
    assert shelf.get(chosen).state is shelf.get(note).state is CONFIRMED
    again = shelf.say(NUTS[2], at=2, kind="diet")
    shelf.settle()
    # The note's words are in it; what the box itself called it may go.
    assert shelf.get(chosen).replaced_by == shelf.get(note).replaced_by == again


def test_tomorrow_said_on_another_day_is_another_day(shelf: Shelf) -> None:
    for at in range(2):
        shelf.say("明天下午三点去看牙医", at=at)
    shelf.settle()
    assert len(shelf.living()) == 2


@pytest.mark.parametrize("texts", [NUTS[:3], NUTS[:1] * 3])
def test_what_was_said_three_times_is_known(shelf: Shelf, texts: Sequence[str]) -> None:
    for at, text in enumerate(texts):
        shelf.say(text, at=at, session=f"s{at}")
        shelf.settle()
        (memory,) = shelf.ledger.queries.list_page(Filter(), 9)[0]
        assert memory.state is (CONFIRMED if at == 2 else CANDIDATE)
    assert next((deed.why, deed.by) for deed in shelf.made()) == (PROMOTED, "rule")


def test_the_newest_is_known_by_then_even_if_it_came_first(shelf: Shelf) -> None:
    newest = shelf.say(NUTS[0], at=9)
    for at in range(2):
        shelf.settle()
        assert shelf.get(newest).state is CANDIDATE
        shelf.say(NUTS[at + 1], at=at)
    shelf.settle()
    assert shelf.get(newest).state is CONFIRMED


def test_what_was_recalled_five_times_is_known(shelf: Shelf) -> None:
    id = shelf.say(NUTS[0])
    for _ in range(5):
        shelf.settle()
        assert shelf.get(id).state is CANDIDATE
        shelf.ledger.memories.add_accesses({shelf.get(id).rowid: (1, START)}).result()
    shelf.settle()
    assert shelf.get(id).state is CONFIRMED


def test_an_undone_promotion_is_never_done_again(shelf: Shelf) -> None:
    for at in range(3):
        shelf.say(NUTS[at], at=at)
    shelf.settle()
    shelf.revisions.undo(shelf.made(PROMOTED)[0].id, "owner")
    shelf.ledger.memories.add_accesses(dict.fromkeys(range(1, 4), (9, START))).result()
    shelf.settle()
    later = shelf.say(NUTS[3], at=9)
    shelf.settle()
    assert shelf.get(later).state is CANDIDATE and shelf.living() == [NUTS[3]]
    assert not [deed for deed in shelf.made(PROMOTED) if not deed.undone_by]
    # Its owner may still take it for known.
    shelf.revisions.revise(confirm(later), "confirmed", "owner")
    shelf.settle()
    assert shelf.get(later).state is CONFIRMED


def test_what_is_forgotten_or_decided_in_the_middle_is_left_alone(shelf: Shelf) -> None:
    real: Revisions = shelf.revisions
    meanwhile: list[Callable[[], object]] = []

    class Late:
        def revise(self, *arguments: Any) -> Any:
            if meanwhile:
                meanwhile.pop()()
            return real.revise(*arguments)

    older, newer = shelf.say(NUTS[0], at=0), shelf.say(NUTS[1], at=1)
    shelf.revisions = Late()
    meanwhile.append(lambda: forgetting(shelf.ledger).forget([newer], None))
    merging.look(shelf, shelf.get(older))
    assert shelf.get(older).state is CANDIDATE and not meanwhile

    newer = shelf.say(NUTS[2], at=2)
    meanwhile.append(lambda: real.revise(changed(older, state=MemoryState.REJECTED), "rejected", "owner"))
    merging.look(shelf, shelf.get(newer))
    assert shelf.get(older).state is MemoryState.REJECTED and not meanwhile
    assert not [deed for deed in real.latest(100) if deed.by == "rule"]


def test_one_text_that_cannot_be_compared_keeps_no_other_waiting(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def relate(older: str, newer: str, *rest: Any, **more: Any) -> Relation:
        if "猫" in older + newer:
            raise RecursionError(newer)
        return merge.relate(older, newer, *rest, **more)

    monkeypatch.setattr(merging, "relate", relate)
    shelf.say("我家的猫叫豆包", role="a")
    shelf.say("我家的猫叫豆包", at=1, role="a")
    shelf.say(NUTS[0])
    shelf.say(NUTS[1], at=1)
    shelf.settle()
    assert NUTS[0] not in shelf.living() and len(shelf.living()) == 3
    assert "RecursionError" in caplog.text and "猫" not in caplog.text


def test_made_anew_from_the_log_all_is_looked_at_again_and_nothing_is_done_twice(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "space")
    shelf = Shelf(ledger)
    for at, text in enumerate((*NUTS, HERE, THERE, "我喜欢爬山")):
        shelf.say(text, at=at)
    shelf.settle()
    before, deeds = rows(ledger), shelf.made()
    with rebuilt(ledger) as again:
        shelf = Shelf(again)
        assert [memory.text for memory in shelf.merges.unlooked((), 10)] == [NUTS[3], THERE, "我喜欢爬山"]
        shelf.settle()
        assert shelf.merges.unlooked((), 10) == [] and shelf.made() == deeds
        assert rows(again) == before


def test_a_storm_of_a_hundred_ends_with_one(shelf: Shelf) -> None:
    for at in range(100):
        shelf.say(NUTS[at % 4], at=at // 10, session=f"s{at}")
    shelf.settle()
    assert len(shelf.living()) == 1 and len(shelf.made(MERGED)) == 99
    (left,) = shelf.ledger.queries.list_page(Filter(), 9)[0]
    assert left.state is CONFIRMED and shelf.merges.times_said(left.id, 1000) == 100


# Each fact in three ways, and for two of them another value that contradicts it.
FACTS = (NUTS[:3], ("我住在北京", "我住在北京。", "我住北京"), ("我住在上海", "我住在上海。", "我住上海"))


@settings(max_examples=20)
@given(said=st.permutations([(fact, way) for fact in range(3) for way in range(3)]), together=st.booleans())
def test_which_facts_live_does_not_depend_on_the_order_in_which_they_came(
    tmp_path_factory: pytest.TempPathFactory, said: Sequence[tuple[int, int]], together: bool
) -> None:
    with Ledger(tmp_path_factory.mktemp("space")) as ledger:
        shelf = Shelf(ledger)
        for fact, way in said:
            # When they were said is fixed: first all of the first fact, and so on.
            shelf.say(FACTS[fact][way], at=3 * fact + way, session=f"s{fact}{way}")
            if not together:
                shelf.settle()
        shelf.settle()
        assert sorted(shelf.living()) == sorted((FACTS[0][2], FACTS[2][2]))


def test_what_was_merged_into_a_version_that_holds_no_more_is_again_what_it_was(shelf: Shelf) -> None:
    asked, lasting = shelf.say(NUTS[0], CONFIRMED, at=0, weight=5.0), shelf.say(HERE, CONFIRMED, at=0)
    heard = shelf.say(NUTS[1], at=1, session="stream")
    moved = shelf.say(THERE, CONFIRMED, at=1, session="stream")
    before = shelf.get(asked), shelf.get(lasting)
    shelf.settle()
    assert (shelf.get(asked).replaced_by, shelf.get(lasting).replaced_by) == (heard, moved)

    # The stream goes on: what it was heard to say, it had not said to the end.
    for id, text in ((heard, f"{NUTS[1]}他说的是他弟弟"), (moved, f"{THERE}吗")):
        newer = turn(text, shelf.get(id).seq, session="stream", state=MemoryState.TEMPORARY)
        shelf.ledger.say(newer)
    shelf.settle()
    assert (shelf.get(asked), shelf.get(lasting)) == before
    assert {NUTS[0], HERE} <= set(shelf.living())
    (back,) = shelf.made("restored")
    assert (back.by, set(back.memory_ids)) == ("rule", {asked, lasting})

    # Who takes that back is not asked twice.
    shelf.revisions.undo(back.id, "owner")
    shelf.settle()
    assert not {NUTS[0], HERE} & set(shelf.living())


def test_a_version_that_says_it_again_takes_the_place_of_both(shelf: Shelf) -> None:
    asked, heard = shelf.say(NUTS[0], CONFIRMED, at=0, weight=5.0), shelf.say(NUTS[1], at=1, session="stream")
    shelf.settle()
    (event,) = shelf.ledger.say(
        turn(NUTS[2], shelf.get(heard).seq, session="stream", state=CANDIDATE, occurred_at=START + DAY)
    )
    shelf.settle()
    newest = event.pieces[0].id
    assert shelf.living() == [NUTS[2]] and shelf.get(asked).replaced_by == newest
    assert (shelf.get(newest).state, shelf.get(newest).weight) == (CONFIRMED, 5.0)


def test_what_a_rejected_one_had_contradicted_holds_again_and_what_says_the_same_does_not(shelf: Shelf) -> None:
    here, nuts = shelf.say(HERE, at=0), shelf.say(NUTS[0], at=0)
    there, again = shelf.say(THERE, at=1), shelf.say(NUTS[1], at=1)
    shelf.settle()
    assert (shelf.get(here).replaced_by, shelf.get(nuts).replaced_by) == (there, again)
    for id in (there, again):
        shelf.revisions.revise(changed(id, state=MemoryState.REJECTED), "rejected", "owner")
    shelf.settle()
    assert shelf.living() == [HERE] and shelf.get(here).valid_until is None


def test_who_is_handed_on_by_a_forget_is_what_it_was_when_the_last_is_forgotten(shelf: Shelf) -> None:
    ids = []
    for at, (text, state) in enumerate(zip(NUTS[:3], (CONFIRMED, CANDIDATE, CANDIDATE), strict=True)):
        ids.append(shelf.say(text, state, at=at, session=f"s{at}"))
        shelf.settle()
    before, *_ = ids
    ask = forgetting(shelf.ledger)
    ask.forget([], Filter(sessions=("s1",)))
    assert shelf.get(before).replaced_by == ids[2]
    ask.forget([], Filter(sessions=("s2",)))
    assert (shelf.get(before).state, shelf.get(before).replaced_by) == (CONFIRMED, None)
    assert shelf.living() == [NUTS[0]]


def test_each_state_of_a_memory_is_looked_at_once(shelf: Shelf) -> None:
    shelf.say("我喜欢爬山")
    shelf.say("我的车停在地下二层", CONFIRMED)
    shelf.settle()
    assert shelf.merges.unlooked((), 10) == []
    (first,) = [memory for memory in shelf.ledger.queries.list_page(Filter(), 9)[0] if memory.state is CANDIDATE]
    shelf.revisions.revise(confirm(first.id), "confirmed", "owner")
    assert [memory.id for memory in shelf.merges.unlooked((), 10)] == [first.id]


def test_nothing_is_looked_at_before_each_model_has_had_it(shelf: Shelf) -> None:
    import numpy as np

    id = shelf.say(NUTS[0])
    row = np.array([shelf.get(id).rowid], np.int64)
    assert shelf.merges.unlooked(("a", "b"), 10) == []
    shelf.ledger.memories.put_vectors("a", row, np.full((1, 4), 0.5, np.float32)).result()
    assert shelf.merges.unlooked(("a", "b"), 10) == []
    shelf.ledger.memories.refuse_vectors("b", [int(row[0])], "NOT_ROUTED").result()
    assert [memory.id for memory in shelf.merges.unlooked(("a", "b"), 10)] == [id]
