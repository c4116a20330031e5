"""From a question to its answer: what is searched, what comes back, and how it is told."""

from __future__ import annotations

import threading
import time

import pytest
from memory_fakes import DAY, NOW, Model, Room, ask, at_cosine, recalling, texts, unit

from edge.config import Recalling
from edge.errors import DeadlineExceeded
from edge.recall.recall import DEEP_NEAREST, NEAREST, NOTHING_RELEVANT, TERMS
from edge.types import Depth, Lane, Level, Question

EAST = unit(1)


@pytest.fixture
def room() -> Room:
    room = Room()
    room.keep("我家的猫叫豆包", unit(0.9, 0.3))
    room.keep("今天下雨", unit(0.1, 1))
    room.keep("它喜欢吃鱼", unit(0.8, 0.6))
    return room


def stages(depth: Depth, room: Room, **question: object) -> list[str]:
    return [stage for stage, _ in ask(Model(EAST), {"public": room}, depth=depth, **question).timing]


def test_the_best_of_nearness_and_words_comes_first(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room})
    assert texts(answer) == ["我家的猫叫豆包", "它喜欢吃鱼", "今天下雨"]
    assert answer.depth == Depth.SHALLOW
    assert answer.notes == ()
    best = answer.hits[0].signals
    assert (best.semantic, best.lexical, best.weight) == (1.0, 1.0, 0.1)
    assert answer.hits[1].signals.semantic == pytest.approx((0.8 - 0.25) / (0.9487 - 0.25), abs=1e-3)


def test_each_stage_is_timed_in_the_order_in_which_it_ran(room: Room) -> None:
    assert stages(Depth.SHALLOW, room) == ["words", "embed", "near", "fuse", "relevance", "total"]
    assert stages(Depth.DEEP, room, with_context=True) == [
        "words", "embed", "near", "fuse", "neighbours", "diversity", "archive", "relevance", "context", "total",
    ]  # fmt: skip


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_there_are_never_more_hits_than_asked_for_nor_than_match(room: Room, depth: Depth) -> None:
    for count in (1, 2, 3, 200):
        assert len(ask(Model(EAST), {"public": room}, top_k=count, depth=depth).hits) == min(3, count)
    assert ask(Model(EAST), {"public": Room()}, depth=depth).hits == ()
    assert ask(Model(EAST), {}, depth=depth).hits == ()


def test_spaces_are_fused_into_one_order_and_named(room: Room) -> None:
    other = Room()
    other.keep("猫粮放在柜子里", unit(1, 0.1))
    answer = ask(Model(EAST), {"public": room, "private/me": other}, top_k=2)
    assert texts(answer) == ["猫粮放在柜子里", "我家的猫叫豆包"]
    assert [hit.memory.space for hit in answer.hits] == ["private/me", "public"]


def test_what_only_the_words_found_gets_its_true_nearness() -> None:
    room = Room()
    for _ in range(60):
        room.keep("路人", at_cosine(0.87))
    hidden = room.keep("猫", at_cosine(0.86))
    answer = ask(Model(EAST), {"public": room}, top_k=1)
    assert answer.hits[0].memory == hidden
    assert answer.hits[0].signals.semantic == pytest.approx((0.86 - 0.25) / (0.87 - 0.25), abs=1e-3)


@pytest.mark.parametrize("depth", [Depth.AUTO, Depth.DEEP])
def test_a_trigger_makes_it_deep_and_is_not_searched_for(room: Room, depth: Depth) -> None:
    model = Model(EAST)
    answer = ask(model, {"public": room}, "还记得吗，我家的猫", depth=depth)
    assert (answer.depth, answer.trigger) == (Depth.DEEP, "还记得吗")
    assert model.asked == [("我家的猫", Lane.RECALL, None)]
    assert "记" not in room.looked_for
    assert room.searched == [DEEP_NEAREST]


def test_a_shallow_recall_takes_a_trigger_for_words(room: Room) -> None:
    model = Model(EAST)
    answer = ask(model, {"public": room}, "查一下猫", depth=Depth.SHALLOW)
    assert (answer.depth, answer.trigger) == (Depth.SHALLOW, "")
    assert model.asked[0][0] == "查一下猫"


def test_a_query_of_marks_is_searched_by_meaning_alone(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room}, "*")
    assert len(answer.hits) == 3
    assert answer.hits[0].signals.lexical == 0.0


def test_of_a_very_long_query_so_many_terms_are_looked_for_each_once() -> None:
    room = Room()
    ask(Model(EAST), {"public": room}, " ".join(f"w{n}" for n in range(2 * TERMS)))
    assert len(room.looked_for) == len(set(room.looked_for)) == TERMS


def test_a_heavy_memory_comes_up_from_below_the_cut() -> None:
    room = Room()
    for n in range(NEAREST - 10):
        room.keep("路人", unit(1, 0.3 + n / 1000))
    heavy = room.keep("要事", unit(1, 0.4), weight=10.0)
    assert ask(Model(EAST), {"public": room}, top_k=1).hits[0].memory == heavy


def test_few_rows_are_read_where_a_row_can_change_little() -> None:
    room = Room()
    for n in range(300):
        room.keep("路人", unit(1, n / 20))
    ask(Model(EAST), {"public": room}, top_k=5)
    assert sum(map(len, room.fetched)) <= 40


def test_an_answer_to_fewer_is_the_beginning_of_an_answer_to_more() -> None:
    room = Room()
    for n in range(40):
        room.keep(f"路人{n}", at_cosine(0.95 - n / 200), role="kim" if n == 20 else "user")
    five = texts(ask(Model(EAST), {"public": room}, "what did kim tell us", top_k=5))
    assert five[0] == "路人20"
    for count in (1, 2, 10, 16):
        assert texts(ask(Model(EAST), {"public": room}, "what did kim tell us", top_k=count))[:5] == five[:count]


def test_what_is_far_from_all_that_is_remembered_is_noted() -> None:
    room = Room()
    room.keep("今天下雨", at_cosine(0.4))
    near, far = (ask(Model(EAST), {"public": room}, query) for query in ("下雨", "鲸"))
    assert near.notes == ()
    assert far.notes == (NOTHING_RELEVANT,)
    assert texts(far) == ["今天下雨"]
    assert far.hits[0].relevance < 1 <= near.hits[0].relevance


def test_only_what_is_relevant_may_be_asked_for() -> None:
    room = Room()
    room.keep("今天下雨", at_cosine(0.3))
    answer = ask(Model(EAST), {"public": room}, "鲸", only_relevant=True, with_context=True)
    assert (answer.hits, answer.context, answer.notes) == ((), "", (NOTHING_RELEVANT,))
    room.keep("鲸在海里", at_cosine(0.9))
    assert texts(ask(Model(EAST), {"public": room}, "鲸", only_relevant=True))[0] == "鲸在海里"


def test_the_floor_of_relevance_is_configured() -> None:
    room = Room()
    room.keep("今天下雨", at_cosine(0.5))
    question = Question("鲸", ("public",), only_relevant=True)
    for floor, found in ((0.5, 1), (1.0, 0), (0.0, 1)):
        recall = recalling(Model(EAST), config=Recalling(floor=floor))
        assert len(recall.recall(question, {"public": room}).hits) == found


def test_levels_shorten_what_is_shown(room: Room) -> None:
    room.keep("先说天气，今天很冷。再说我的猫，它叫豆包。最后说鱼，晚上吃。", EAST)
    answer = ask(Model(EAST), {"public": room}, level=Level.ABSTRACT, top_k=1)
    assert texts(answer) == ["再说我的猫，它叫豆包。"]


def test_a_context_is_made_of_the_hits_within_its_budget(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room}, with_context=True)
    assert answer.context.startswith("[相关记忆开始]\n")
    assert "我家的猫叫豆包" in answer.context
    assert ask(Model(EAST), {"public": Room()}, with_context=True).context == ""
    assert len(ask(Model(EAST), {"public": room}, with_context=True, context_tokens=80).context) <= 78


def test_a_deadline_that_has_passed_is_told_before_any_work(room: Room) -> None:
    model = Model(EAST)
    with pytest.raises(DeadlineExceeded):
        ask(model, {"public": room}, deadline=time.monotonic() - 1)
    assert model.asked == []


def test_equals_are_ordered_by_time_then_id() -> None:
    room = Room()
    for text, days in (("甲", 1), ("乙", 0), ("丙", 1), ("丁", 2)):
        room.keep(text, EAST, occurred_at=NOW - days * DAY)
    assert texts(ask(Model(EAST), {"public": room}, "?")) == ["乙", "甲", "丙", "丁"]


def test_many_threads_get_the_same_answer(room: Room) -> None:
    recall = recalling(Model(EAST))
    answers: list[list[str]] = []

    def one() -> None:
        answers.append(texts(recall.recall(Question("猫", ("public",), depth=Depth.DEEP), {"public": room})))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [["我家的猫叫豆包", "它喜欢吃鱼", "今天下雨"]] * 8
