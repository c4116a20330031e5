"""Words of a query that ask for a deep recall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import Recalling
from edge.recall.triggers import find_trigger

TRIGGERS = Recalling().triggers


@pytest.mark.parametrize(
    ("query", "rest", "trigger"),
    [
        ("还记得吗？我家的猫叫什么", "我家的猫叫什么", "还记得吗"),
        ("我家的猫叫什么，你还记得吗？", "我家的猫叫什么", "还记得吗"),
        ("请你帮我回忆一下吧：上周的会议", "上周的会议", "回忆一下"),
        ("认真回忆 预算", "预算", "认真回忆"),
        ("昨天，查一下，我们吃了什么", "昨天 我们吃了什么", "查一下"),
        ("Do you  recall our budget?", "our budget?", "do you recall"),
        ("Can you look it up: the budget", "the budget", "look it up"),
        ("请remember when我们去海边", "我们去海边", "remember when"),
        ("查一下，查一下账单", "账单", "查一下"),
        ("查一下", "查一下", "查一下"),
        ("还记得吗？？", "还记得吗？？", "还记得吗"),
        ("look it upside down", "look it upside down", ""),
        ("我家的猫", "我家的猫", ""),
        ("。", "。", ""),
    ],
)
def test_a_trigger_is_cut_out_with_its_courtesies(query: str, rest: str, trigger: str) -> None:
    assert find_trigger(query, TRIGGERS) == (rest, trigger)


def test_a_trigger_in_a_long_query_is_found_at_once() -> None:
    query = "你" * 16_000 + " " * 16_000 + "查一下" + " " * 16_000 + "？" * 16_000
    assert find_trigger(query, TRIGGERS)[1] == "查一下"
    assert find_trigger("猫", ()) == ("猫", "")


@given(st.text(max_size=40), st.sampled_from(TRIGGERS), st.text(max_size=40))
def test_whatever_is_around_a_trigger_something_is_left(before: str, trigger: str, after: str) -> None:
    rest, _ = find_trigger(f"{before} {trigger} {after}", TRIGGERS)
    assert rest.strip()
