"""An evaluation set is read as it is meant, or refused with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eval_sets import QUESTIONS, rows, write

from edge.cli.benches.quality_sets import load
from edge.errors import InvalidArgument

GOOD = rows()[0]
ASKED = QUESTIONS[0] | {"relevant": ["fish"]}


@pytest.mark.parametrize(
    ("memories", "queries", "says"),
    [
        (["no JSON"], [ASKED], r"memories\.jsonl, line 1: line: is not JSON"),
        (["[1]"], [ASKED], r"line 1: line: must be a JSON object"),
        (["[" * 100_000], [ASKED], r"line 1: line: is not JSON"),
        ([GOOD, GOOD], [ASKED], r"memories\.jsonl, line 2: id: another memory has it"),
        ([GOOD | {"id": 7}], [ASKED], r"line 1: id: must be a string"),
        ([GOOD | {"session": ""}], [ASKED], r"line 1: session: must be a string that is not empty"),
        ([GOOD | {"session": "all"}], [ASKED], r"line 1: session: \"all\" means every session"),
        ([GOOD | {"sub": 3}], [ASKED], r"line 1: sub: must be a string"),
        ([GOOD | {"role": 3}], [ASKED], r"line 1: role: must be a string"),
        ([GOOD | {"ts": "yesterday"}], [ASKED], r"line 1: ts: must be a date or time"),
        ([GOOD | {"ts": 3}], [ASKED], r"line 1: ts: must be a date or time"),
        ([GOOD | {"ts": "1900-01-01"}], [ASKED], r"line 1: ts: must be a time in the years"),
        ([GOOD | {"text": None}], [ASKED], r"line 1: text: must be a string"),
        ([GOOD | {"text": " \n"}], [ASKED], r"line 1: text: is empty"),
        (['{"id": "x", "session": "u1", "text": "\\ud800"}'], [ASKED], r"line 1: text: has half of a surrogate pair"),
        ([], [ASKED], r"memories\.jsonl: has no memory"),
        ([GOOD], [], r"queries\.jsonl: has no question"),
        ([GOOD], [ASKED, "{"], r"queries\.jsonl, line 2: line: is not JSON"),
        ([GOOD], [ASKED | {"scope": "u9"}], r"queries\.jsonl, line 1: scope: no memory has this session"),
        ([GOOD], [ASKED | {"relevant": []}], r"line 1: relevant: must be a list of memory ids"),
        ([GOOD], [ASKED | {"relevant": "fish"}], r"line 1: relevant: must be a list of memory ids"),
        ([GOOD], [ASKED | {"relevant": ["cow"]}], r"line 1: relevant: names a memory that is not in"),
        ([GOOD], [ASKED | {"groups": [["fish"], []]}], r"line 1: groups\[1\]: must be a list of memory ids"),
        ([GOOD], [ASKED | {"groups": [["fish"], ["cow"]]}], r"line 1: groups\[1\]: names a memory"),
        ([GOOD], [ASKED | {"groups": 4}], r"line 1: groups: must be a list of lists"),
        ([GOOD], [ASKED | {"text": ""}], r"line 1: text: is empty"),
        ([GOOD], [ASKED | {"category": 4}], r"line 1: category: must be a string"),
        ([GOOD], [ASKED | {"category": "adversarial"}], r"has no question that could be scored"),
    ],
)
def test_a_malformed_set_is_refused_with_its_place(
    tmp_path: Path, memories: list[object], queries: list[object], says: str
) -> None:
    with pytest.raises(InvalidArgument, match=says):
        load(write(tmp_path / "set", memories, queries))


def test_a_file_that_is_no_utf_8_and_one_that_is_no_file_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", [GOOD], [ASKED])
    (folder / "queries.jsonl").write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(InvalidArgument, match=r"queries\.jsonl, line 1: line: is not UTF-8"):
        load(folder)
    (folder / "queries.jsonl").unlink()
    (folder / "queries.jsonl").mkdir()
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load(folder)


def test_blank_lines_a_byte_order_mark_and_fields_of_other_names_do_no_harm(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", ["\ufeff" + json.dumps(GOOD | {"mood": 3}), ""], ["", ASKED | {"weak": ["cow"]}])
    one = load(folder)
    assert len(one.memories) == len(one.queries) == 1


def test_a_conversation_within_a_session_counts_its_own_turns(tmp_path: Path) -> None:
    memories = [GOOD | {"id": str(n), "sub": sub} for n, sub in enumerate(("u1/a", "u1/a", "b", None, "u1/a"))]
    one = load(write(tmp_path / "set", memories, [ASKED | {"relevant": ["0"]}]))
    assert [(told.turn.session, told.turn.seq) for told in one.memories] == [
        ("u1/a", 0), ("u1/a", 1), ("u1/b", 0), ("u1", 0), ("u1/a", 2),
    ]  # fmt: skip
    assert len(one.within("u1")) == 5
