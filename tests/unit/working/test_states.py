"""Task state: revisions, time, pages, limits, and what is left of what was deleted."""

from __future__ import annotations

import errno
import random
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from working_fakes import SECOND, START, SetClock, bytes_of, opened, rows

from edge.config import Limits
from edge.errors import (
    DataLoss,
    DiskFull,
    Exhausted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ReadOnly,
    Unavailable,
)
from edge.lan.tokens import Tokens
from edge.types import Grant, Scope
from edge.working import file, store
from edge.working import states as states_module
from edge.working.states import MAX_TTL, States
from edge.working.values import RevisionConflict, State

HOME, OTHER = "private/desk", "work"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def states(tmp_path: Path, clock: SetClock) -> Iterator[States]:
    states = opened(tmp_path, clock)
    yield states
    states.close()


def put(states: States, key: str, value: str | bytes = "v", space: str = HOME, **more: Any) -> State:
    return states.put(space, key, value, **more).result()


def get(states: States, key: str, space: str = HOME) -> State | None:
    return states.get(space, key).result()


def listed(states: States, prefix: str = "", count: int = 1000, room: int = 1 << 30, space: str = HOME) -> list[str]:
    """Every key, read page by page."""
    keys: list[str] = []
    more = True
    while more:
        page, more = states.page(space, prefix, after=keys[-1] if keys else "", count=count, room=room).result()
        assert len(page) <= count
        assert page or not more
        keys += [state.key for state in page]
    return keys


# Values and revisions.


@pytest.mark.parametrize(
    "value", ["", "第三步\0\n", b"\xc0", b"\x81\xa1a\x01", "x" * 262_144, b"\xc6\x00\x03\xff\xfb" + b"\0" * 262_139]
)
def test_what_was_put_comes_back_as_it_was(tmp_path: Path, clock: SetClock, value: str | bytes) -> None:
    states = opened(tmp_path, clock)
    kept = put(states, "k", value)
    assert kept == State(HOME, "k", value, 1, START)
    states.close()
    again = opened(tmp_path, clock)
    assert get(again, "k") == kept
    again.close()


def test_each_put_makes_the_next_revision(states: States) -> None:
    assert [put(states, "k", str(n)).revision for n in range(3)] == [1, 2, 3]
    assert put(states, "k", expected=3).revision == 4
    assert put(states, "other", expected=0).revision == 1


@pytest.mark.parametrize("expected", [0, 1, 3, 2**62])
def test_a_put_on_another_revision_changes_nothing_and_tells_the_present_one(states: States, expected: int) -> None:
    put(states, "k", "1")
    put(states, "k", "2")
    with pytest.raises(RevisionConflict) as caught:
        put(states, "k", "mine", expected=expected)
    assert (caught.value.code, caught.value.reason, caught.value.field) == ("ABORTED", "REVISION", "expected_revision")
    assert caught.value.metadata == {"revision": "2"}
    found = get(states, "k")
    assert found is not None and (found.value, found.revision) == ("2", 2)
    with pytest.raises(RevisionConflict):
        states.delete(HOME, "k", expected=expected).result()
    assert get(states, "k") == found


def test_a_put_on_a_state_that_is_not_there_is_told_so(states: States) -> None:
    with pytest.raises(RevisionConflict) as caught:
        put(states, "k", expected=1)
    assert caught.value.metadata == {"revision": "0"}


def test_of_many_who_put_on_one_revision_one_wins(states: States) -> None:
    put(states, "k", "0")
    with ThreadPoolExecutor(16) as pool:
        for revision in range(1, 5):

            def race(n: int, revision: int = revision) -> State | None:
                try:
                    return put(states, "k", str(n), expected=revision)
                except RevisionConflict as lost:
                    assert lost.metadata == {"revision": str(revision + 1)}
                    return None

            won = [state for state in pool.map(race, range(50)) if state is not None]
            assert [state.revision for state in won] == [revision + 1]
            assert get(states, "k") == won[0]


def test_a_revision_of_what_is_gone_is_never_right_again(states: States, clock: SetClock) -> None:
    put(states, "k", "mine")
    states.delete(HOME, "k").result()
    assert put(states, "k", "another's", expected=0).revision == 2
    with pytest.raises(RevisionConflict):
        put(states, "k", "mine", expected=1)
    put(states, "k", "lease", expected=2, ttl=SECOND)
    clock.time += SECOND
    assert put(states, "k", "another's lease", expected=0).revision == 4
    with pytest.raises(RevisionConflict):
        put(states, "k", "mine", expected=3)
    states.delete(HOME, "k", expected=4).result()
    states.tend()
    assert put(states, "k").revision == 5


def test_spaces_have_nothing_in_common(states: States) -> None:
    put(states, "k", "mine")
    assert get(states, "k", OTHER) is None
    assert listed(states, space=OTHER) == []
    assert put(states, "k", "other", OTHER, expected=0).revision == 1
    with pytest.raises(NotFound):
        states.delete("public", "k").result()
    states.delete_space(OTHER)
    found = get(states, "k")
    assert found is not None and found.value == "mine"


# Time.


def test_a_state_is_there_until_its_time_is_over(states: States, clock: SetClock) -> None:
    kept = put(states, "k", ttl=10 * SECOND)
    assert kept.expires_at == START + 10 * SECOND
    clock.time += 10 * SECOND - 1
    assert get(states, "k") == kept
    clock.time += 1
    assert get(states, "k") is None
    assert listed(states) == []
    with pytest.raises(NotFound):
        states.delete(HOME, "k").result()


def test_a_put_without_a_time_stays(states: States, clock: SetClock) -> None:
    put(states, "k", ttl=SECOND)
    assert put(states, "k").expires_at == 0
    clock.time += 10**15
    assert get(states, "k") is not None


@pytest.mark.parametrize("seen_by", ["get", "list", "put", "delete", "tend"])
def test_what_was_seen_to_be_gone_stays_gone_when_the_clock_goes_back(
    tmp_path: Path, states: States, clock: SetClock, seen_by: str
) -> None:
    put(states, "k", ttl=10 * SECOND)
    clock.time += 11 * SECOND
    if seen_by == "get":
        assert get(states, "k") is None
    elif seen_by == "list":
        assert listed(states) == []
    elif seen_by == "put":
        with pytest.raises(RevisionConflict):
            put(states, "k", expected=1)
    elif seen_by == "delete":
        with pytest.raises(NotFound):
            states.delete(HOME, "k").result()
    else:
        states.tend()
    clock.time = START
    assert get(states, "k") is None
    assert listed(states) == []
    states.close()
    again = opened(tmp_path, clock)
    assert get(again, "k") is None
    assert put(again, "k", expected=0).revision == 2
    again.close()


def test_a_clock_that_leaps_ahead_and_comes_back_takes_only_what_its_time_was_over_for(
    states: States, clock: SetClock
) -> None:
    put(states, "hours", ttl=3600 * SECOND)
    put(states, "years", ttl=MAX_TTL)
    put(states, "always")
    clock.time += 86_400 * SECOND
    assert listed(states) == ["always", "years"]
    states.tend()
    clock.time = START
    assert listed(states) == ["always", "years"]
    put(states, "hours", ttl=3600 * SECOND)
    assert listed(states) == ["always", "hours", "years"]


def test_on_a_read_only_disk_nothing_comes_back_either(tmp_path: Path, states: States, clock: SetClock) -> None:
    put(states, "k", ttl=10 * SECOND)
    states.close()
    reading = opened(tmp_path, clock, read_only=True)
    assert get(reading, "k") is not None
    clock.time += 11 * SECOND
    assert get(reading, "k") is None
    clock.time = START
    assert get(reading, "k") is None
    reading.close()


def test_what_has_expired_goes_from_the_disk_in_batches(
    tmp_path: Path, states: States, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_BATCH_ROWS", 8)
    for n in range(30):
        put(states, f"{n:02}", f"the marrow of {n}", ttl=SECOND if n % 3 else None)
    clock.time += SECOND
    assert rows(tmp_path) == 30
    states.tend()
    assert rows(tmp_path) == 10
    assert listed(states) == [f"{n:02}" for n in range(0, 30, 3)]
    left = bytes_of(tmp_path)
    assert [n for n in range(30) if f"the marrow of {n}".encode() + b"\0" in left + b"\0" and n % 3] == []


# Lists.


keys = st.lists(
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=6), max_size=25
)


@given(keys, st.integers(1, 7), st.integers(1, 200))
def test_pages_hold_every_key_once_in_the_order_of_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], count: int, room: int
) -> None:
    folder = tmp_path_factory.mktemp("states")
    states = opened(folder, SetClock())
    names = [name for name in names if len(name.encode()) <= 256]
    waiting: list[Future[State]] = [states.put(HOME, name, "x" * 40) for name in names]
    put(states, "elsewhere", space=OTHER)
    assert all(one.result() for one in waiting)
    expected = sorted(set(names), key=str.encode)
    assert listed(states, count=count, room=room) == expected
    for prefix in {name[:1] for name in names} | {"\U0010ffff"}:
        assert listed(states, prefix, count) == [name for name in expected if name.startswith(prefix)]
    states.close()


def test_a_page_of_large_values_holds_fewer(states: States) -> None:
    for n in range(5):
        put(states, str(n), "x" * 1000)
    page, more = states.page(HOME, "", count=5, room=2500).result()
    assert ([state.key for state in page], more) == (["0", "1"], True)
    page, more = states.page(HOME, "", count=5, room=1).result()
    assert ([state.key for state in page], more) == (["0"], True)
    assert listed(states, room=1) == ["0", "1", "2", "3", "4"]


def test_what_comes_and_goes_between_two_pages_shifts_nothing(states: States) -> None:
    for key in "bdfh":
        put(states, key)
    page, _ = states.page(HOME, "", count=2, room=1000).result()
    states.delete(HOME, "b").result()
    put(states, "a")
    put(states, "g")
    rest, more = states.page(HOME, "", after=page[-1].key, count=9, room=1000).result()
    assert ([state.key for state in rest], more) == (["f", "g", "h"], False)


# Limits.


def test_a_space_has_so_many_states_and_no_more(tmp_path: Path, clock: SetClock) -> None:
    states = opened(tmp_path, clock, Limits(states=3))
    for key in "abc":
        put(states, key)
    with pytest.raises(Exhausted) as caught:
        put(states, "d")
    assert (caught.value.reason, caught.value.field) == ("TOO_MANY_STATES", "key")
    put(states, "a", "another value")
    put(states, "d", space=OTHER)
    states.delete(HOME, "b").result()
    put(states, "d")
    states.close()


def test_the_expired_make_room(tmp_path: Path, clock: SetClock) -> None:
    states = opened(tmp_path, clock, Limits(states=3))
    for key in "abc":
        put(states, key, ttl=SECOND)
    clock.time += SECOND
    for key in "def":
        put(states, key)
    with pytest.raises(Exhausted):
        put(states, "g")
    assert listed(states) == ["d", "e", "f"]
    states.close()


def test_a_value_has_so_many_bytes_and_no_more(tmp_path: Path, clock: SetClock) -> None:
    states = opened(tmp_path, clock, Limits(state_bytes=9))
    put(states, "k", "三个字")
    for value in ("三个字.", b"\xc4\x08" + b"\0" * 8):
        with pytest.raises(InvalidArgument) as caught:
            put(states, "k", value)
        assert caught.value.field == "value"
    states.close()


def test_large_values_go_a_few_at_a_time(tmp_path: Path, states: States, clock: SetClock) -> None:
    for n in range(6):
        put(states, f"{n}", "secret" * 40_000, ttl=SECOND)
    clock.time += SECOND
    assert states._alone(states._store.tend).result()
    assert rows(tmp_path) == 4
    states.tend()
    assert rows(tmp_path) == 0
    assert b"secret" not in bytes_of(tmp_path)


@pytest.mark.parametrize("ttl", [0, -1, MAX_TTL + 1, -(2**62), 2**62])
def test_a_time_that_is_none_is_refused(states: States, ttl: int) -> None:
    with pytest.raises(InvalidArgument) as caught:
        put(states, "k", ttl=ttl)
    assert caught.value.field == "ttl"


def test_a_negative_revision_is_refused(states: States) -> None:
    for call in (lambda: states.put(HOME, "k", "v", expected=-1), lambda: states.delete(HOME, "k", expected=-1)):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.field == "expected_revision"


def test_when_too_many_wait_for_the_disk_the_next_is_told_to_come_again(
    states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    release: Future[None] = Future()
    blocking = states._alone(release.result)
    waiting = [states.get(HOME, "k") for _ in range(states_module._WAITING)]
    with pytest.raises(Exhausted) as caught:
        states.get(HOME, "k")
    assert caught.value.retry_after
    release.set_result(None)
    blocking.result()
    assert [one.result() for one in waiting] == [None] * len(waiting)
    put(states, "k")


def test_a_space_that_was_just_deleted_takes_no_state(tmp_path: Path, clock: SetClock) -> None:
    there = {HOME}
    states = opened(tmp_path, clock, exists=there.__contains__)
    put(states, "k")
    there.clear()
    with pytest.raises(NotFound) as caught:
        put(states, "k")
    assert caught.value.field == "space"
    states.close()


def test_texts_are_redacted_before_they_reach_the_disk(tmp_path: Path, clock: SetClock) -> None:
    states = opened(tmp_path, clock, redact=lambda text: text.replace("hunter2", "[password]"))
    assert put(states, "k", "it is hunter2").value == "it is [password]"
    assert put(states, "m", b"\x81\xa1p\xa7hunter2").value == b"\x81\xa1p\xaa[password]"
    states.close()
    assert b"hunter2" not in bytes_of(tmp_path)


# The file.


def test_nothing_of_a_deleted_state_is_left(tmp_path: Path, states: States) -> None:
    # In no order and of many sizes, so that pages are divided and joined, and rows move from one to another. (With this
    # seed SQLite's secure_delete alone leaves copies behind.)
    chance = random.Random(0)
    numbers = list(range(300))
    chance.shuffle(numbers)
    for n in numbers:
        put(states, f"key-{n:03}-" + "z" * chance.randrange(100), f"secret-{n:03}-" + "y" * chance.randrange(1500))
    keys = listed(states)
    chance.shuffle(keys)
    for place, key in enumerate(keys[:200], 1):
        states.delete(HOME, key).result()
        if place % 20 == 0:
            left = bytes_of(tmp_path)
            gone = [one[4:7] for one in keys[:place]]
            assert not [n for n in gone if f"secret-{n}".encode() in left or f"key-{n}".encode() in left]
    states.delete_space(HOME)
    assert b"secret" not in bytes_of(tmp_path)
    assert b"key-" not in bytes_of(tmp_path)


def test_nothing_of_an_overwritten_value_is_left_after_a_while(tmp_path: Path, states: States) -> None:
    for n in range(200):
        put(states, f"{n:03}", f"secret-{n:03}")
    for n in range(200):
        put(states, f"{n:03}", "harmless")
    states.tend()
    assert b"secret" not in bytes_of(tmp_path)


def test_erasing_again_finishes_what_could_not_be_erased_at_once(tmp_path: Path, clock: SetClock) -> None:
    erased = []

    def broken(file: int) -> int:
        erased.append(file)
        if len(erased) == 1:
            raise OSError(errno.EIO, "Input/output error")
        return 0

    states = opened(tmp_path, clock, scrub=broken)
    put(states, "k")
    states.delete(HOME, "k").result()
    assert get(states, "k") is None
    states.tend()
    states.tend()
    assert len(erased) == 2
    states.close()


def test_tokens_live_in_the_same_file(tmp_path: Path, clock: SetClock) -> None:
    tokens = Tokens(tmp_path / "box.sqlite", clock)
    states = opened(tmp_path, clock)
    secrets = []
    for n in range(20):
        put(states, f"{n}", "s" * 5000)
        secrets.append(tokens.create(f"c{n}", [Grant("*", frozenset({Scope.READ}))])[1])
        if n % 2:
            states.delete(HOME, f"{n}").result()
    states.close()
    tokens.close()
    again, both = Tokens(tmp_path / "box.sqlite", clock), opened(tmp_path, clock)
    assert all(again.authenticate(secret) for secret in secrets)
    assert listed(both) == sorted(str(n) for n in range(0, 20, 2))
    both.close()
    again.close()
    assert sqlite3.connect(tmp_path / "box.sqlite").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_erasing_waits_for_who_writes_to_the_same_file(tmp_path: Path, states: States) -> None:
    put(states, "k", "secret" * 2000)
    other = sqlite3.connect(tmp_path / "box.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE of_another (x)")
    deleting = states.delete(HOME, "k")
    other.execute("COMMIT")
    other.close()
    deleting.result()
    assert b"secret" not in bytes_of(tmp_path)


def test_the_file_is_its_owner_s_alone(tmp_path: Path, states: States) -> None:
    put(states, "k")
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("box.sqlite*")} == {0o600}


def test_on_a_read_only_disk_states_are_read_and_a_write_is_told_why(
    tmp_path: Path, states: States, clock: SetClock
) -> None:
    kept = put(states, "k")
    states.close()
    reading = opened(tmp_path, clock, read_only=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert get(reading, "k") == kept
    assert listed(reading) == ["k"]
    reading.tend()
    for write in (
        lambda: put(reading, "k"),
        lambda: reading.delete(HOME, "k").result(),
        lambda: reading.delete_space(HOME),
    ):
        with pytest.raises(ReadOnly, match="reading only"):
            write()
    reading.close()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_read_only_disk_without_states_has_none(tmp_path: Path, clock: SetClock) -> None:
    for make in (lambda: None, lambda: Tokens(tmp_path / "box.sqlite", clock).close()):
        make()
        reading = opened(tmp_path, clock, read_only=True)
        assert get(reading, "k") is None
        assert listed(reading) == []
        reading.close()


def test_a_full_disk_is_told_and_keeps_what_was_there(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    put(states, "k", "old")

    class Full:
        free = 1000

    monkeypatch.setattr(file.shutil, "disk_usage", lambda path: Full)
    with pytest.raises(DiskFull):
        put(states, "k", "new")
    found = get(states, "k")
    assert found is not None and found.value == "old"
    # There is always room to delete.
    states.delete(HOME, "k").result()


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path, states: States, clock: SetClock) -> None:
    put(states, "k")
    states.close()
    with sqlite3.connect(tmp_path / "box.sqlite") as connection:
        connection.execute("UPDATE schemas SET version = 99")
    connection.close()
    later = opened(tmp_path, clock)
    with pytest.raises(FailedPrecondition, match="later version"):
        get(later, "k")
    later.close()


def test_a_damaged_file_is_told_and_stops_nobody_from_starting(tmp_path: Path, clock: SetClock) -> None:
    (tmp_path / "box.sqlite").write_bytes(b"no database at all, " * 1000)
    states = opened(tmp_path, clock)
    for call in (lambda: get(states, "k"), lambda: put(states, "k")):
        with pytest.raises(DataLoss, match="backup"):
            call()
    states.close()


def test_when_it_is_closed_it_says_so(states: States) -> None:
    states.close()
    with pytest.raises(Unavailable):
        put(states, "k")
    states.close()
