"""A line of the log gives back exactly what was put in, or says that it is damaged."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ledger_fakes import START, said, turn

from edge.ledger.events import (
    Accesses,
    Erased,
    Event,
    Foreign,
    Forgotten,
    LineError,
    Tallied,
    decode,
    encode,
    mark,
    number,
)
from edge.types import MemoryState, Turn

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
TIMES = st.integers(0, 4_102_444_799_999_999)
TURNS = st.builds(
    Turn,
    source=ANY_TEXT,
    session=ANY_TEXT,
    seq=st.integers(0, 2**63 - 1),
    role=ANY_TEXT,
    occurred_at=TIMES,
    text=ANY_TEXT,
    tags=st.lists(ANY_TEXT, max_size=3).map(tuple),
    attributes=st.binary(max_size=40),
    kind=ANY_TEXT,
    state=st.sampled_from(MemoryState),
    weight=st.floats(0, 10),
)
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
PAIRS = st.lists(st.tuples(st.integers(1, 9), HEX), max_size=4)
EVENTS = st.one_of(
    st.builds(said, st.integers(1, 2**53), TURNS, st.integers(1, 50), TIMES),
    st.builds(
        lambda n, at, id, pairs: Forgotten(n, at, id, tuple(n for n, _ in pairs), tuple(m for _, m in pairs)),
        st.integers(1, 2**53),
        TIMES,
        ANY_TEXT,
        PAIRS,
    ),
    st.builds(Erased, st.integers(1, 2**53), TIMES, HEX, ANY_TEXT),
    st.builds(
        Accesses,
        st.integers(1, 2**53),
        TIMES,
        st.dictionaries(ANY_TEXT, st.tuples(st.integers(0, 9), TIMES), max_size=3),
    ),
    st.builds(Tallied, st.integers(1, 2**53), TIMES, st.dictionaries(ANY_TEXT, st.integers(0, 2**40), max_size=3)),
)


@given(EVENTS)
@example(said(1, turn('NUL \0, lines \n \r \u2028 \x85, RLO \u202e, quote " \\, \U0010ffff \ufffe')))
def test_an_event_comes_back_from_its_line_as_it_was(event: Event) -> None:
    line = encode(event)
    assert line.count(b"\n") == 1 and line.endswith(b'"}\n')
    assert decode(line) == event
    assert number(line) == event.n


@given(EVENTS, st.data())
def test_a_line_with_any_byte_changed_is_damaged(event: Event, data: st.DataObject) -> None:
    line = bytearray(encode(event))
    place = data.draw(st.integers(0, len(line) - 2))
    line[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LineError):
        decode(bytes(line))


@given(st.binary(max_size=200))
def test_what_is_no_line_is_damaged_and_raises_nothing_else(raw: bytes) -> None:
    with pytest.raises(LineError):
        decode(raw)


def test_a_line_has_readable_names_and_its_checksum_last() -> None:
    body = json.loads(encode(said(7, turn("我家的猫叫豆包", tags=("家",)))))
    assert list(body)[:3] == ["n", "at", "event"] and list(body)[-1] == "crc"
    assert body["text"] == "我家的猫叫豆包" and body["occurred_at"] == "2026-01-01T00:00:00.000000Z"
    assert "attributes" not in body


@pytest.mark.skipif(
    shutil.which("jq") is None, reason="jq is not installed here; python's json reads it in other tests"
)
def test_jq_reads_a_line() -> None:
    line = encode(said(1, turn("a\0b\u2028\u202e猫")))
    out = subprocess.run(["jq", "-r", ".pieces[0][1]"], input=line, capture_output=True, check=True)
    assert out.stdout == b"0\n"


def test_what_a_line_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode(said(1, turn("\ud800", source="x")).__class__(1, START, turn("\ud800"), b"", ()))
    with pytest.raises(ValueError, match="no time"):
        encode(Erased(1, 10**20, "", ""))


def test_an_event_of_a_later_version_is_passed_over_and_never_written() -> None:
    event = Foreign(3, START, "dreamt")
    with pytest.raises(ValueError, match="another version"):
        encode(event)
    raw = b'{"n":3,"at":"2026-01-01T00:00:00.000000Z","event":"dreamt","of":"sheep"'
    import zlib

    assert decode(raw + b',"crc":"%08x"}' % zlib.crc32(raw)) == event


def test_a_mark_needs_the_key() -> None:
    fingerprint = turn("x").fingerprint()
    assert mark(b"a", fingerprint) != mark(b"b", fingerprint) and len(mark(b"a", fingerprint)) == 64
