"""Keys and values of task state, and what redaction makes of them."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.attributes import check_value
from edge.errors import InvalidArgument
from edge.working.values import check_key, check_prefix, redacted

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=4),
    max_leaves=12,
)


def hide(text: str) -> str:
    return text.replace("hunter2", "[password]")


@pytest.mark.parametrize("key", ["k", "任务/第一步", "a" * 256, "a b", "😀"])
def test_a_key_may_be_any_line_of_up_to_256_bytes(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["", "a" * 257, "字" * 86, "a\nb", "\0", "\x7f", "\x85", "\u2028", "\ud800"])
def test_any_other_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_key(key)
    assert caught.value.field == "key"
    assert caught.value.message.startswith("key: ")


def test_a_prefix_may_be_empty() -> None:
    assert check_prefix("") == ""


@given(plain)
def test_one_plain_value_of_any_kind_passes_the_check(value: Any) -> None:
    raw = msgpack.packb(value)
    assert check_value(raw, "msgpack") == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xdd\x7f\xff\xff\xff",
        b"\xdf\x7f\xff\xff\xff",
        b"\xc6\x7f\xff\xff\xff",
        b"\x91" * 100_000,
        b"\x91" * 33 + b"\xc0",
        b"\xc0\xc0",
        b"\xc1",
        b"\x81\x01\x02",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\xd4\x01\x00",
        b"\xa1\xff",
    ],
    ids=lambda raw: raw[:8].hex(),
)
def test_a_bomb_or_an_ambiguous_value_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidArgument, match=r"^msgpack: "):
        check_value(raw, "msgpack")


@given(plain)
def test_what_has_no_secret_in_it_keeps_its_very_bytes(value: Any) -> None:
    # A float of 4 bytes in front, which packing again would make 8 of.
    raw = b"\x92\xca\x3f\x80\x00\x00" + msgpack.packb(value)
    assert redacted(raw, lambda text: text) is raw


def test_secrets_go_from_texts_lists_maps_and_their_keys() -> None:
    assert redacted("it is hunter2", hide) == "it is [password]"
    value = {"log": ["hunter2", {"deep": "x hunter2"}], "hunter2": 1, "n": 1.5, "raw": b"hunter2"}
    clean = redacted(msgpack.packb(value), hide)
    assert isinstance(clean, bytes)
    assert msgpack.unpackb(clean) == {
        "log": ["[password]", {"deep": "x [password]"}], "[password]": 1, "n": 1.5, "raw": b"hunter2",
    }  # fmt: skip


def test_two_keys_with_one_placeholder_lose_no_value() -> None:
    clean = redacted(msgpack.packb({"a": 1, "b": 2, "[x] 2": 3}), lambda text: "[x]" if len(text) == 1 else text)
    assert isinstance(clean, bytes)
    assert sorted(msgpack.unpackb(clean).values()) == [1, 2, 3]
    assert check_value(clean, "msgpack")


def test_a_number_that_equals_another_of_its_kind_stays_what_it_is() -> None:
    clean = redacted(msgpack.packb([True, 1, 1.0, math.inf, "hunter2"]), hide)
    assert isinstance(clean, bytes)
    assert [repr(item) for item in msgpack.unpackb(clean)] == ["True", "1", "1.0", "inf", "'[password]'"]
