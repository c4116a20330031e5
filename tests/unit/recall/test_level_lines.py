from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.recall.line import ELLIPSIS, flatten, shorten

WORDS = "话 ， 。 1,234.50 2026-03-05 $19.99 50% Zürich cafe\u0301s don't v1.5 हिन्दी か\u3099 ก\u0e49 각 - ( ) ；"
DRAWN = ["👨\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3", " "]
ATOMS = st.lists(st.sampled_from([*WORDS.split(), *DRAWN]), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        (" a \n\t b ", "a b"),
        ("a\u200bb\u00adc", "abc"),
        ("a\u202eb\u2066c\u061cd", "abcd"),
        ("a\u2028\u200bb", "a b"),
        ("a \u200d b", "a b"),
        ("相\u200d关\ufe0f", "相关"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("🏴\U000e0067\U000e007f", "🏴"),
        ("\ud800a", "a"),
    ],
)
def test_a_flat_line_has_nothing_that_is_not_seen(text: str, flat: str) -> None:
    assert flatten(text) == flat


@given(st.text(alphabet=st.characters() | st.sampled_from(" \n\u200b\u200d\ufe0f👍a"), max_size=60))
def test_what_is_flat_stays_as_it_is(text: str) -> None:
    flat = flatten(text)
    assert flatten(flat) == flat
    assert "  " not in flat
    assert len(flat.splitlines()) <= 1
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in flat)
    assert flatten("\n".join(text.splitlines())) == flat


@given(ATOMS, st.integers(0, 60), st.lists(st.tuples(st.integers(0, 50), st.integers(1, 8)), max_size=5))
def test_a_line_is_cut_where_nothing_is_parted(atoms: list[str], limit: int, marks: list[tuple[int, int]]) -> None:
    # Numbers and words side by side are one.
    atoms = [part for atom in atoms for part in (atom, "话")]
    text = "".join(atoms)
    spans = [(start, min(start + length, len(text)), 1.0) for start, length in marks if start < len(text)]
    shown = shorten(text, limit, spans)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
        return
    inner = shown.strip(ELLIPSIS)
    assert inner in text
    if limit < 40 or not inner:
        return
    # Where it lies in the text, as whole atoms; equal parts may lie in several places.
    bounds = {0}
    for atom in atoms:
        bounds.add(max(bounds) + len(atom))
    places = [match.start() for match in re.finditer(f"(?={re.escape(inner)})", text)]
    assert any(
        not text[bound(bounds, start) : start].strip()
        and not text[start + len(inner) : above(bounds, start + len(inner))].strip()
        for start in places
    )


def bound(bounds: set[int], place: int) -> int:
    return max(one for one in bounds if one <= place)


def above(bounds: set[int], place: int) -> int:
    return min(one for one in bounds if one >= place)


def test_a_line_is_cut_at_a_clause_where_that_loses_nothing() -> None:
    assert shorten("先说一件事，再说另一件事，最后说第三件事情", 16) == "先说一件事，再说另一件事，…"
    text = "一二三四五，六七八九十，甲乙丙丁戊，己庚辛壬癸，子丑寅卯辰"
    at = text.index("丙")
    assert shorten(text, 12, [(at, at + 1, 1.0)]) == "…甲乙丙丁戊，…"
    assert shorten(text, 11, [(len(text) - 1, len(text), 1.0)]) == "…子丑寅卯辰"


def test_where_no_clause_begins_what_matters_has_something_on_both_sides() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    at = text.index("seven")
    shown = shorten(text, 30, [(at, at + 5, 1.0)])
    assert shown.startswith("…") and shown.endswith("…")
    assert " seven " in shown


def test_what_is_longer_than_the_room_is_parted_all_the_same() -> None:
    assert shorten("a" * 100, 20) == "a" * 19 + "…"
    assert len(shorten("e" + "\u0301" * 100, 20)) == 20
    assert shorten("abc", 2) == "…"
    assert shorten("abc", 0) == ""
