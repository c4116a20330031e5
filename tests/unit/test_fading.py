"""The sweep over real spaces, by clocks that the test moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_open_spaces import IDLE, AtOnce, opened

from edge.backlog import Backlog
from edge.config import Config, Decaying, Storage
from edge.errors import DiskFull, FailedPrecondition, Unavailable
from edge.ledger.coldfiles import paths, read
from edge.ledger.erase import Unfinished
from edge.ledger.revisions import ARCHIVED, COOLED, NOT_UNDOABLE, RESTORED, Revision
from edge.ledger.verify import verify
from edge.lexicon.words import WordLexicon
from edge.space import Space
from edge.spaces import Spaces
from edge.types import Filter, MemoryState, Turn, TurnState
from edge.upkeep import fading as sweeping
from edge.upkeep.erased import prove
from edge.upkeep.fading import Fading, Swept, Watched
from edge.upkeep.merger import Merger

HOUR, DAY = 3600.0, 86_400.0
START = 1_750_000_000_000_000
SHOWN, ALL = Filter(), Filter(include_archived=True)


class Clocks:
    """Both go on by `seconds`; the wall clock is off by `wrong` seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.wrong = 0.0

    def now(self) -> int:
        return START + round((self.seconds + self.wrong) * 1e6)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def spaces(tmp_path: Path, clocks: Clocks) -> Iterator[Spaces]:
    yield from running(tmp_path, clocks)


def running(data: Path, clocks: Clocks, read_only: str = "") -> Iterator[Spaces]:
    vectorizer = AtOnce()
    backlog = Backlog({vectorizer.info.id: vectorizer})
    config = Config(storage=Storage(space_idle=IDLE))
    made = Spaces(data, config, clocks, WordLexicon(), backlog, [vectorizer.info], read_only=read_only)
    try:
        made.open_all()
        backlog.start()
        yield made
    finally:
        made.close()
        backlog.close()


@pytest.fixture
def space(spaces: Spaces) -> Space:
    return spaces.open("public")


@pytest.fixture
def fading(spaces: Spaces, clocks: Clocks) -> Fading:
    return Fading(spaces, Decaying(), clocks)


def say(space: Space, *texts: str, **parts: Any) -> list[str]:
    """Their ids."""
    seq = space.queries.counts().turns
    turns = [
        Turn(
            **{"source": "t", "session": "s", "seq": seq + n, "role": "user", "occurred_at": START, "text": text}
            | parts
        )
        for n, text in enumerate(texts)
    ]
    stored = space.ingest.store(turns).result(5)
    stored.searchable.result(5)
    return [id for result in stored.results for id in result.memory_ids]


def shown(space: Space) -> set[str]:
    return {memory.id for memory in space.list_page(SHOWN, 1000, None)}


def archived(space: Space) -> set[str]:
    return {memory.id for memory in space.list_page(ALL, 1000, None) if memory.archived}


def wait(fading: Fading, clocks: Clocks, seconds: float) -> None:
    """In steps, as the schedule has it; a day at a time is enough where nothing is looked at more often."""
    step = min(seconds, DAY)
    for _ in range(round(seconds / step)):
        clocks.seconds += step
        fading.run()


def last(space: Space) -> Revision:
    deed = space.revisions.latest(1)[0]
    with space._database.reader() as connection:
        found = sweeping_history(connection, deed.id)
    assert found is not None
    return found


def sweeping_history(connection: Any, id: str) -> Revision | None:
    from edge.ledger.history import revision

    return revision(connection, id)


def test_what_nobody_used_for_long_is_archived_by_the_rule(space: Space, fading: Fading, clocks: Clocks) -> None:
    old = say(space, "去年的雨伞在门后", "前年的合同在书房")
    wait(fading, clocks, 60 * DAY)
    assert archived(space) == set()
    new = say(space, "新的雨伞在车里")
    wait(fading, clocks, 10 * DAY)
    assert archived(space) == set(old)
    assert shown(space) == set(new)
    done = last(space)
    assert (done.why, done.by, {one.id for one in done.changes}) == (ARCHIVED, "rule", set(old))
    # Once is enough.
    wait(fading, clocks, DAY)
    assert last(space) == done


def test_history_that_is_read_in_today_is_not_archived_tomorrow(space: Space, fading: Fading, clocks: Clocks) -> None:
    ids = say(space, "五年前的合同在书房", occurred_at=START - 1800 * 86_400_000_000)
    wait(fading, clocks, 60 * DAY)
    assert shown(space) == set(ids)
    wait(fading, clocks, 10 * DAY)
    assert archived(space) == set(ids)


def test_what_is_recalled_from_the_archive_comes_back_with_the_next_sweep(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    wanted, other = say(space, "去年的雨伞在门后", "前年的合同在书房")
    wait(fading, clocks, 70 * DAY)
    assert archived(space) == {wanted, other}
    space.touch([memory.rowid for memory in space.by_ids([wanted])])
    wait(fading, clocks, HOUR)
    assert archived(space) == {other}
    assert (last(space).why, last(space).by) == (RESTORED, "rule")


def test_what_the_owner_archived_or_rejected_is_never_brought_back(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    away, rejected, kept = say(space, "旧钥匙在抽屉里", "我喜欢早起跑步", "新钥匙在门口", state=MemoryState.CANDIDATE)
    space.revisions.archive([away], "owner")
    space.revisions.revise(
        lambda q: [space.revisions.change(q.by_ids([rejected])[rejected], state=MemoryState.REJECTED)],
        "rejected",
        "owner",
    )
    space.touch([memory.rowid for memory in space.by_ids([away, rejected])])
    wait(fading, clocks, 2 * DAY)
    assert shown(space) == {kept}


def test_an_undone_sweep_is_not_done_again_at_once(space: Space, fading: Fading, clocks: Clocks) -> None:
    ids = say(space, "去年的雨伞在门后", "前年的合同在书房")
    wait(fading, clocks, 70 * DAY)
    space.revisions.undo(last(space).id, "owner")
    wait(fading, clocks, 60 * DAY)
    assert shown(space) == set(ids)
    # To bring it back was to use it.
    wait(fading, clocks, 10 * DAY)
    assert archived(space) == set(ids)


def test_what_was_brought_back_by_hand_and_archived_by_hand_stays_so(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    ids = say(space, "去年的雨伞在门后")
    wait(fading, clocks, 70 * DAY)
    space.revisions.restore(ids, "owner")
    space.revisions.archive(ids, "owner")
    space.touch([memory.rowid for memory in space.by_ids(ids)])
    wait(fading, clocks, 2 * DAY)
    assert archived(space) == set(ids)


def test_what_was_asked_to_be_remembered_never_leaves(space: Space, fading: Fading, clocks: Clocks) -> None:
    ids = say(space, "护照在保险柜里", state=MemoryState.CONFIRMED, weight=5.0)
    wait(fading, clocks, 10 * DAY)
    clocks.seconds += 4000 * DAY
    fading.run()
    wait(fading, clocks, 3 * DAY)
    assert shown(space) == set(ids)


def test_a_clock_that_jumps_is_not_believed_for_an_hour(space: Space, fading: Fading, clocks: Clocks) -> None:
    ids = say(space, "雨伞在门后")
    wait(fading, clocks, 2 * HOUR)
    clocks.wrong = 365 * DAY
    fading.run()
    for _ in range(11):
        wait(fading, clocks, 300.0)
    clocks.wrong = 0
    wait(fading, clocks, 2 * HOUR)
    assert shown(space) == set(ids)


def test_what_a_wrong_clock_archived_comes_back_when_it_is_set_right(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    ids = say(space, "雨伞在门后", "合同在书房")
    clocks.wrong = 365 * DAY
    fading.run()
    wait(fading, clocks, 2 * HOUR)
    assert archived(space) == set(ids)
    clocks.wrong = 0
    fading.run()
    wait(fading, clocks, 2 * HOUR)
    assert shown(space) == set(ids)


def test_a_clock_that_is_set_back_a_year_moves_nothing(space: Space, fading: Fading, clocks: Clocks) -> None:
    old = say(space, "雨伞在门后")
    wait(fading, clocks, 70 * DAY)
    new = say(space, "合同在书房")
    clocks.wrong = -365 * DAY
    fading.run()
    wait(fading, clocks, 2 * HOUR)
    # By that clock nothing is old.
    assert shown(space) == {*old, *new}
    clocks.wrong = 0
    fading.run()
    wait(fading, clocks, 2 * HOUR)
    assert (archived(space), shown(space)) == (set(old), set(new))


def test_a_sweep_says_the_same_after_the_views_are_made_anew(
    spaces: Spaces, space: Space, fading: Fading, clocks: Clocks
) -> None:
    ids = say(space, "雨伞在门后", "合同在书房", "相机在柜子里")
    wait(fading, clocks, 70 * DAY)
    space.revisions.restore(ids[:1], "owner")
    before = archived(space)
    spaces.rebuild("public", from_log=True)
    assert archived(spaces.open("public")) == before == set(ids[1:])


def test_a_closed_space_is_swept_once_a_day(spaces: Spaces, clocks: Clocks, fading: Fading) -> None:
    say(spaces.open("private/desk"), "台灯是绿色的那一盏")
    clocks.seconds = 70 * DAY
    spaces.close_idle()
    assert not opened(spaces)
    fading.run()
    wait(fading, clocks, DAY)
    spaces.close_idle()
    wait(fading, clocks, 600.0)
    desk = spaces.open("private/desk")
    assert len(archived(desk)) == 1


def test_one_space_that_fails_does_not_keep_the_others_from_being_swept(
    spaces: Spaces, clocks: Clocks, fading: Fading, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = ["private/a", "private/b", "private/c"]
    for name in names:
        say(spaces.open(name), "台灯是绿色的那一盏")

    def full(*_: object, **__: object) -> None:
        raise DiskFull("no room left")

    monkeypatch.setattr(spaces.open("private/b").revisions, "move", full)
    wait(fading, clocks, 70 * DAY)
    assert [len(archived(spaces.open(name))) for name in names] == [1, 0, 1]
    assert "private/b" in caplog.text
    assert "no room left" in caplog.text
    # There is room again.
    monkeypatch.undo()
    wait(fading, clocks, HOUR)
    assert len(archived(spaces.open("private/b"))) == 1


def test_a_sweep_that_is_stopped_ends_with_its_slice_and_the_next_does_the_rest(
    spaces: Spaces, space: Space, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "AT_ONCE", 2)
    ids = say(space, *(f"第{n}件东西在柜子里" for n in range(7)))
    late = clocks.now() + round(70 * DAY * 1e6)
    stopped = Fading(spaces, Decaying(), clocks)
    stopped.stop()
    assert stopped.sweep(space, late) == Swept(archived=2)
    assert Fading(spaces, Decaying(), clocks).sweep(space, late) == Swept(archived=5)
    assert archived(space) == set(ids)


@pytest.mark.parametrize("config", [Decaying(enabled=False), Decaying(kinds={"turn": 60.0})])
def test_the_config_decides(spaces: Spaces, space: Space, clocks: Clocks, config: Decaying) -> None:
    ids = say(space, "雨伞在门后")
    wait(Fading(spaces, config, clocks), clocks, 100 * DAY)
    assert shown(space) == set(ids)


def test_nothing_moves_while_the_device_is_busy(spaces: Spaces, space: Space, clocks: Clocks) -> None:
    ids = say(space, "雨伞在门后")
    wait(Fading(spaces, Decaying(), clocks, lambda: False), clocks, 100 * DAY)
    assert shown(space) == set(ids)


def test_the_clocks_are_watched_from_the_start() -> None:
    clocks = Clocks()
    watched = Watched(clocks)
    for _ in range(12):
        assert not watched.steady(HOUR)
        clocks.seconds += 300
        assert watched.look() == clocks.now()
    assert watched.steady(HOUR)
    # Set right a little, as clocks are all the time.
    clocks.wrong += 2
    clocks.seconds += 300
    watched.look()
    assert watched.steady(HOUR)
    clocks.wrong += 600
    watched.look()
    assert not watched.steady(300)


def lines(space: Space) -> str:
    return "".join(path.read_text("utf-8") for path in sorted((space.directory / "log").glob("*.jsonl")))


def cold_lines(space: Space) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths(space.directory / "log" / "cold") for line in read(path)]


def cooled(space: Space, fading: Fading, clocks: Clocks, *texts: str, **parts: Any) -> list[str]:
    ids = say(space, *texts, **parts)
    wait(fading, clocks, 190 * DAY)
    return ids


def test_what_was_never_recalled_for_half_a_year_is_in_the_cold_file_and_nowhere_else(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    recalled, explicit = say(space, "雨伞在门后"), say(space, "护照在保险柜", state=MemoryState.CONFIRMED, weight=5.0)
    space.touch([memory.rowid for memory in space.by_ids(recalled)])
    ids = cooled(space, fading, clocks, "去年的合同在书房的抽屉", tags=("home",))
    assert (archived(space), shown(space)) == (set(recalled), set(explicit))
    assert space.by_ids(ids) == []
    assert "合同在书房" not in lines(space)
    with space._database.reader() as connection:
        assert connection.execute("SELECT count(*) FROM memories WHERE text LIKE '%合同%'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
    (line,) = cold_lines(space)
    assert (line["text"], line["tags"]) == ("去年的合同在书房的抽屉", ["home"])
    assert verify(space.directory).problems == []
    done = last(space)
    assert (done.why, done.by, [one.id for one in done.changes]) == ("cooled", "rule", ids)


def test_undo_brings_back_what_is_cold(space: Space, fading: Fading, clocks: Clocks) -> None:
    ids = cooled(
        space, fading, clocks, "去年的合同在书房的抽屉", "相机在柜子里", tags=("home",), attributes=b"\x81\xa1a\x01"
    )
    space.revisions.undo(last(space).id, "owner")
    assert {memory.text for memory in space.by_ids(ids)} == {"去年的合同在书房的抽屉", "相机在柜子里"}
    assert all(memory.attributes == b"\x81\xa1a\x01" for memory in space.by_ids(ids))
    assert "合同在书房" in lines(space)
    assert cold_lines(space) == []
    space.drained().result(5)
    with space._database.reader() as connection:
        for table in ("words", "vectors", "tags"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (2,)
    assert verify(space.directory).problems == []
    # Out of the archive too, with the next sweep; and not at once there again.
    wait(fading, clocks, HOUR)
    assert shown(space) == set(ids)
    wait(fading, clocks, 100 * DAY)
    assert len(space.by_ids(ids)) == 2
    undone = space.revisions.latest(9)
    with pytest.raises(FailedPrecondition) as refused:
        space.revisions.undo(next(deed.id for deed in undone if deed.why == "undone"), "owner")
    assert refused.value.reason == NOT_UNDOABLE


def test_a_source_that_sends_a_cold_turn_again_makes_no_new_memory(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    turn = Turn("t", "s", 0, "user", START, "去年的合同在书房的抽屉")
    (result,) = space.ingest.store([turn]).result(5).results
    assert result.state is TurnState.DUPLICATE
    assert shown(space) == archived(space) == set()


@pytest.mark.parametrize(
    "wanted", ["id", Filter(sessions=("s",)), Filter(sources=("t",)), Filter(tags=("home",)), Filter(until=START + 1)]
)
def test_a_forget_reaches_the_cold_file(space: Space, fading: Fading, clocks: Clocks, wanted: Any) -> None:
    ids = cooled(space, fading, clocks, "去年的合同在书房的抽屉", tags=("home",))
    receipt = space.forget(ids, None, False) if wanted == "id" else space.forget([], wanted, False)
    assert (receipt.turns, receipt.memory_ids) == (1, tuple(ids))
    assert cold_lines(space) == []
    assert verify(space.directory).problems == []
    turn = Turn("t", "s", 0, "user", START, "去年的合同在书房的抽屉")
    assert space.ingest.store([turn]).result(5).results[0].state is TurnState.FILTERED


def test_a_forget_of_one_leaves_the_others_cold(space: Space, fading: Fading, clocks: Clocks) -> None:
    one, _ = cooled(space, fading, clocks, "去年的合同在书房的抽屉", "相机在柜子里")
    space.forget([one], None, False)
    assert [line["text"] for line in cold_lines(space)] == ["相机在柜子里"]
    assert verify(space.directory).problems == []


def test_views_that_are_made_anew_hold_nothing_cold(
    spaces: Spaces, space: Space, fading: Fading, clocks: Clocks
) -> None:
    ids = cooled(space, fading, clocks, "去年的合同在书房的抽屉", "相机在柜子里")
    spaces.rebuild("public", from_log=True)
    again = spaces.open("public")
    assert again.by_ids(ids) == []
    assert again.queries.counts().memories == 0
    assert verify(again.directory).problems == []
    again.revisions.undo(last(again).id, "owner")
    assert len(again.by_ids(ids)) == 2


def test_a_turn_goes_cold_only_when_all_its_pieces_do(space: Space, fading: Fading, clocks: Clocks) -> None:
    first, *_ = say(space, "\n\n".join("很长的一段话，" * 40 + str(n) for n in range(3)))
    space.touch([memory.rowid for memory in space.by_ids([first])])
    wait(fading, clocks, 200 * DAY)
    assert cold_lines(space) == []
    assert len(archived(space)) == 3


def test_a_turn_with_versions_stays_in_the_archive(space: Space, fading: Fading, clocks: Clocks) -> None:
    for text in ("合同在书房", "合同在客厅"):
        # In the tables, too: 200 days pass in less time than that may take.
        space.ingest.store([Turn("t", "s", 0, "user", START, text)]).result(5).searchable.result(5)
    wait(fading, clocks, 200 * DAY)
    assert cold_lines(space) == []
    assert len(archived(space)) == 1


@pytest.mark.parametrize("cold", ["keep", "delete"])
def test_the_config_says_what_becomes_of_it(spaces: Spaces, space: Space, clocks: Clocks, cold: str) -> None:
    explicit = say(space, "护照在保险柜", state=MemoryState.CONFIRMED, weight=5.0)
    ids = cooled(space, Fading(spaces, Decaying(cold=cold), clocks), clocks, "去年的合同在书房的抽屉")
    spaces.finish_forgets()
    assert cold_lines(space) == []
    assert archived(space) == (set(ids) if cold == "keep" else set())
    assert ("合同在书房" in lines(space)) is (cold == "keep")
    assert shown(space) == set(explicit)
    assert verify(space.directory).problems == []


@pytest.mark.parametrize("step", ["append", "log", "replace", "rows"])
def test_what_is_interrupted_loses_nothing_and_is_finished(
    spaces: Spaces, space: Space, fading: Fading, clocks: Clocks, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ids = say(space, "去年的合同在书房的抽屉", "相机在柜子里")
    wait(fading, clocks, 100 * DAY)

    def fail(*_: object, **__: object) -> None:
        raise DiskFull("no room left")

    target, name = {
        "append": (space._log.cold, "append"),
        "log": (space.revisions, "_log_it"),
        "replace": (space._log, "replace"),
        "rows": (space.cold._database, "submit"),
    }[step]
    late = clocks.now() + round(100 * DAY * 1e6)
    with monkeypatch.context() as patch:
        if step == "rows":
            # After the log's lines: its thread works on without the database.
            replace = space._log.replace
            patch.setattr(space._log, "replace", lambda turns: (replace(turns), fail())[0])
        else:
            patch.setattr(target, name, fail)
        with pytest.raises(DiskFull):
            fading.sweep(space, late, cold=True)
    everywhere = lines(space) + json.dumps(cold_lines(space), ensure_ascii=False)
    assert "合同在书房" in everywhere
    assert "相机在柜子" in everywhere
    spaces.rebuild("public", from_log=False)
    space.finish_forgets()
    fading.sweep(space, late, cold=True)
    assert space.by_ids(ids) == []
    assert "合同在书房" not in lines(space)
    assert {line["text"] for line in cold_lines(space)} == {"去年的合同在书房的抽屉", "相机在柜子里"}
    assert verify(space.directory).problems == []


def test_a_cold_file_that_is_damaged_or_lost_is_told_of(space: Space, fading: Fading, clocks: Clocks) -> None:
    cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    done = last(space).id
    (path,) = paths(space.directory / "log" / "cold")
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:9] + bytes([whole[9] ^ 1]) + whole[10:], whole + b"x"):
        path.write_bytes(damaged)
        assert any("is damaged" in problem for problem in verify(space.directory).problems)
        with pytest.raises(Unavailable):
            space.revisions.undo(done, "owner")
    path.unlink()
    assert any("in no cold file" in problem for problem in verify(space.directory).problems)
    with pytest.raises(FailedPrecondition):
        space.revisions.undo(done, "owner")
    path.write_bytes(whole)
    space.revisions.undo(done, "owner")
    assert len(archived(space)) == 1


def test_a_damaged_cold_file_keeps_no_box_from_starting_and_no_forget_is_said_to_be_done(
    spaces: Spaces, space: Space, fading: Fading, clocks: Clocks
) -> None:
    (id,) = cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    (path,) = paths(space.directory / "log" / "cold")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(Unavailable):
        space.forget([id], None, False)
    assert len(space.queries.unfinished_forgets()) == 1
    spaces.rebuild("public", from_log=True)
    again = spaces.open("public")
    path.write_bytes(whole)
    again.finish_forgets()
    assert cold_lines(again) == []
    assert again.queries.unfinished_forgets() == []


def test_a_receipt_is_held_against_the_cold_files_too(
    tmp_path: Path, space: Space, fading: Fading, clocks: Clocks
) -> None:
    ids = cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    (path,) = paths(space.directory / "log" / "cold")
    whole = path.read_bytes()
    receipt = space.forget(ids, None, False)
    file = tmp_path / "receipt.json"
    said = {"id": receipt.id, "dry_run": False, "turns": receipt.turns}
    file.write_text(json.dumps({**said, "marks": receipt.marks, "memory_ids": receipt.memory_ids}))
    assert prove(tmp_path, file).problems == []
    path.write_bytes(whole)
    (problem,) = prove(tmp_path, file).problems
    assert "still holds turn" in problem
    path.write_bytes(whole[:-1])
    assert "proves nothing" in prove(tmp_path, file).problems[0]


def test_a_forget_that_may_be_undone_hides_what_is_cold_and_gives_it_back_cold(
    space: Space, fading: Fading, clocks: Clocks
) -> None:
    (id,) = cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    moved = last(space).id
    receipt = space.forget([], Filter(sessions=("s",)), False, grace=600_000_000)
    assert receipt.memory_ids == (id,)
    assert len(cold_lines(space)) == 1
    space.revisions.undo(receipt.id, "owner")
    space.revisions.undo(moved, "owner")
    assert len(space.by_ids([id])) == 1
    receipt = space.forget([id], None, False, grace=600_000_000)
    space.finish_forgets(clocks.now() + 1)
    assert "合同在书房" not in lines(space)


def test_what_is_brought_back_while_it_is_being_moved_stays_whole(
    spaces: Spaces, space: Space, fading: Fading, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = say(space, "去年的合同在书房的抽屉")
    wait(fading, clocks, 100 * DAY)
    revise = space.revisions.revise

    def and_undo(plan: Any, why: str, by: str) -> Revision | None:
        done = revise(plan, why, by)
        if done is not None and why == COOLED:
            space.revisions.undo(done.id, "owner")
        return done

    monkeypatch.setattr(space.revisions, "revise", and_undo)
    fading.sweep(space, clocks.now() + round(100 * DAY * 1e6), cold=True)
    spaces.rebuild("public", from_log=True)
    assert [memory.text for memory in spaces.open("public").by_ids(ids)] == ["去年的合同在书房的抽屉"]


def test_nothing_is_appended_to_a_damaged_cold_file(space: Space, fading: Fading, clocks: Clocks) -> None:
    cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    (path,) = paths(space.directory / "log" / "cold")
    whole = path.read_bytes()
    (id,) = say(space, "相机在柜子里")
    late = clocks.now() + round(200 * DAY * 1e6)
    path.write_bytes(whole[:-1])
    with pytest.raises(Unavailable, match="damaged"):
        fading.sweep(space, late, cold=True)
    # Out of the way, and whole.
    assert archived(space) == {id}
    path.write_bytes(whole)
    fading.sweep(space, late, cold=True)
    assert {line["text"] for line in cold_lines(space)} == {"去年的合同在书房的抽屉", "相机在柜子里"}


def test_a_damaged_cold_file_is_in_the_way_of_what_is_in_it_alone(space: Space, fading: Fading, clocks: Clocks) -> None:
    cooled(space, fading, clocks, "去年的合同在书房的抽屉")
    two = cooled(space, fading, clocks, "相机在柜子里")
    three = cooled(space, fading, clocks, "雨伞在门后")
    moved = next(deed for deed in space.revisions.latest(9) if deed.memory_ids == tuple(two))
    damaged, *_ = paths(space.directory / "log" / "cold")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1])
    space.revisions.undo(moved.id, "owner")
    assert [memory.text for memory in space.by_ids(two)] == ["相机在柜子里"]
    # A forget ends everywhere else, and says what is in its way.
    with pytest.raises(Unfinished, match=r"are forgotten, but .* is damaged") as left:
        space.forget(three, None, False)
    (receipt,) = left.value.receipts
    assert receipt.memory_ids == tuple(three) and receipt.id and len(receipt.marks) == 1
    assert [line["text"] for path in paths(damaged.parent)[1:] for line in map(json.loads, read(path))] == []
    for text in ("钥匙在花盆下面", "车在地下二层"):
        space.forget(say(space, text), None, False, grace=600_000_000)
    with pytest.raises(Unfinished) as left:
        space.finish_forgets(clocks.now())
    assert [receipt.turns for receipt in left.value.receipts] == [1, 1]
    assert "钥匙在花盆" not in lines(space) and "车在地下" not in lines(space)
    assert any(str(damaged) in warning for warning in space.warnings())
    damaged.write_bytes(whole)
    space.finish_forgets(clocks.now())
    assert space.queries.unfinished_forgets() == [] and space.warnings() == []


def test_what_is_cold_is_out_of_the_archive_only_when_it_is_back(space: Space, fading: Fading, clocks: Clocks) -> None:
    (id,) = say(space, "去年的合同在书房的抽屉")
    wait(fading, clocks, 100 * DAY)
    put_away = last(space).id
    assert space.cold.moved_by(id) == ""
    wait(fading, clocks, 100 * DAY)
    moved = last(space).id
    assert space.cold.moved_by(id) == moved
    with pytest.raises(FailedPrecondition, match=f"cooled.*edge undo {moved}"):
        space.revisions.undo(put_away, "owner")
    space.revisions.undo(moved, "owner")
    space.revisions.undo(put_away, "owner")
    assert shown(space) == {id} and space.cold.moved_by(id) == ""


def test_a_space_whose_forgets_cannot_end_keeps_no_other_from_its_own(
    spaces: Spaces, space: Space, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = spaces.open("work")
    other.forget(say(other, "钥匙在花盆下面"), None, False, grace=1)

    def fail(*_: object) -> None:
        raise DiskFull("no room left")

    monkeypatch.setattr(space, "finish_forgets", fail)
    clocks.seconds += HOUR
    spaces.finish_forgets()
    assert "钥匙在花盆" not in lines(other)


def test_a_sweep_and_the_merging_leave_the_room_that_forgets_need(
    space: Space, fading: Fading, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(space, "去年的合同在书房的抽屉")
    say(space, "我对花生过敏", state=MemoryState.CANDIDATE)
    monkeypatch.setattr("edge.space.left", lambda _: 1 << 20)
    with pytest.raises(DiskFull):
        fading.sweep(space, clocks.now() + round(400 * DAY * 1e6), cold=True)
    with pytest.raises(DiskFull):
        Merger(lambda: [space], lambda: True).slice(space)
    assert archived(space) == set() and space.revisions.latest(9, by="rule") == []
    monkeypatch.undo()
    assert fading.sweep(space, clocks.now() + round(400 * DAY * 1e6), cold=True).archived == 2


def test_what_is_put_away_is_counted(space: Space, fading: Fading, clocks: Clocks) -> None:
    cooled(space, fading, clocks, "去年的合同在书房的抽屉", "相机在柜子里")
    (recalled,) = say(space, "雨伞在门后")
    space.touch([memory.rowid for memory in space.by_ids([recalled])])
    say(space, "钥匙在花盆下面")
    wait(fading, clocks, 80 * DAY)
    facts = space.facts()
    assert (facts.memories, facts.archived, facts.cold) == (2, len(archived(space)), 2)
    assert facts.archived >= 1
