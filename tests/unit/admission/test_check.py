from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.check import MAX_TIME, check_query, check_turn
from edge.config import Limits
from edge.errors import InvalidArgument
from edge.types import Turn

LIMITS = Limits()
GOOD: dict[str, Any] = {
    "source": "chat",
    "session": "s1",
    "seq": 0,
    "role": "user",
    "occurred_at": 1_767_225_600_000_000,
    "text": "我家的猫叫豆包",
}


def turn(**changes: Any) -> Turn:
    return check_turn(**{**GOOD, **changes}, limits=LIMITS)


def refused(**changes: Any) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        turn(**changes)
    return caught.value


def test_a_good_turn_comes_through_unchanged() -> None:
    raw = msgpack.packb({"a": [1, {"b": None}], "c": 1.5, "d": b"\0"})
    assert turn(tags=["x", "y", "x"], attributes=raw) == Turn(**GOOD, tags=("x", "y"), attributes=raw)


@pytest.mark.parametrize(
    "text", ["", " \t\n", "\u3000", "\u200b" * 3, "\x1b\x07", "\u202e\ufeff", "\u2800\u3164", "\ufe0f"]
)
def test_a_text_without_anything_visible_is_refused(text: str) -> None:
    assert refused(text=text).field == "text"
    with pytest.raises(InvalidArgument) as caught:
        check_query(text, LIMITS)
    assert caught.value.field == "query"


@pytest.mark.parametrize("text", ["安全\u202egpj.exe", "\x1b[2J已清空", "שלום", "👍", ".", "\u0301", "  a  "])
def test_a_text_with_something_visible_is_kept_as_it_is(text: str) -> None:
    assert turn(text=text).text == text
    assert check_query(text, LIMITS) == text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": None}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "\ud83dx"}, "text"),
        ({"text": "a" * (LIMITS.text_bytes + 1)}, "text"),
        ({"text": "天" * (LIMITS.text_bytes // 3 + 1)}, "text"),
        ({"tags": [{"a": 1}]}, "tags[0]"),
        ({"tags": ["x", None]}, "tags[1]"),
        ({"tags": None}, "tags"),
        ({"tags": "abc"}, "tags"),
        ({"tags": ["a", "b", "c", ""]}, "tags[3]"),
        ({"tags": [str(n) for n in range(10_000)]}, "tags"),
        ({"tags": ["a" * 1_000_000]}, "tags[0]"),
        ({"tags": ["天" * 43]}, "tags[0]"),
        ({"tags": ["a\nb"]}, "tags[0]"),
        ({"occurred_at": -1}, "occurred_at"),
        ({"occurred_at": MAX_TIME + 1}, "occurred_at"),
        ({"occurred_at": 2**63 - 1}, "occurred_at"),
        ({"occurred_at": 1.5}, "occurred_at"),
        ({"occurred_at": True}, "occurred_at"),
        ({"source": ""}, "source"),
        ({"source": "a\x1b[2J"}, "source"),
        ({"session": " "}, "session"),
        ({"session": "s" * 257}, "session"),
        ({"role": "r" * 257}, "role"),
        ({"seq": -1}, "seq"),
        ({"seq": 2**63}, "seq"),
        ({"weight": math.nan}, "weight"),
        ({"weight": math.inf}, "weight"),
        ({"weight": 10.1}, "weight"),
        ({"kind": "A/B"}, "kind"),
        ({"attributes": "text"}, "attributes"),
        ({"attributes": b"\x80" + b"\0" * LIMITS.attributes_bytes}, "attributes"),
    ],
)
def test_what_cannot_work_is_refused_and_named(changes: dict[str, Any], field: str) -> None:
    error = refused(**changes)
    assert error.field == field
    assert error.message.startswith(field)


def test_a_role_may_be_empty_and_a_time_may_lie_ahead() -> None:
    assert turn(role="", occurred_at=MAX_TIME).occurred_at == MAX_TIME


def test_a_query_over_its_limit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="query"):
        check_query("天" * (LIMITS.query_bytes // 3 + 1), LIMITS)


@pytest.mark.parametrize(
    "raw",
    [
        bytes.fromhex("dd7fffffff"),
        bytes.fromhex("df7fffffff"),
        b"\x81\xa1a" + bytes.fromhex("dd7fffffff"),
        b"\x81\xa1a" + bytes.fromhex("db7fffffff"),
        b"\x91" * 60_000 + b"\xc0",
        b"\x81\xa1a" + b"\x91" * 60_000 + b"\xc0",
        b"\x81\xa1a" + b"\x81\xa1a" * 20_000 + b"\xc0",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x82\xa1a\x01\xd9\x01a\x02",
        b"\x81\xa1a\x82\xa1b\x01\xa1b\x02",
        b"\x81\x01\x01",
        b"\x81\xc0\x01",
        b"\x81\x80\x01",
        b"\x81\xc4\x01a\x01",
        b"\x80\x80",
        b"\x81\xa1a",
        b"\x81\xa1\xff\x01",
        b"\x81\xa1a\xa2\xc3\x28",
        b"\x81\xa1a\xd4\x01\x00",
        b"\x81\xa1a\xc1",
        b"\x01",
        b"\xc0",
        b"\xa1a",
    ],
)
def test_attributes_that_are_not_one_plain_map_are_refused(raw: bytes) -> None:
    assert refused(attributes=raw).field == "attributes"


KEYS = st.text(min_size=1)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(KEYS, inner, max_size=20),
    max_leaves=30,
)


@given(st.dictionaries(KEYS, PLAIN, max_size=20))
def test_any_plain_map_that_msgpack_packs_is_accepted(value: dict[str, Any]) -> None:
    raw = msgpack.packb(value)
    assert turn(attributes=raw).attributes == raw


@given(st.binary(max_size=40).map(lambda tail: b"\x81\xa1a" + tail) | st.binary(max_size=40))
def test_whatever_is_accepted_msgpack_reads_as_a_map(raw: bytes) -> None:
    try:
        turn(attributes=raw)
    except InvalidArgument:
        return
    assert not raw or isinstance(msgpack.unpackb(raw), dict)
