"""Case 1: text with nothing visible in it (vectorize-io/hindsight#1259, mem0ai/mem0#5387).

All of these tokenise to a bare CLS SEP, a vector that is near everything.
"""

from __future__ import annotations

import grpc
import pytest
from grpc_calls import SECONDS, Wire, refused, rejected, turn

from edge.v1 import memory_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOTHING = ["", " \t\n", "\u3000", "\u200b\u200b\u200b", "\ufeff", "\u2060\u00ad", "\u202e"]


@pytest.mark.parametrize("text", NOTHING, ids=ascii)
def test_nothing_visible_is_neither_stored_nor_searched_for(wire: Wire, text: str) -> None:
    space = "private/case-01"
    wire.say("一句看得见的话", space=space, session="once") if not wire.listed(space) else None
    before = [memory.id for memory in wire.listed(space)]

    first, second = wire.ingest(turn(text, space=space))
    assert rejected(first[0]) == rejected(second[0]) == (INVALID.value[0], "text")
    with refused(INVALID, "text"):
        wire.memory.Remember(memory_pb2.RememberRequest(text=text, space=space), timeout=SECONDS)
    with refused(INVALID, "query"):
        wire.recall(text, space)
    assert [memory.id for memory in wire.listed(space)] == before


def test_a_query_that_is_nothing_but_a_trigger_is_searched_as_it_is(wire: Wire, space: str) -> None:
    wire.say("这句看得见", space=space)
    answer = wire.recall("回忆一下", space)
    assert answer.trigger == "回忆一下"
    assert answer.hits[0].signals.lexical == 0
