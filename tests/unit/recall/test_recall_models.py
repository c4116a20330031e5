"""Models that answer, fail, are late, or are one of two."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_fakes import NOW, Model, Room, ask, at_cosine, recalling, texts, unit

from edge.errors import Exhausted, Unavailable, VectorRefused
from edge.ports import QueueStatus
from edge.recall import fuse
from edge.recall.candidates import Asked, Candidate
from edge.recall.cues import cue
from edge.recall.evidence import Evidence, scales
from edge.recall.search import Search
from edge.recall.temporal import Times
from edge.types import Answer, Depth, Filter, ModelInfo, Question

EAST = unit(1)
ZH = ModelInfo("zh", 4, "cpu", 1, 0, language="zh", unrelated=0.25, related=0.55)
EN = ModelInfo("en", 4, "cpu", 1, 0, language="en", unrelated=0.45, related=0.7)


@pytest.fixture
def room() -> Room:
    room = Room()
    room.keep("我家的猫叫豆包", unit(0.9, 0.3))
    room.keep("今天下雨", unit(0.1, 1))
    return room


def test_a_memory_without_a_vector_is_found_by_its_words() -> None:
    room = Room()
    room.keep("猫来了")
    model = Model(EAST)
    assert texts(ask(model, {"public": room})) == ["猫来了"]
    assert model.asked == []  # with no vector to compare there is nothing to embed for


def test_a_memory_without_a_vector_is_no_worse_for_it_where_the_words_fit_best(room: Room) -> None:
    room.keep("猫猫猫")
    assert texts(ask(Model(EAST), {"public": room}))[0] == "猫猫猫"


@pytest.mark.parametrize(
    "model",
    [
        Model(at_once=Exhausted("the recall lane is full", retry_after=1.0)),
        Model(at_once=RuntimeError("the session is gone")),
        Model(error=VectorRefused("the model gave NaN for this text")),
        Model(error=RuntimeError("a runtime's own words")),
    ],
)
@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_when_the_model_fails_words_answer_and_say_so(room: Room, model: Model, depth: Depth) -> None:
    answer = ask(model, {"public": room}, depth=depth)
    assert texts(answer)[0] == "我家的猫叫豆包"
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


def test_without_a_deadline_a_model_that_stands_still_is_looked_after(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.recall.vectors._LOOK", 0.001)
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


def test_when_the_words_fail_the_model_is_not_left_at_work(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("the space is closing")

    monkeypatch.setattr(room, "search", fail)
    silent = Model()
    with pytest.raises(Unavailable):
        ask(silent, {"public": room})
    assert silent.futures[0].cancelled()


@pytest.fixture
def both() -> Room:
    """One memory that only the Chinese model knows, one that only the English one knows, and one that both know."""
    room = Room(stored={"zh": {}, "en": {}})
    room.keep("我家的猫叫豆包", at_cosine(0.6), model="zh")
    room.keep("the cat sleeps all day", at_cosine(0.8), model="en")
    mixed = room.keep("豆包 sleeps", at_cosine(0.5), model="zh")
    room.stored["en"][mixed.rowid] = at_cosine(0.5)
    return room


def recalled(
    room: Room, *models: Model, query: str = "鲸", route: tuple[str, ...] = ("zh", "en"), **changes: object
) -> Answer:
    question = Question(query, ("public",), **changes)  # type: ignore[arg-type]  # the tests name real fields
    return recalling(*models, route=route).recall(question, {"public": room})


@pytest.mark.parametrize("depth", [Depth.SHALLOW, Depth.DEEP])
def test_each_memory_is_seen_by_the_models_that_know_it(both: Room, depth: Depth) -> None:
    answer = recalled(both, Model(EAST, info=ZH), Model(EAST, info=EN), depth=depth)
    semantic = {hit.memory.rowid: hit.signals.semantic for hit in answer.hits}
    assert semantic[1] == semantic[2] == 1.0
    # Of what both know, the better of the two counts.
    assert semantic[3] == pytest.approx((0.5 - 0.25) / (0.6 - 0.25), abs=1e-3)
    assert answer.notes == ()


def test_a_model_is_asked_only_what_is_routed_to_it(both: Room) -> None:
    chinese, english = Model(EAST, info=ZH), Model(EAST, info=EN)
    answer = recalled(both, chinese, english, query="cat", route=("en",))
    assert (len(chinese.asked), len(english.asked)) == (0, 1)
    assert texts(answer)[0] == "the cat sleeps all day"


def test_a_query_for_a_model_that_no_space_has_is_answered_by_words(both: Room) -> None:
    chinese, english = Model(EAST, info=ZH), Model(EAST, info=EN)
    for route in (("nowhere",), ("en",)):
        both.stored.pop("en", None)
        answer = recalled(both, chinese, english, query="豆包", route=route)
        assert {hit.memory.rowid for hit in answer.hits} == {1, 3}
    assert chinese.asked == english.asked == []


def test_when_one_of_two_models_is_down_the_other_answers_and_the_answer_says_so(both: Room) -> None:
    down = Model(error=Unavailable("the English model does not come back"), info=EN)
    answer = recalled(both, Model(EAST, info=ZH), down, query="cat")
    assert {hit.memory.rowid for hit in answer.hits} == {1, 2, 3}
    assert "the English model does not come back" in answer.notes[0]
    assert "words only" not in answer.notes[0]
    assert recalled(both, Model(EAST, info=ZH), down).hits


def test_what_one_model_found_is_seen_by_the_other_too() -> None:
    room = Room(stored={"zh": {}, "en": {}})
    only = room.keep("甲", at_cosine(0.3), model="zh")
    room.stored["en"][only.rowid] = at_cosine(0.85)
    for n in range(5):
        room.keep(f"路人{n}", at_cosine(0.9), model="en")
    evidence = Evidence(Times((), "", latest=False, asks_when=False), cue(""), NOW)
    search = Search({"public": room}, Filter(), fuse.PRESETS["tuned"], evidence, wanted=3)
    search.asked = [Asked(ZH, EAST), Asked(EN, EAST)]
    search.by_nearness({"zh": {}, "en": {}})
    found = {one.memory.rowid: one for one in search.best(0)}[only.rowid]
    assert found.candidate.cosines == pytest.approx({"zh": 0.3, "en": 0.85})
    assert found.signals.semantic == pytest.approx((0.85 - 0.45) / (0.9 - 0.45), abs=1e-3)


COSINES = st.lists(st.tuples(st.none() | st.floats(-1, 1), st.none() | st.floats(-1, 1)), min_size=1, max_size=12)


@given(COSINES, st.floats(-0.3, 0.3))
def test_cosines_of_two_models_are_never_compared_as_they_are(
    pairs: list[tuple[float | None, float | None]], shift: float
) -> None:
    """A model whose cosines all lie higher by some constant says the same as one whose do not."""

    def seen(shift: float) -> list[float]:
        english = ModelInfo("en", 4, "cpu", 1, 0, unrelated=0.3 + shift, related=0.6 + shift)
        candidates = [
            Candidate("public", n, 0.0, {m: c for m, c in (("zh", zh), ("en", en)) if c is not None})
            for n, (zh, en) in enumerate((zh, None if en is None else en + shift) for zh, en in pairs)
        ]
        asked = [Asked(ZH, EAST), Asked(english, EAST)]
        evidence = Evidence(
            Times((), "", latest=False, asks_when=False), cue(""), NOW, scales=scales(candidates, asked)
        )
        return [evidence.semantic(candidate) for candidate in candidates]

    assert seen(shift) == pytest.approx(seen(0.0), abs=1e-6)
