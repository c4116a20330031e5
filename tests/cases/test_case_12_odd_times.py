"""Case 12: the same text at odd times (doobidoo/mcp-memory-service#195, headroomlabs-ai/headroom#3139)."""

from __future__ import annotations

import grpc
import pytest
from grpc_calls import Wire, at, rejected, turn

INVALID = grpc.StatusCode.INVALID_ARGUMENT.value[0]
TEXT = "浇花的时间到了"
YEAR_2099 = 4_083_911_445
# Where a unit went wrong: milliseconds, microseconds and nanoseconds given as seconds.
NONSENSE = [1_767_225_600_000, 1_767_225_600_000_000, 2**63 - 1, -1, -(2**63), 4_133_980_800]


@pytest.mark.parametrize("seconds", NONSENSE)
def test_a_time_that_cannot_be_is_refused_and_says_the_unit(wire: Wire, space: str, seconds: int) -> None:
    (result,), _ = wire.ingest(turn(TEXT, space=space, occurred_at=at(seconds)))
    assert rejected(result) == (INVALID, "occurred_at")
    assert "seconds" in result.error.message
    assert not wire.listed(space)


def test_a_time_to_come_neither_outranks_nor_breaks_decay(wire: Wire, space: str) -> None:
    """Equal texts: the future one counts as said when it came, so all that is said after it stands above it."""
    wire.say(TEXT, space=space, session="2099", occurred_at=at(YEAR_2099))
    now = wire.status().now
    times = {"long ago": at(1_000_000_000), "a month ago": at(now.seconds - 30 * 86_400), "now": now}
    for session, occurred_at in times.items():
        wire.say(TEXT, space=space, session=session, occurred_at=occurred_at)
    hits = {hit.memory.session: hit for hit in wire.recall("浇花", space).hits}
    assert list(hits) == ["now", "2099", "a month ago", "long ago"]
    assert hits["2099"].score <= hits["now"].score
    for hit in hits.values():
        assert 0 <= hit.memory.decay <= 1
        assert 0 <= hit.signals.recency <= 1
    assert hits["2099"].signals.recency == pytest.approx(hits["now"].signals.recency, abs=1e-3)
    assert hits["2099"].memory.decay == pytest.approx(hits["now"].memory.decay, abs=1e-3)
    assert hits["long ago"].memory.decay < hits["a month ago"].memory.decay < hits["now"].memory.decay


def test_a_better_text_of_the_past_comes_before_one_of_the_future(wire: Wire, space: str) -> None:
    wire.say("阳台的花每三天浇一次水", space=space, session="past", occurred_at=at(1_500_000_000))
    wire.say("厨房的灯泡要换了", space=space, session="future", occurred_at=at(YEAR_2099))
    assert wire.texts("多久浇一次花", space)[0] == "阳台的花每三天浇一次水"


def test_since_and_until_take_a_time_to_come_at_its_word(wire: Wire, space: str) -> None:
    wire.say(TEXT, space=space, session="future", occurred_at=at(YEAR_2099))
    assert wire.texts("浇花", space, filter={"since": at(YEAR_2099)}) == [TEXT]
    assert wire.texts("浇花", space, filter={"until": at(YEAR_2099)}) == []
