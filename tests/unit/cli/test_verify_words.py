"""`edge verify`: one of a thing is one, and several are several."""

from __future__ import annotations

import pytest

from edge.cli.verify import _counted


@pytest.mark.parametrize(
    ("count", "name", "words"),
    [
        (1, "spaces", "1 space"),
        (1, "memories", "1 memory"),
        (1, "copies", "1 copy"),
        (1, "databases", "1 database"),
        (1, "damaged_lines", "1 damaged line"),
        (1, "forgotten", "1 forgotten"),
        (0, "turns", "0 turns"),
        (1200, "erased lines", "1,200 erased lines"),
    ],
)
def test_a_count_goes_with_its_noun(count: int, name: str, words: str) -> None:
    assert _counted(count, name) == words


def test_an_empty_folder_has_one_space_and_says_so(edge, tmp_path) -> None:
    (tmp_path / "spaces" / "public" / "log").mkdir(parents=True)
    done = edge("verify", "--data", str(tmp_path))
    assert "1 space," in done.out and "1 spaces" not in done.out
