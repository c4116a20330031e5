"""Case 6: short words, and Latin letters amid Chinese (thedotmack/claude-mem#3801, tommy0103/obelisk#9).

unicode61 finds none of them, a trigram index only one.
"""

from __future__ import annotations

import pytest
from grpc_calls import Wire

CAT, JOB = "我家的猫叫豆包", "重跑gen-itgc后50条"
OTHERS = ["今天的天气很好", "买了两斤苹果", "the train was late", "后天去看牙医", "书架第二层"]


@pytest.mark.parametrize(
    ("query", "text"), [("猫", CAT), ("豆包", CAT), *((word, JOB) for word in ("itgc", "ITGC", "gen-itgc", "重跑"))]
)  # fmt: skip
def test_each_is_found_by_its_word(wire: Wire, query: str, text: str) -> None:
    space = "private/case-06"
    if not wire.listed(space):
        wire.say(*OTHERS, CAT, JOB, space=space)
    best = wire.recall(query, space).hits[0]
    assert best.memory.text == text
    assert best.signals.lexical > 0
