"""`edge status --watch` where there is no terminal, and what it does when the box is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from statuses import a_status

from edge.cli import watch
from edge.errors import Unauthenticated, Unavailable


class Box:
    """What each watch gives, one after another: statuses, then how it ends."""

    def __init__(self, *watches: list[Any]) -> None:
        self._watches = list(watches)
        self.asked = 0

    def watch_status(self, interval: float) -> Iterator[Any]:
        for step in self._watches.pop(0):
            if isinstance(step, BaseException):
                raise step
            yield step

    def status(self) -> Any:
        self.asked += 1
        return a_status(reason="back again")


GONE = Unavailable("no box answers; start it")


def seen(box: Any) -> tuple[list[str], int]:
    away: list[None] = []
    reasons = [status.governor.reason for status in watch.statuses(box, 1.0, lambda: away.append(None))]
    return reasons, len(away)


def test_a_box_that_comes_back_is_watched_again() -> None:
    box = Box([a_status(reason="a"), GONE], [a_status(reason="b")])
    assert seen(box) == (["a", "back again", "b"], 1)
    assert box.asked == 1


def test_a_box_that_never_answered_is_not_waited_for() -> None:
    box = Box([GONE])
    with pytest.raises(Unavailable, match="start it"):
        seen(box)
    assert box.asked == 0


def test_a_box_that_answers_but_ends_every_watch_is_not_asked_for_ever() -> None:
    box = Box([a_status(), GONE], [GONE])
    with pytest.raises(Unavailable):
        seen(box)
    assert box.asked == 1


def test_a_refusal_is_no_absence() -> None:
    with pytest.raises(Unauthenticated):
        seen(Box([a_status(), Unauthenticated("a token is needed")]))


def test_without_a_terminal_blocks_are_parted_by_a_blank_line(capsys: pytest.CaptureFixture[str]) -> None:
    watch.watching(Box([a_status(), a_status()]), 1.0, False)  # type: ignore[arg-type]  # as much of a client as it needs
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("\n\nbox ") == 1 and out.endswith("\n\n")


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    watch.watching(Box([a_status(), GONE], [a_status()]), 1.0, True)  # type: ignore[arg-type]  # as above
    output = capsys.readouterr()
    assert [json.loads(line)["governor"]["level"] for line in output.out.splitlines()] == ["warm"] * 3
    assert output.err == "edge: the box is away; waiting for it\n"


def test_ctrl_c_is_its_ordinary_end() -> None:
    watch.watching(Box([a_status(), KeyboardInterrupt()]), 1.0, True)  # type: ignore[arg-type]  # as above
