"""What a model gives a tool: refused by the field's name and its limit, whatever it is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import InvalidArgument
from edge.gateway.arguments import checked
from edge.gateway.times import moment
from edge.gateway.tools import TOOLS


def test_what_is_left_out_has_its_default() -> None:
    assert checked(TOOLS["memory_write"], {"content": "x"}) == {"content": "x", "tags": [], "weight": 1.0}
    assert checked(TOOLS["memory_search"], {"query": "x"})["top_k"] == 5
    assert checked(TOOLS["memory_search"], {"query": "x", "since": None, "top_k": None})["top_k"] == 5
    assert checked(TOOLS["memory_candidates"], None) == {}


@pytest.mark.parametrize(
    ("tool", "given_", "field", "limit"),
    [
        ("memory_write", {"content": "x", "weight": 1e308}, "weight", "0 to 10"),
        ("memory_write", {"content": "x", "weight": math.nan}, "weight", "0 to 10"),
        ("memory_write", {"content": "x", "weight": math.inf}, "weight", "0 to 10"),
        ("memory_write", {"content": "x", "weight": -1}, "weight", "0 to 10"),
        # What a client's JSON makes of NaN.
        ("memory_write", {"content": "x", "weight": None}, "weight", "a number"),
        ("memory_write", {"content": "x" * 5_000_000}, "content", "1,048,576"),
        ("memory_write", {"content": "  \n"}, "content", "empty"),
        ("memory_write", {}, "content", "missing"),
        ("memory_write", {"content": "x", "tags": ["t"] * 200}, "tags", "64"),
        ("memory_write", {"content": "x", "tags": ["a", "t" * 200]}, "tags[1]", "128"),
        ("memory_write", {"content": "x", "tags": "home"}, "tags", "list of strings"),
        ("memory_write", {"content": "x", "tags": [{"a": 1}]}, "tags", "list of strings"),
        ("memory_write", {"content": {"a": 1}}, "content", "string"),
        ("memory_search", {"query": "x", "top_k": 0}, "top_k", "1 to 200"),
        ("memory_search", {"query": "x", "top_k": -1}, "top_k", "1 to 200"),
        ("memory_search", {"query": "x", "top_k": 10**9}, "top_k", "1 to 200"),
        ("memory_search", {"query": "x", "top_k": 1.5}, "top_k", "whole number"),
        ("memory_search", {"query": "x", "top_k": True}, "top_k", "whole number"),
        ("memory_search", {"query": "x", "deep": "yes"}, "deep", "true or false"),
        ("memory_search", {"query": "x", "level": "everything"}, "level", "abstract"),
        ("memory_search", {"query": "x", "limit": 3}, "limit", "top_k"),
        ("memory_search", {"query": "x", "y" * 5000: 3}, "y" * 40 + "…", "top_k"),
        ("memory_forget", {"memory_id": ""}, "memory_id", "empty"),
    ],
)
def test_a_refusal_names_the_field_and_the_limit(tool: str, given_: dict[str, Any], field: str, limit: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        checked(TOOLS[tool], given_)
    assert refused.value.field == field
    assert refused.value.message.startswith(f"{field}: ")
    assert limit in refused.value.message
    assert len(refused.value.message) < 300


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert checked(TOOLS["memory_search"], {"query": "x", "top_k": 3.0})["top_k"] == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(sorted(TOOLS)),
    st.dictionaries(st.sampled_from(["query", "content", "tags", "weight", "top_k", "uri", "key", "x"]), json_values),
)
def test_nothing_that_json_can_say_gets_another_answer_than_a_value_or_a_refusal(tool: str, given_: Any) -> None:
    try:
        values = checked(TOOLS[tool], given_)
    except InvalidArgument as error:
        assert error.field
    else:
        assert set(values) == set(TOOLS[tool].arguments)


def test_times_are_dates_or_rfc_3339_and_nonsense_is_refused_by_name() -> None:
    assert moment("", "since") is None
    assert moment("2026-01-31T09:30:00+08:00", "since") == 1769823000_000_000
    assert moment("2026-01-31T01:30:00Z", "since") == 1769823000_000_000
    assert moment("2026-01-31T01:30:00.5z", "since") == 1769823000_000_000
    for text in (
        "yesterday",
        "1767225600",
        "2026-02-30",
        "2026-01-31T25:00:00Z",
        "1969-12-31",
        "9" * 40,
        "２０２６-01-31",
    ):
        with pytest.raises(InvalidArgument) as refused:
            moment(text, "until")
        assert refused.value.field == "until"
