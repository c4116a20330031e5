from __future__ import annotations

import json
import unicodedata
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.cli.show import as_json, bar, lines, one_line, size, table
from edge.cli.times import instant, moment
from edge.errors import InvalidArgument

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text())
def test_one_line_has_no_control_and_no_bidi_character(text: str) -> None:
    shown = one_line(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" or c in BIDI]


@given(st.text())
def test_lines_keeps_only_breaks_and_tabs(text: str) -> None:
    shown = lines(text)
    assert not [c for c in shown if (unicodedata.category(c) == "Cc" and c not in "\n\t") or c in BIDI]
    assert shown.count("\n") == text.count("\n")


@given(st.text(alphabet=st.characters(categories=["L", "M", "N", "P", "Zs", "S"])))
def test_prose_of_any_script_is_left_alone(text: str) -> None:
    assert one_line(text) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_reads_back_exactly_and_is_safe_to_look_at(text: str) -> None:
    shown = as_json({text: [text]})
    assert json.loads(shown) == {text: [text]}
    assert one_line(shown) == shown


@given(st.floats(allow_nan=False))
def test_a_bar_is_ten_wide(share: float) -> None:
    assert len(bar(share)) == 10


def test_sizes_and_tables_are_readable() -> None:
    assert [size(0), size(1536), size(24_010_842)] == ["0 B", "1.5 KiB", "22.9 MiB"]
    assert table([("name", "count"), ("a", "1"), ("long", "1,000")]) == "name  count\na         1\nlong  1,000"


@given(
    st.datetimes(datetime(1970, 1, 3), datetime(2100, 1, 1)),  # noqa: DTZ001  # hypothesis wants them naive
    st.integers(-14 * 60, 14 * 60),
)
def test_rfc_3339_is_read_as_the_standard_library_writes_it(when: datetime, minutes: int) -> None:
    aware = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert instant(aware.isoformat(), "t") == (aware - epoch) // timedelta(microseconds=1)


def test_a_date_is_its_first_moment_here() -> None:
    here = datetime(2026, 1, 31).astimezone()  # local is what is meant
    assert moment("2026-01-31", "since") == int(here.timestamp()) * 1_000_000
    assert moment("2026-01-31T00:00:00Z", "since") == 1_769_817_600_000_000


def test_a_leap_second_is_the_second_after() -> None:
    assert instant("2016-12-31T23:59:60Z", "t") == instant("2017-01-01T00:00:00Z", "t")


@pytest.mark.parametrize(
    "text",
    [1767225600, None, "", "2026-01-31", "2026-01-31T09:30:00", "2026-02-30T00:00:00Z", "2026-01-01T00:00:61Z",
     "2026-01-01T00:00:00+08:77", "２０２６-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00Z\n"],
)  # fmt: skip
def test_anything_else_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        instant(text, "occurred_at")
    assert caught.value.field == "occurred_at"
