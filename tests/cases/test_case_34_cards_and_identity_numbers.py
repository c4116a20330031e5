"""Case 34: a card or an identity number beside Chinese characters (hoophq/alcatraz#37, maziyarpanahi/openmed#1468).

Python's `\\b` sees no boundary between 证 and a digit, so a pattern that leans on it finds nothing here.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

import pytest
from grpc_calls import Wire
from hiding import SPACE, left, recalled, tell

from edge.admission.redact import Redactor

if TYPE_CHECKING:
    from conftest import Box

CASES = {
    "卡号4111111111111111元": "卡号[银行卡]元",
    "卡号４１１１１１１１１１１１１１１１元": "卡号[银行卡]元",
    "6222020000000000000": "[银行卡]",
    "身份证11010519491231002X号": "身份证[身份证号]号",
    "身份证11010519491231002x号": "身份证[身份证号]号",
}


@pytest.mark.parametrize(("text", "hidden"), CASES.items())
def test_the_number_goes_and_the_words_stay(text: str, hidden: str) -> None:
    assert Redactor().redact(text).text == hidden


SECRETS = ("4111111111111111", "４１１１１１１１", "622202000000", "11010519491231002", "19491231")


def test_none_of_them_is_anywhere_in_what_the_box_keeps_says_or_finds(box: Box) -> None:
    with Wire(box.address) as wire:
        for text in CASES:
            tell(wire, text)
        # The digits are no words of the index, and lead to nothing that has them.
        said = recalled(wire, *SECRETS, "卡号", "身份证")
        said += "".join(f"{memory.text}{memory.tags}{memory.attributes!r}" for memory in wire.listed(SPACE))
        assert "[银行卡]" in said and "[身份证号]" in said
        assert not [secret for secret in SECRETS if secret in said]
        assert not wire.recall(SECRETS[0], SPACE, only_relevant=True).hits
    assert box.stop() == 0
    assert left(box, *SECRETS) == []


def test_the_vector_is_that_of_the_text_without_the_number(box: Box) -> None:
    with Wire(box.address) as wire:
        wire.say("卡号4111111111111111元", "卡号[银行卡]元", space=SPACE)
    assert box.stop() == 0
    with contextlib.closing(sqlite3.connect(box.data / "spaces" / SPACE / "memory.sqlite")) as connection:
        vectors = connection.execute("SELECT vector FROM vectors").fetchall()
    assert len(vectors) == 2 and len(set(vectors)) == 1
