"""The demo's conversation and questions are whole: the demo can only fail because of the box."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from importlib import resources
from itertools import groupby, pairwise
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEMO = resources.files("edge.cli.demo")
TURNS: list[dict[str, Any]] = [
    json.loads(line) for line in (DEMO / "conversation.jsonl").read_text(encoding="utf-8").splitlines()
]
QUESTIONS: list[dict[str, Any]] = tomllib.loads((DEMO / "questions.toml").read_text(encoding="utf-8"))["question"]
HAN = re.compile(r"[\u3400-\u9fff]")
TRIGGERS = ("认真回忆", "深度检索", "回忆一下", "还记得吗", "查一下", "remember when", "do you recall", "look it up")


def answers(question: dict[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in TURNS if all(part in turn["text"] for part in question["expect"])]


def in_window(turn: dict[str, Any], question: dict[str, Any]) -> bool:
    return bool(question.get("until_days", 0) <= turn["days_ago"] <= question.get("since_days", float("inf")))


def test_every_turn_has_the_fields_of_an_ingest_line() -> None:
    for turn in TURNS:
        assert list(turn) == ["source", "session", "seq", "role", "days_ago", "text", "tags"]
        assert turn["role"] in ("user", "assistant")
        assert isinstance(turn["days_ago"], float)
        assert all(isinstance(tag, str) and tag for tag in turn["tags"])


def test_there_are_at_least_300_turns_over_84_days_from_several_sources() -> None:
    ages = [turn["days_ago"] for turn in TURNS]
    assert len(TURNS) >= 300
    assert max(ages) - min(ages) >= 84
    assert min(ages) > 0
    assert {turn["source"] for turn in TURNS} == {"claude-code", "chat", "cursor"}


def test_no_fortnight_is_silent() -> None:
    assert all(older["days_ago"] - newer["days_ago"] < 14 for older, newer in pairwise(TURNS))


def test_turns_run_from_the_oldest_to_the_newest() -> None:
    assert all(older["days_ago"] > newer["days_ago"] for older, newer in pairwise(TURNS))


def test_a_session_is_one_run_of_4_to_14_turns_numbered_from_0() -> None:
    sessions = [(key, list(turns)) for key, turns in groupby(TURNS, lambda turn: (turn["source"], turn["session"]))]
    assert len({key for key, _ in sessions}) == len(sessions)
    for _, turns in sessions:
        assert 4 <= len(turns) <= 14
        assert [turn["seq"] for turn in turns] == list(range(len(turns)))
        assert {turn["role"] for turn in turns} == {"user", "assistant"}


def test_source_session_and_seq_name_one_turn() -> None:
    assert len({(turn["source"], turn["session"], turn["seq"]) for turn in TURNS}) == len(TURNS)


def test_texts_are_distinct_and_of_4_to_300_characters_on_one_line() -> None:
    repeated = [text for text, count in Counter(turn["text"] for turn in TURNS).items() if count > 1]
    assert repeated == []
    for turn in TURNS:
        assert 4 <= len(turn["text"]) <= 300, turn["text"]
        assert turn["text"] == turn["text"].strip()
        assert "\n" not in turn["text"]


def test_most_is_chinese_and_some_is_english() -> None:
    english = sum(not HAN.search(turn["text"]) for turn in TURNS)
    assert 20 <= english <= len(TURNS) // 3


def test_there_are_six_questions_of_known_fields() -> None:
    assert len(QUESTIONS) == 6
    assert len({question["query"] for question in QUESTIONS}) == 6
    for question in QUESTIONS:
        assert set(question) <= {"query", "depth", "since_days", "until_days", "expect", "note"}
        assert question["depth"] in ("shallow", "deep", "auto")
        assert question["note"] and "\n" not in question["note"]
        assert question["expect"]


def test_shallow_deep_and_a_trigger_phrase_are_all_asked() -> None:
    assert {question["depth"] for question in QUESTIONS} == {"shallow", "deep", "auto"}
    for question in QUESTIONS:
        triggered = any(trigger in question["query"].lower() for trigger in TRIGGERS)
        assert triggered == (question["depth"] == "auto"), question["query"]


def test_one_question_reaches_back_84_days_and_one_is_bounded_in_time() -> None:
    assert any(turn["days_ago"] >= 84 for question in QUESTIONS for turn in answers(question))
    bounded = [question for question in QUESTIONS if "since_days" in question or "until_days" in question]
    assert len(bounded) == 1
    assert bounded[0]["since_days"] > bounded[0]["until_days"] >= 0


def test_one_question_is_in_english() -> None:
    assert sum(not HAN.search(question["query"]) for question in QUESTIONS) == 1


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["note"].split(":")[0])
def test_each_question_is_answered_by_one_turn_inside_its_window(question: dict[str, Any]) -> None:
    found = answers(question)
    assert len(found) == 1
    assert in_window(found[0], question)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["note"].split(":")[0])
def test_no_answer_is_given_away_by_its_question(question: dict[str, Any]) -> None:
    assert not all(part.lower() in question["query"].lower() for part in question["expect"])
