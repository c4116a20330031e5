"""The wire of stdin and stdout: lines in any pieces, and what is no message."""

from __future__ import annotations

import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.gateway import stdio


def read(chunks: list[bytes]) -> list[bytes | None]:
    left = iter([*chunks, b""])
    return list(stdio.lines(lambda: next(left)))


@given(st.lists(st.binary(max_size=8).map(lambda part: part.replace(b"\n", b"")), max_size=6), st.data())
def test_lines_come_out_whole_however_they_arrive(parts: list[bytes], data) -> None:
    whole = b"".join(part + b"\n" for part in parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read([chunk for chunk in chunks if chunk]) == parts


def test_the_last_line_needs_no_end_and_one_too_long_is_passed_over(monkeypatch) -> None:
    monkeypatch.setattr(stdio, "LINE_BYTES", 10)
    assert read([b"a\nb"]) == [b"a", b"b"]
    assert read([b"x" * 8, b"x" * 8, b"x" * 8 + b"\nafter\n"]) == [None, b"after"]
    assert read([b"y" * 50]) == [None]


def test_half_a_character_in_an_escape_becomes_the_replacement_character() -> None:
    assert json.loads(stdio._paired(r'{"a": "x\ud83dy", "b": "\ud83d\ude00"}')) == {"a": "x\ufffdy", "b": "😀"}
    assert stdio._paired(r"not json \ud83d") == r"not json \ud83d"


@pytest.mark.parametrize(
    ("text", "id", "code"),
    [
        ("hello", None, -32700),
        ("[" * 100_000, None, -32700),
        ('{"jsonrpc": "2.0", "id": 7}', 7, -32600),
        ('{"id": "a", "method": 5}', "a", -32600),
        ('{"id": {"a": 1}, "method": "x"}', None, -32600),
        ("[]", None, -32600),
    ],
)
def test_what_is_no_message_is_answered_by_its_id_where_it_has_one(text, id, code) -> None:
    assert stdio._fault(text)[:2] == (id, code)


def test_a_pipe_that_does_not_block_is_read_and_written_as_any_other() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    # More than a pipe holds, so that each end waits for the other.
    sent = bytes(range(256)) * 4096

    def send() -> None:
        stdio._write_all(writing, sent)
        os.close(writing)

    sender = threading.Thread(target=send)
    sender.start()
    assert b"".join(iter(lambda: stdio._read(reading), b"")) == sent
    sender.join()
    os.close(reading)
    # What broke is as what ended.
    assert stdio._read(reading) == b""
