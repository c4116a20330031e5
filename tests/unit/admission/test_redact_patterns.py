"""The owner's own patterns: what they may be, and that none of them can hold the box up."""

from __future__ import annotations

import itertools
import logging

import pytest

from edge.admission.redact import Redactor
from edge.errors import InvalidArgument


def test_an_own_pattern_is_hidden_and_counted_under_its_name() -> None:
    redactor = Redactor(patterns={"工号": r"EMP\d{6}", "project": r"(?<![a-z])(?i:bluebird)(?![a-z])"})
    result = redactor.redact("工号ＥＭＰ１２３４５６和EMP654321，项目Bluebird。")
    assert result.text == "工号[工号]和[工号]，项目[project]。"
    assert result.counts == {"工号": 2, "project": 1}


def test_an_own_pattern_gives_way_to_the_classes() -> None:
    result = Redactor(patterns={"digits": r"\d{16}"}).redact("4111111111111111 and 1234567890123456")
    assert (result.text, result.counts) == ("[银行卡] and [digits]", {"bank_card": 1, "digits": 1})


@pytest.mark.parametrize(
    ("name", "pattern", "says"),
    [
        ("x", "(", "not a valid regular expression"),
        ("x", "[z-a]", "not a valid regular expression"),
        ("x", "(?<n>a)(?P=m)", "not a valid regular expression"),
        ("x", "a*", "matches the empty text"),
        ("x", "", "1 to 1000 characters"),
        ("x", "a" * 1001, "1 to 1000 characters"),
        ("x", "(?:(?:(?:a{1000}){1000}){1000}){1000}", "counted repeats"),
        ("", "a", "1 to 32 characters"),
        ("a]b", "a", "without brackets"),
        ("bank_card", "a", "box's own classes"),
    ],
)
def test_a_bad_pattern_is_named(name: str, pattern: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as refused:
        Redactor(patterns={"good": "a", name: pattern})
    assert refused.value.field == f"admission.patterns.{name}"


def test_more_patterns_than_a_text_can_be_searched_for_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="101 patterns"):
        Redactor(patterns={f"p{n}": "a" for n in range(101)})


def test_a_catastrophic_pattern_is_stopped_and_hides_what_it_did_not_read(caplog: pytest.LogCaptureFixture) -> None:
    redactor = Redactor(patterns={"slow": r"(a|aa)+$"})
    text = "start " + "a" * 5000 + "!"
    with caplog.at_level(logging.WARNING):
        first, again = redactor.redact(text), redactor.redact(text)
    assert first.text == again.text == "[slow]"
    assert first.counts == {"slow": 1}
    assert [record.getMessage().split(" took")[0] for record in caplog.records] == ["The redaction pattern slow"]
    assert "aaaa" not in caplog.text


def test_a_pattern_out_of_time_keeps_what_it_read_and_hides_the_rest() -> None:
    # Time goes by with every look at the clock, and is over after the second search.
    clock = itertools.count(0.0, 0.1)
    redactor = Redactor("en", patterns={"n": r"N\d"}, clock=lambda: next(clock))
    assert redactor.redact("N1 then N2 then N3 and more").text == "[n] then [n][n]"


def test_a_pattern_that_meets_its_own_placeholder_changes_nothing() -> None:
    for pattern in (".", r"\w+", r"[^x]", r"name.*", "name"):
        redactor = Redactor(patterns={"name": pattern})
        once = redactor.redact("name is 4111111111111111, x").text
        assert redactor.redact(once).text == once


def test_a_pattern_may_reach_over_what_another_class_hid() -> None:
    assert (
        Redactor("en", patterns={"line": r"salary.*"}).redact("my salary goes to 4111111111111111 monthly").text
        == "my [bank card]"
    )
