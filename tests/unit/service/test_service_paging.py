"""Page tokens: what the box wrote it reads; anything else is refused."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import InvalidArgument
from edge.service.paging import PageToken

NUMBERS = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), st.tuples(NUMBERS, NUMBERS), max_size=5))
def test_a_token_comes_back_as_it_was(places: dict[str, tuple[int, int]]) -> None:
    token = PageToken(places)
    assert PageToken.read(token.write()) == token
    assert all(token.after(space) == place for space, place in places.items())


def test_no_token_is_the_beginning() -> None:
    assert PageToken.read("").after("public") is None


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_rubbish_is_refused_by_name(text: str) -> None:
    check(text)


@given(JSON)
def test_well_formed_rubbish_is_refused_too(value: object) -> None:
    check(base64.urlsafe_b64encode(json.dumps(value).encode()).decode())


def check(text: str) -> None:
    """It reads as a token whose numbers SQLite can hold, or is refused by name."""
    try:
        token = PageToken.read(text)
    except InvalidArgument as error:
        assert error.field == "page_token"
    else:
        assert all(-(2**63) <= number < 2**63 for place in token.places.values() for number in place)


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        PageToken.read(PageToken({"public": (2**63, 0)}).write())
