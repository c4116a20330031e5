"""A question says nothing, so it takes nothing's place."""

from __future__ import annotations

import pytest

from edge.admission.agree.change import takes_place_of


@pytest.mark.parametrize(
    ("older", "newer"),
    [("我有哥哥", "我有没有哥哥"), ("我喜欢咖啡", "我是不是不喜欢咖啡了"), ("I like coffee", "Do I not like coffee?")],
)
def test_a_question_takes_the_place_of_no_fact(older: str, newer: str) -> None:
    assert not takes_place_of(older, newer)


def test_what_is_said_still_does() -> None:
    assert takes_place_of("我喜欢咖啡", "我不喜欢咖啡了")
