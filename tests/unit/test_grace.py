"""What is hidden is erased when its time is over, by a box that runs on, and by one that was closed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_open_spaces import IDLE, AtOnce, Clock, opened, say

from edge.backlog import Backlog
from edge.config import Config, Forgetting, Storage
from edge.lexicon.words import WordLexicon
from edge.spaces import Spaces
from edge.types import Filter, Turn

GRACE = 600.0


class Wall(Clock):
    def now(self) -> int:
        return super().now() + round(self.seconds * 1e6)


@pytest.fixture
def clock() -> Wall:
    return Wall()


@pytest.fixture
def spaces(tmp_path: Path, clock: Wall) -> Iterator[Spaces]:
    vectorizer = AtOnce()
    backlog = Backlog({vectorizer.info.id: vectorizer})
    config = Config(storage=Storage(space_idle=IDLE), forgetting=Forgetting(grace_seconds=GRACE))
    made = Spaces(tmp_path, config, clock, WordLexicon(), backlog, [vectorizer.info])
    try:
        made.open_all()
        backlog.start()
        yield made
    finally:
        made.close()
        backlog.close()


def test_a_hidden_memory_is_erased_when_its_time_is_over_and_not_before(spaces: Spaces, clock: Wall) -> None:
    say(spaces, "private/desk", "台灯是绿色的")
    space = spaces.open("private/desk")
    (memory,) = space.list_page(Filter(), 9, None)
    receipt = space.forget([memory.id], None, False, grace=round(GRACE * 1e6))
    assert receipt.erased_at is not None

    # However long nobody uses the space: its job is not done.
    clock.seconds = GRACE - 1
    spaces.finish_forgets()
    spaces.close_idle()
    assert "private/desk" in opened(spaces)
    assert space.queries.by_ids([memory.id])

    # A clock that is set back only makes it wait.
    clock.seconds = -GRACE
    spaces.finish_forgets()
    assert space.queries.by_ids([memory.id])

    clock.seconds = GRACE + 1
    spaces.finish_forgets()
    assert not space.queries.by_ids([memory.id])
    assert space.forgotten([memory_print()])
    clock.seconds += IDLE
    spaces.close_idle()
    assert "private/desk" not in opened(spaces)


def memory_print() -> bytes:
    """Of the turn that `say` says."""
    return Turn("test", "s", 0, "user", 1_750_000_000_000_000, "台灯是绿色的").fingerprint()
