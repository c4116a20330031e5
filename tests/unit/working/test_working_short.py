"""How much of what was just said goes into a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge.types import Turn
from edge.working.short import fit

PLENTY = 1 << 20


def turn(text: str, seq: int = 0, attributes: bytes = b"") -> Turn:
    return Turn("chat", "s", seq, "user", 0, text, attributes=attributes)


def words(text: str) -> int:
    """Two tokens that frame it, as the real tokenizer counts, and one a word."""
    return 2 + len(text.split())


def test_the_newest_turns_are_kept_whole_and_come_oldest_first() -> None:
    said = [turn("five six", 3), turn("three four", 2), turn("one two", 1)]
    assert fit(said, budget=9, most_bytes=PLENTY, tokens=words) == ([said[1], said[0]], False)
    assert fit(said, budget=12, most_bytes=PLENTY, tokens=words) == (said[::-1], False)
    assert fit([], budget=9, most_bytes=PLENTY, tokens=words) == ([], False)


def test_nothing_older_slips_in_behind_a_turn_that_does_not_fit() -> None:
    said = [turn("short", 3), turn("much too long for what is left", 2), turn("short", 1)]
    assert fit(said, budget=8, most_bytes=PLENTY, tokens=words) == ([said[0]], False)


def test_of_a_last_turn_that_is_too_long_its_end_is_given() -> None:
    long = turn(" ".join(str(n) for n in range(10_000)), 7)
    (kept,), truncated = fit([long, turn("older", 6)], budget=12, most_bytes=PLENTY, tokens=words)
    assert truncated
    assert kept.seq == 7
    assert long.text.endswith(kept.text)
    assert kept.text.split()[-9:] == [str(n) for n in range(9_991, 10_000)]


def test_white_space_that_costs_no_token_is_bounded_all_the_same() -> None:
    (kept,), truncated = fit([turn(" " * 500_000 + "end")], budget=100, most_bytes=1000, tokens=words)
    assert truncated
    assert kept.text.endswith("end")
    assert 3 < len(kept.text) <= 1000
    said = [turn(" " * 600, 2), turn(" " * 600, 1)]
    assert fit(said, budget=100, most_bytes=1000, tokens=words) == ([said[0]], False)
    with_attributes = [turn("a", 2, b"x" * 600), turn("b", 1, b"x" * 600)]
    assert fit(with_attributes, budget=100, most_bytes=1000, tokens=words) == ([with_attributes[0]], False)


def test_no_character_is_cut_in_two() -> None:
    for cluster in ("e\u0301", "👨\u200d👩", "❤\ufe0f"):
        (kept,), _ = fit([turn("x" * 50 + cluster)], budget=len(cluster) - 1, most_bytes=PLENTY, tokens=len)
        assert not kept.text or kept.text in cluster.split("\u200d")


def test_turns_are_not_read_beyond_what_fits() -> None:
    read = []

    def said():
        for seq in range(100, 0, -1):
            read.append(seq)
            yield turn("one two three", seq)

    kept, _ = fit(said(), budget=12, most_bytes=PLENTY, tokens=words)
    assert len(kept) == 2
    assert len(read) == 3


@given(st.text(), st.integers(1, 40), st.integers(0, 200))
def test_the_end_is_an_end_and_fits(text: str, budget: int, most_bytes: int) -> None:
    (kept,), truncated = fit([turn(text)], budget=budget, most_bytes=most_bytes, tokens=words)
    assert text.endswith(kept.text)
    assert truncated == (kept.text != text or words(text) > budget)
    assert len(kept.text.encode()) <= most_bytes or not truncated
    assert not kept.text or words(kept.text) <= budget
