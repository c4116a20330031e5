from __future__ import annotations

import threading
import time

import pytest
from memory_fakes import DAY, NOW, Clock, Model, Room, unit

from edge.config import Recalling
from edge.errors import DeadlineExceeded, Exhausted, Unavailable, VectorRefused
from edge.lexicon.words import CharacterLexicon
from edge.ports import QueueStatus
from edge.recall.near import near
from edge.recall.shallow import CANDIDATES, ShallowRecall
from edge.types import Answer, Depth, Filter, Lane, Level, MemoryState, Question

EAST = unit(1)


def ask(model: Model, rooms: dict[str, Room], query: str = "猫", **question: object) -> Answer:
    recall = ShallowRecall(model, CharacterLexicon(), Clock(), Recalling())
    return recall.recall(Question(query, tuple(rooms), **question), rooms)  # type: ignore[arg-type]  # test's own words


def texts(answer: Answer) -> list[str]:
    return [hit.memory.text for hit in answer.hits]


@pytest.fixture
def room() -> Room:
    room = Room()
    room.keep("我家的猫叫豆包", unit(0.9, 0.3))
    room.keep("今天下雨", unit(0.1, 1))
    room.keep("它喜欢吃鱼", unit(0.8, 0.6))
    return room


def test_the_best_of_nearness_and_words_comes_first(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room})
    assert texts(answer) == ["我家的猫叫豆包", "它喜欢吃鱼", "今天下雨"]
    assert answer.depth == Depth.SHALLOW
    assert answer.notes == ()
    best = answer.hits[0].signals
    assert best.semantic == pytest.approx(0.9487, abs=1e-3)
    assert best.lexical == 1.0
    assert best.weight == 0.1
    assert [stage for stage, _ in answer.timing] == ["words", "embed", "near", "fuse", "fetch", "total"]


def test_there_are_never_more_hits_than_asked_for_nor_than_match(room: Room) -> None:
    assert len(ask(Model(EAST), {"public": room}, top_k=2).hits) == 2
    assert len(ask(Model(EAST), {"public": room}, top_k=200).hits) == 3
    assert ask(Model(EAST), {"public": Room()}).hits == ()
    assert ask(Model(EAST), {}).hits == ()


def test_spaces_are_fused_into_one_order_and_named(room: Room) -> None:
    other = Room()
    other.keep("猫粮放在柜子里", unit(1, 0.1))
    answer = ask(Model(EAST), {"public": room, "private/me": other}, top_k=2)
    assert texts(answer) == ["猫粮放在柜子里", "我家的猫叫豆包"]
    assert [hit.memory.space for hit in answer.hits] == ["private/me", "public"]


def test_what_only_the_words_found_gets_its_true_nearness() -> None:
    room = Room()
    for _ in range(60):
        room.keep("路人", unit(0.9, 0.5))
    hidden = room.keep("猫", unit(0.85, 0.5))
    answer = ask(Model(EAST), {"public": room}, top_k=1)
    assert answer.hits[0].memory == hidden
    assert answer.hits[0].signals.semantic == pytest.approx(0.862, abs=1e-3)


def test_a_memory_without_a_vector_is_found_by_its_words() -> None:
    room = Room()
    room.keep("猫来了")
    model = Model(EAST)
    assert texts(ask(model, {"public": room})) == ["猫来了"]
    assert model.asked == []  # with no vector to compare there is nothing to embed for


@pytest.mark.parametrize(
    "model",
    [
        Model(at_once=Exhausted("the recall lane is full", retry_after=1.0)),
        Model(at_once=RuntimeError("the session is gone")),
        Model(error=VectorRefused("the model gave NaN for this text")),
        Model(error=RuntimeError("a runtime's own words")),
    ],
)
def test_when_the_model_fails_words_answer_and_say_so(room: Room, model: Model) -> None:
    answer = ask(model, {"public": room})
    assert texts(answer) == ["我家的猫叫豆包"]
    assert answer.hits[0].signals.semantic == 0.0
    assert "words only" in answer.notes[0]
    assert "own words" not in answer.notes[0]


def test_when_neither_model_nor_words_answer_the_failure_is_told(room: Room) -> None:
    full = Model(at_once=Exhausted("the recall lane is full", retry_after=1.0))
    with pytest.raises(Exhausted) as caught:
        ask(full, {"public": room}, "鲸")
    assert caught.value.retry_after == 1.0
    with pytest.raises(Unavailable):
        ask(Model(error=RuntimeError()), {"public": room}, "鲸")
    refused = ask(Model(error=VectorRefused("no vector for this text")), {"public": room}, "鲸")
    assert refused.hits == ()
    assert refused.notes


def test_a_model_that_is_late_is_left_behind(room: Room) -> None:
    silent = Model()
    answer = ask(silent, {"public": room}, deadline=time.monotonic() + 0.25)
    assert texts(answer) == ["我家的猫叫豆包"]
    assert "deadline" in answer.notes[0]
    assert silent.futures[0].cancelled()


def test_a_deadline_that_has_passed_is_told_before_any_work(room: Room) -> None:
    model = Model(EAST)
    with pytest.raises(DeadlineExceeded):
        ask(model, {"public": room}, deadline=time.monotonic() - 1)
    assert model.asked == []


def test_a_trigger_makes_it_deep_and_is_not_searched_for(room: Room) -> None:
    model = Model(EAST)
    answer = ask(model, {"public": room}, "还记得吗，我家的猫")
    assert (answer.depth, answer.trigger) == (Depth.DEEP, "还记得吗")
    assert model.asked == [("我家的猫", Lane.RECALL, None)]
    assert "记" not in room.looked_for
    assert room.searched == [4 * CANDIDATES]


def test_a_shallow_recall_takes_a_trigger_for_words(room: Room) -> None:
    model = Model(EAST)
    answer = ask(model, {"public": room}, "查一下猫", depth=Depth.SHALLOW)
    assert (answer.depth, answer.trigger) == (Depth.SHALLOW, "")
    assert model.asked[0][0] == "查一下猫"


def test_a_query_of_marks_is_searched_by_meaning_alone(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room}, "*")
    assert len(answer.hits) == 3
    assert answer.hits[0].signals.lexical == 0.0


def test_a_filter_is_answered_exactly(room: Room) -> None:
    room.keep("今天的雨停了", unit(0, 1), tags=("weather", "today"))
    answer = ask(Model(EAST), {"public": room}, filter=Filter(tags=("weather",)))
    assert texts(answer) == ["今天的雨停了"]
    assert room.searched == []
    assert ask(Model(EAST), {"public": room}, filter=Filter(tags=("none",))).hits == ()


def test_a_filter_that_lets_much_through_uses_the_index() -> None:
    room = Room()
    for n in range(1000):
        room.keep("路人", unit(1, n / 500), source="a" if n % 2 else "b")
    answer = ask(Model(EAST), {"public": room}, filter=Filter(sources=("a",)))
    assert [hit.memory.rowid for hit in answer.hits] == [2, 4, 6, 8, 10]
    assert room.searched == [8 * CANDIDATES]


def test_a_filter_of_too_many_to_list_looks_further_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.recall.near.EXACT_LIMIT", 10)
    room = Room()
    for n in range(400):
        room.keep("路人", unit(1, n / 200), source="a" if n >= 380 else "b")
    found = near(room, "fake", EAST, 5, Filter(sources=("a",)))
    assert list(found) == [381, 382, 383, 384, 385]
    assert room.searched == [20, 80, 320, 400]


def test_archived_and_superseded_rows_do_not_hide_what_lies_behind_them() -> None:
    room = Room()
    for n in range(60):
        gone = {"archived": True} if n % 2 else {"state": MemoryState.SUPERSEDED}
        room.keep("路人", unit(1, n / 1000), **gone)
    room.keep("活着", unit(1, 1))
    assert texts(ask(Model(EAST), {"public": room})) == ["活着"]
    kept = ask(Model(EAST), {"public": room}, filter=Filter(include_archived=True), top_k=1)
    assert kept.hits[0].memory.archived


def test_rows_forgotten_meanwhile_are_left_out(room: Room) -> None:
    del room.rows[1]
    assert texts(ask(Model(EAST), {"public": room})) == ["它喜欢吃鱼", "今天下雨"]


def test_few_rows_are_read() -> None:
    room = Room()
    for n in range(300):
        room.keep("路人", unit(1, n / 20))
    ask(Model(EAST), {"public": room}, top_k=5)
    assert sum(map(len, room.fetched)) <= 20


def test_a_heavy_memory_comes_up_from_below_the_cut() -> None:
    room = Room()
    for n in range(CANDIDATES - 10):
        room.keep("路人", unit(1, 0.3 + n / 1000))
    heavy = room.keep("要事", unit(1, 0.4), weight=10.0)
    assert ask(Model(EAST), {"public": room}, top_k=1).hits[0].memory == heavy


def test_equals_are_ordered_by_time_then_id_and_the_future_is_no_newer_than_now() -> None:
    room = Room()
    room.keep("甲", EAST, occurred_at=NOW - DAY)
    room.keep("乙", EAST, occurred_at=NOW + 80 * 365 * DAY)
    room.keep("丙", EAST, occurred_at=NOW)
    room.keep("丁", EAST, occurred_at=NOW - 2 * DAY)
    answer = ask(Model(EAST), {"public": room}, "?")
    assert texts(answer) == ["乙", "丙", "甲", "丁"]
    assert answer.hits[0].signals.recency == answer.hits[1].signals.recency == 1.0


def test_levels_shorten_what_is_shown(room: Room) -> None:
    room.keep("先说天气。再说我的猫，它叫豆包。最后说鱼。", EAST)
    answer = ask(Model(EAST), {"public": room}, level=Level.ABSTRACT, top_k=1)
    assert texts(answer) == ["再说我的猫，它叫豆包。"]


def test_a_context_is_made_of_the_hits_within_its_budget(room: Room) -> None:
    answer = ask(Model(EAST), {"public": room}, with_context=True)
    assert answer.context.startswith("[相关记忆开始]\n")
    assert "- (2025-12-31, chat) 我家的猫叫豆包" in answer.context
    assert ask(Model(EAST), {"public": Room()}, with_context=True).context == ""
    assert len(ask(Model(EAST), {"public": room}, with_context=True, context_tokens=80).context) <= 78


def test_many_threads_get_the_same_answer(room: Room) -> None:
    recall = ShallowRecall(Model(EAST), CharacterLexicon(), Clock(), Recalling())
    answers: list[list[str]] = []

    def one() -> None:
        answers.append(texts(recall.recall(Question("猫", ("public",)), {"public": room})))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [["我家的猫叫豆包", "它喜欢吃鱼", "今天下雨"]] * 8


def test_without_a_deadline_a_model_that_stands_still_is_looked_after(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.recall.shallow._LOOK", 0.001)
    silent = Model()
    looks = []

    def look() -> QueueStatus:
        looks.append(True)
        if len(looks) == 3:
            silent.futures[0].set_exception(Unavailable("the model does not come back"))
        return QueueStatus(1, 0, 0, 0.0, 0.0)

    monkeypatch.setattr(silent, "status", look)
    answer = ask(silent, {"public": room})
    assert texts(answer) == ["我家的猫叫豆包"]
    assert "the model does not come back" in answer.notes[0]
    assert len(looks) == 3
