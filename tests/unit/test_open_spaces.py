"""Which spaces are open: those in use; the others cost nothing and come when asked for."""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from edge.backlog import Backlog
from edge.config import Config, Limits, Storage
from edge.embedder.fake import HashEmbedder
from edge.errors import Exhausted, InvalidArgument, NotFound
from edge.lexicon.words import WordLexicon
from edge.ports import QueueStatus
from edge.spaces import Spaces
from edge.types import Filter, Lane, ModelInfo, Turn, Vector

IDLE = 600.0
_EVERYTHING = Filter()


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> int:
        return 1_750_000_000_000_000

    def monotonic(self) -> float:
        return self.seconds


class AtOnce:
    """ports.Vectorizer that makes each vector on the spot, or none at all while it `holds`."""

    def __init__(self) -> None:
        self._embedder = HashEmbedder(8)
        self.holds = False

    @property
    def info(self) -> ModelInfo:
        return self._embedder.info

    def submit(self, texts: Sequence[str], lane: Lane, deadline: float | None = None) -> list[Future[Vector]]:
        futures: list[Future[Vector]] = [Future() for _ in texts]
        if not self.holds:
            for future, row in zip(futures, self._embedder.embed(self._embedder.encode(texts, lane)), strict=True):
                future.set_result(np.asarray(row))
        return futures

    def tokens(self, text: str) -> int:
        return len(text)

    def status(self) -> QueueStatus:
        return QueueStatus(0, 0, 0, 0.0, 0.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vectorizer() -> AtOnce:
    return AtOnce()


@contextlib.contextmanager
def running(data: Path, clock: Clock, vectorizer: AtOnce, limit: int = 5, read_only: str = "") -> Iterator[Spaces]:
    backlog = Backlog({vectorizer.info.id: vectorizer})
    config = Config(limits=Limits(spaces=limit), storage=Storage(space_idle=IDLE))
    opened = Spaces(data, config, clock, WordLexicon(), backlog, [vectorizer.info], read_only=read_only)
    try:
        opened.open_all()
        backlog.start()
        yield opened
    finally:
        opened.close()
        backlog.close()


@pytest.fixture
def spaces(tmp_path: Path, clock: Clock, vectorizer: AtOnce) -> Iterator[Spaces]:
    with running(tmp_path, clock, vectorizer) as opened:
        yield opened


def say(spaces: Spaces, name: str, text: str, *, found: bool = True) -> None:
    stored = spaces.open(name).ingest.store([Turn("test", "s", 0, "user", 1_750_000_000_000_000, text)]).result(10)
    if found:
        stored.searchable.result(10)


def opened(spaces: Spaces) -> set[str]:
    return {space.name for space in spaces.all()}


def test_a_space_that_nobody_uses_is_closed_and_opens_when_it_is_asked_for(spaces: Spaces, clock: Clock) -> None:
    say(spaces, "private/desk", "台灯是绿色的")
    clock.seconds = IDLE / 2
    assert spaces.get("public") is not None
    clock.seconds = IDLE
    spaces.close_idle()
    assert opened(spaces) == {"public"}
    assert set(spaces.names()) == {"public", "private/desk"}
    assert spaces.get("private/desk") is None
    again = spaces.find("private/desk")
    assert again is not None
    assert [memory.text for memory in again.list_page(_EVERYTHING, 10, None)] == ["台灯是绿色的"]


def test_a_closed_space_costs_no_thread(spaces: Spaces, clock: Clock) -> None:
    before = threading.active_count()
    for name in ("a", "b", "c"):
        spaces.open(f"private/{name}")
    assert threading.active_count() > before
    clock.seconds = IDLE
    assert spaces.get("public") is not None
    spaces.close_idle()
    assert threading.active_count() == before


def test_a_closed_space_is_still_told_of(spaces: Spaces, clock: Clock) -> None:
    say(spaces, "private/desk", "台灯是绿色的")
    clock.seconds = IDLE
    spaces.close_idle()
    assert opened(spaces) == set()
    facts = {one.name: one.memories for one in spaces.facts()}
    assert facts == {"public": 0, "private/desk": 1}
    assert [(one.name, one.memories) for one in spaces.listed()] == [("private/desk", 1), ("public", 0)]


def test_a_space_with_work_left_is_not_closed(spaces: Spaces, clock: Clock, vectorizer: AtOnce) -> None:
    vectorizer.holds = True
    say(spaces, "private/desk", "还没有向量的话", found=False)
    clock.seconds = IDLE
    spaces.close_idle()
    assert "private/desk" in opened(spaces)


def test_an_erased_space_is_gone_from_the_disk_and_can_be_made_anew(spaces: Spaces, tmp_path: Path) -> None:
    say(spaces, "private/desk", "台灯是绿色的")
    spaces.delete("private/desk")
    assert not list(tmp_path.glob("spaces/private/*"))
    assert spaces.find("private/desk") is None
    assert spaces.open("private/desk").list_page(_EVERYTHING, 10, None) == []


@pytest.mark.parametrize("name", ["../x", "private/../../x", "private/.going-1", "private/a\0"])
def test_nothing_outside_is_ever_opened_or_erased(spaces: Spaces, name: str) -> None:
    with pytest.raises(InvalidArgument):
        spaces.open(name)
    with pytest.raises(InvalidArgument):
        spaces.delete(name)
    with pytest.raises(NotFound):
        spaces.delete("private/nobody")


def test_closed_spaces_count_as_much_as_open_ones(spaces: Spaces, clock: Clock) -> None:
    for name in "abcd":
        spaces.open(f"private/{name}")
    clock.seconds = IDLE
    spaces.close_idle()
    with pytest.raises(Exhausted):
        spaces.open("private/e")
    assert spaces.open("private/a").name == "private/a"


def test_who_asks_for_a_space_while_it_is_deleted_does_not_make_it_again(
    spaces: Spaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = spaces.open("private/desk")
    found: list[object] = []
    asking = threading.Thread(target=lambda: found.append(spaces.find("private/desk")))
    close = space.close

    def close_and_be_asked() -> None:
        asking.start()
        close()

    monkeypatch.setattr(space, "close", close_and_be_asked)
    spaces.delete("private/desk")
    asking.join()
    assert found == [None]
    assert spaces.names() == ["public"]


def test_the_views_of_a_space_that_is_not_there_are_not_made(spaces: Spaces) -> None:
    for from_log in (True, False):
        with pytest.raises(NotFound):
            spaces.rebuild("private/desk", from_log)
    assert spaces.names() == ["public"]


def test_a_limit_that_was_lowered_keeps_no_space_from_being_opened(
    tmp_path: Path, clock: Clock, vectorizer: AtOnce
) -> None:
    with running(tmp_path, clock, vectorizer) as before:
        for name in "abc":
            before.open(f"private/{name}")
        before.delete("public")
    with running(tmp_path, clock, vectorizer, limit=1) as spaces:
        assert opened(spaces) == {"public", "private/a", "private/b", "private/c"}
        with pytest.raises(Exhausted):
            spaces.open("private/d")


@pytest.mark.parametrize("read_only", ["", "the disk cannot be written"])
@pytest.mark.parametrize("name", ["desk.bak", "Desk", "desk (copy)", ".going-1"])
def test_a_copy_that_somebody_made_by_hand_keeps_no_box_from_starting(
    tmp_path: Path, clock: Clock, vectorizer: AtOnce, caplog: pytest.LogCaptureFixture, name: str, read_only: str
) -> None:
    with running(tmp_path, clock, vectorizer) as before:
        say(before, "private/desk", "台灯是绿色的")
    copy = tmp_path / "spaces/private" / name
    shutil.copytree(tmp_path / "spaces/private/desk", copy)
    with caplog.at_level(logging.WARNING), running(tmp_path, clock, vectorizer, read_only=read_only) as spaces:
        assert opened(spaces) == {"public", "private/desk"}
    rest = name.startswith(".going-")
    assert copy.exists() == (not rest or bool(read_only))
    assert (str(copy) in caplog.text) == (not rest)


def test_a_space_that_is_a_link_to_another_disk_is_erased_there(
    tmp_path: Path, clock: Clock, vectorizer: AtOnce
) -> None:
    with running(tmp_path / "box", clock, vectorizer) as before:
        say(before, "private/desk", "台灯是绿色的")
    moved, link = tmp_path / "other-disk", tmp_path / "box/spaces/private/desk"
    link.rename(moved)
    link.symlink_to(moved)
    with running(tmp_path / "box", clock, vectorizer) as spaces:
        spaces.delete("private/desk")
    assert not moved.exists()
    assert not list(link.parent.iterdir())


def test_what_a_crash_left_of_a_linked_space_is_erased_at_the_next_start(
    tmp_path: Path, clock: Clock, vectorizer: AtOnce
) -> None:
    going = tmp_path / "spaces/private/.going-1"
    going.parent.mkdir(parents=True)
    going.symlink_to(tmp_path / "gone-already")
    with running(tmp_path, clock, vectorizer) as spaces:
        assert spaces.names() == ["public"]
    assert not going.is_symlink()


def test_what_cannot_be_erased_is_named_and_keeps_no_box_from_starting(
    tmp_path: Path,
    clock: Clock,
    vectorizer: AtOnce,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    going = tmp_path / "spaces/private/.going-1"
    going.mkdir(parents=True)

    def busy(directory: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(directory))

    monkeypatch.setattr("edge.spaces.shutil.rmtree", busy)
    with running(tmp_path, clock, vectorizer) as spaces:
        assert spaces.names() == ["public"]
    assert str(going) in caplog.text


def test_no_index_tends_itself_while_the_device_has_no_room_for_it(
    spaces: Spaces, vectorizer: AtOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = spaces.open("private/desk").indexes[vectorizer.info.id]
    due: list[str] = []
    say(spaces, "private/desk", "台灯是绿色的")
    spaces.allow_background(False)
    # As if the interval between snapshots were over.
    monkeypatch.setattr(index, "_next_save", 0.0)
    due.append(index._due()[0])
    spaces.allow_background(True)
    assert due == [""]
    assert index.settle(30)
