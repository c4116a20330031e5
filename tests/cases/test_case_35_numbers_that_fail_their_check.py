"""Case 35: a wrong check digit, or 30 February (sipyourdrink-ltd/bernstein#3810).

The policy is written in edge/admission/redact/cards.py and identities.py: such a number is none, and stays.
"""

from __future__ import annotations

import pytest
from grpc_calls import Wire

from edge.admission.redact import Redactor


@pytest.mark.parametrize("number", ["4111111111111112", "110105194912310021", "110101199002300014"])
@pytest.mark.parametrize("frame", ["{}", "卡号{}元", "身份证{}号", "my number is {}"])
def test_a_number_that_fails_its_check_is_kept(number: str, frame: str) -> None:
    text = frame.format(number)
    assert Redactor().redact(text).text is text


def test_the_box_keeps_it_as_it_was_said_and_finds_it(wire: Wire, space: str) -> None:
    texts = ["卡号4111111111111112元", "身份证110101199002300014号"]
    wire.say(*texts, space=space)
    assert {memory.text for memory in wire.listed(space)} == set(texts)
    assert wire.texts("4111111111111112", space)[0] == texts[0]
