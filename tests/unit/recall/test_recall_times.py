"""What a question says about time, and where it is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import tzlocal
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import DAY, NOW, Model, Room, ask, at_cosine, texts, unit

from edge.recall import zones
from edge.recall.evidence import HINT
from edge.recall.recall import NOTHING_THEN
from edge.types import Answer, Depth, Filter

EAST = unit(1)
HOUR = DAY // 24


def told(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.memory.id, hit.score) for hit in answer.hits]


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_a_time_that_is_named_brings_in_what_lies_far_down_in_nearness(depth: Depth) -> None:
    room = Room()
    for n in range(300):
        room.keep("路人", at_cosine(0.6), occurred_at=NOW - 9 * DAY, session=f"s{n}")
    meant = room.keep("路人", at_cosine(0.59), session="yesterday")
    answer = ask(Model(EAST), {"public": room}, "昨天有谁", zone="UTC", depth=depth)
    assert answer.hits[0].memory == meant
    assert answer.hits[0].signals.time == (1.0 if depth == Depth.DEEP else HINT)
    assert ask(Model(EAST), {"public": room}, "有谁", zone="UTC", depth=depth).hits[0].memory != meant


def test_a_loose_time_only_raises_what_is_found_anyway() -> None:
    room = Room()
    for _ in range(40):
        room.keep("路人", at_cosine(0.6), occurred_at=NOW - 90 * DAY)
    room.keep("路人", at_cosine(0.1))
    for depth in (Depth.SHALLOW, Depth.DEEP):
        room.searched.clear()
        ask(Model(EAST), {"public": room}, "最近有谁", zone="UTC", depth=depth)
        assert len(room.searched) == 1


def test_a_time_that_is_named_and_a_filter_both_hold() -> None:
    room = Room()
    room.keep("甲", EAST, tags=("t",), occurred_at=NOW - 9 * DAY)
    room.keep("乙", EAST)
    room.keep("丙", at_cosine(0.7), tags=("t",))
    asked = {"query": "昨天有谁", "zone": "UTC", "depth": Depth.DEEP}
    assert texts(ask(Model(EAST), {"public": room}, **asked, filter=Filter(tags=("t",)))) == ["丙", "甲"]
    assert texts(ask(Model(EAST), {"public": room}, **asked, filter=Filter(until=NOW - 5 * DAY))) == ["甲"]


def test_a_deep_recall_searches_without_the_words_of_time_and_a_shallow_one_with_them() -> None:
    room = Room()
    room.keep("猫", EAST)
    for depth, searched in ((Depth.SHALLOW, "昨天的猫"), (Depth.DEEP, "猫")):
        model = Model(EAST)
        ask(model, {"public": room}, "昨天的猫", depth=depth, zone="UTC")
        assert [text for text, *_ in model.asked] == [searched]
        assert ("昨" in room.looked_for) == (depth == Depth.SHALLOW)


@pytest.mark.parametrize("query", ["昨天", "yesterday", "还记得吗，昨天", "查一下 last week"])
def test_a_question_of_nothing_but_time_is_searched_with_it(query: str) -> None:
    room = Room()
    room.keep("猫", EAST)
    model = Model(EAST)
    assert texts(ask(model, {"public": room}, query, depth=Depth.DEEP, zone="UTC")) == ["猫"]
    assert model.asked[0][0].strip()


def test_yesterday_is_that_of_the_asker() -> None:
    room = Room()
    early = room.keep("甲", EAST, occurred_at=NOW - 9 * HOUR)  # 23:00 on the 31st in Shanghai, 15:00 in London
    late = room.keep("乙", EAST, occurred_at=NOW - 7 * HOUR)  # 01:00 on the 1st in Shanghai
    for zone, meant in (("Asia/Shanghai", {early.id}), ("Europe/London", {early.id, late.id})):
        answer = ask(Model(EAST), {"public": room}, "昨天", zone=zone)
        assert {hit.memory.id for hit in answer.hits if hit.signals.time} == meant


def test_yesterday_is_that_of_when_it_was_asked() -> None:
    room = Room()
    meant = room.keep("甲", EAST, occurred_at=NOW - 8 * DAY)
    room.keep("乙", EAST)
    answer = ask(Model(EAST), {"public": room}, "昨天", zone="UTC", asked_at=NOW - 7 * DAY)
    assert [hit.memory for hit in answer.hits if hit.signals.time] == [meant]


def test_the_last_one_is_the_newest_and_not_any_of_the_year() -> None:
    room = Room()
    for days in (300, 3, 40, 500):
        room.keep("猫", EAST, occurred_at=NOW - days * DAY, session=f"s{days}")
    answer = ask(Model(EAST), {"public": room}, "上次说的猫", zone="UTC", depth=Depth.DEEP)
    assert [hit.memory.rowid for hit in answer.hits] == [2, 3, 1, 4]
    named = ask(Model(EAST), {"public": room}, "上次说的猫，2025年11月", zone="UTC", depth=Depth.DEEP)
    assert (named.hits[0].memory.rowid, named.hits[0].signals.time) == (3, 1.0)


def test_where_a_time_is_named_newness_does_not_count() -> None:
    room = Room()
    room.keep("甲", EAST)
    assert ask(Model(EAST), {"public": room}, "昨天", zone="UTC").hits[0].signals.recency == 0.0
    assert ask(Model(EAST), {"public": room}, "猫", zone="UTC").hits[0].signals.recency > 0.9


@pytest.mark.parametrize("query", ["猫", "我最近一次说的猫", "上次说的猫"])
@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_a_time_to_come_never_outranks_what_was_said_since(query: str, depth: Depth) -> None:
    """Case 12: a clock that is wrong once must not stand above all that is said after."""
    room = Room()
    room.keep("猫", EAST, session="a", occurred_at=NOW + 70 * 365 * DAY, created_at=NOW - 60 * DAY)
    room.keep("猫", EAST, session="b", occurred_at=NOW - DAY)
    room.keep("猫", EAST, session="c", occurred_at=NOW - HOUR)
    answer = ask(Model(EAST), {"public": room}, query, zone="UTC", depth=depth)
    assert [hit.memory.session for hit in answer.hits] == ["c", "b", "a"]
    assert all(0 <= hit.signals.recency <= 1 and 0 <= hit.signals.time <= 1 for hit in answer.hits)


def test_a_time_to_come_is_found_by_its_name() -> None:
    room = Room()
    room.keep("猫", EAST, occurred_at=NOW + DAY)
    room.keep("猫", EAST)
    answer = ask(Model(EAST), {"public": room}, "明天的猫", zone="UTC", depth=Depth.DEEP)
    assert answer.hits[0].memory.occurred_at == NOW + DAY


@pytest.fixture
def moved() -> Iterator[pytest.MonkeyPatch]:
    """TZ may be changed, and is put back for the tests after this one."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    time.tzset()
    tzlocal.reload_localzone()
    zones._own.cache_clear()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system's zone is no matter of the environment")
@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_the_order_does_not_depend_on_the_zone_of_the_box(moved: pytest.MonkeyPatch, depth: Depth) -> None:
    room = Room()
    for n in range(20):
        room.keep("猫", at_cosine(0.9 - n / 1000), occurred_at=NOW - n * 7 * HOUR)
    orders = []
    for place in ("UTC", "Asia/Shanghai", "America/New_York", "Pacific/Kiritimati"):
        moved.setenv("TZ", place)
        time.tzset()
        tzlocal.reload_localzone()
        zones._own.cache_clear()
        questions = (("猫", ""), ("昨天的猫", "Asia/Tokyo"), ("when was it", "Europe/London"))
        orders.append([told(ask(Model(EAST), {"public": room}, q, zone=zone, depth=depth)) for q, zone in questions])
    assert orders[0] == orders[1] == orders[2] == orders[3]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(["猫", "狗", "我的猫在睡觉", "on 3 May"]),
            "cosine": st.none() | st.sampled_from([0.3, 0.6, 0.61, 0.9]),
            "role": st.sampled_from(["user", "assistant", "kim"]),
            "occurred_at": st.integers(-2, 9).map(lambda days: NOW - days * DAY),
            "weight": st.sampled_from([1.0, 3.0]),
        }
    ),
    min_size=1,
    max_size=10,
)
QUERIES = st.sampled_from(["猫", "昨天我说的猫", "what did kim say", "when did you say it", "我最近一次说的猫"])


@given(ROWS, QUERIES, st.sampled_from([Depth.SHALLOW, Depth.DEEP]), st.data())
def test_the_order_does_not_depend_on_the_order_in_which_memories_came(
    rows: list[dict[str, object]], query: str, depth: Depth, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(rows)))

    def answered(order: list[int]) -> list[tuple[str, float]]:
        room = Room()
        for n in order:
            row = dict(rows[n])
            text, cosine = str(row.pop("text")), row.pop("cosine")
            vector = at_cosine(cosine) if isinstance(cosine, float) else None
            room.keep(text, vector, id=f"id-{n:02}", seq=n, session="ab"[n % 2], **row)
        return told(ask(Model(EAST), {"public": room}, query, depth=depth, top_k=count, zone="UTC"))

    order = list(range(len(rows)))
    assert answered(order) == answered(data.draw(st.permutations(order)))


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_what_lies_in_a_time_answers_a_question_of_nothing_else(depth: Depth) -> None:
    room = Room()
    for n in range(300):
        room.keep("说了什么", at_cosine(0.4), occurred_at=NOW - 9 * DAY, session=f"s{n}")
    meant = room.keep("买了两棵葱", at_cosine(0.0), session="yesterday")
    asked = {"zone": "UTC", "depth": depth, "only_relevant": True, "with_context": True}
    answer = ask(Model(EAST), {"public": room}, "昨天说了什么", **asked)
    assert [hit.memory for hit in answer.hits] == [meant]
    assert answer.hits[0].relevance == 1.0
    assert "两棵葱" in answer.context


def test_a_question_of_a_time_of_which_nothing_is_known_says_so() -> None:
    room = Room()
    kept = room.keep("买了两棵葱", EAST, occurred_at=NOW - 9 * DAY)
    answer = ask(Model(EAST), {"public": room}, "昨天说了什么", zone="UTC")
    assert [hit.memory for hit in answer.hits] == [kept]
    assert NOTHING_THEN in answer.notes


def test_a_loose_time_brings_in_what_lies_in_it_when_nothing_else_is_asked() -> None:
    room = Room()
    for n in range(300):
        room.keep("路人", at_cosine(0.4), occurred_at=NOW - 90 * DAY, session=f"s{n}")
    meant = room.keep("路人", at_cosine(0.0), session="now")
    answer = ask(Model(EAST), {"public": room}, "最近聊了什么", zone="UTC")
    assert [hit.memory for hit in answer.hits] == [meant]
