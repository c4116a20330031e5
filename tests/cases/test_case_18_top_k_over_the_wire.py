"""Case 18, at the door: k larger than what there is, and k that makes no sense.

nmslib/hnswlib#321, chroma-core/chroma#225, #919.
"""

from __future__ import annotations

import grpc
import pytest
from grpc_calls import Wire, at, message, refused, turn

TEXTS = ("苹果在篮子里", "梨在冰箱里", "香蕉在桌子上")


@pytest.fixture(scope="module")
def three(wire: Wire) -> str:
    wire.say(*TEXTS, space="private/case-18", tags=["fruit"])
    return "private/case-18"


@pytest.mark.parametrize("top_k", [3, 10, 200])
def test_no_more_is_given_than_there_is(wire: Wire, three: str, top_k: int) -> None:
    assert set(wire.texts("水果", three, top_k=top_k)) == set(TEXTS)


@pytest.mark.parametrize("top_k", [0, -1, -(2**31), 201, 10**9, 2**31 - 1])
def test_a_k_that_makes_no_sense_is_refused(wire: Wire, three: str, top_k: int) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "top_k"):
        wire.recall("水果", three, top_k=top_k)


def test_a_filter_that_matches_nothing_gives_nothing(wire: Wire, three: str) -> None:
    for nothing in ({"tags": ["vegetable"]}, {"sources": ["nobody"]}, {"until": at(0, 1000)}):
        assert wire.texts("水果", three, top_k=10, filter=nothing) == []


def test_an_empty_space_gives_nothing(wire: Wire) -> None:
    assert wire.texts("水果", "private/case-18-empty", top_k=10) == []


def test_a_filter_that_matches_one_of_many_gives_that_one(wire: Wire) -> None:
    """Of five hundred; tests/cases/test_case_18_odd_k.py has the five thousand, without the model's time."""
    space = "private/case-18-many"
    turns = [
        turn(f"第{n}颗种子发芽了", seq=n, session="s", space=space, tags=["it"] if n == 321 else []) for n in range(500)
    ]
    wire.answers(*(message(*turns[start : start + 100]) for start in range(0, 500, 100)))
    for query in ("种子", "完全无关的问题", "第7颗"):
        assert wire.texts(query, space, top_k=10, filter={"tags": ["it"]}) == ["第321颗种子发芽了"]
