from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.tiers import EXPLICIT_WEIGHT, RULES, promote, tier
from edge.types import NOTE_KIND, MemoryState, Turn

STATES = {"remember": MemoryState.CONFIRMED, "from now on": MemoryState.CONFIRMED, "": MemoryState.TEMPORARY}


class Label(NamedTuple):
    rule: str
    text: str
    said: str


def labels() -> list[Label]:
    lines = (Path(__file__).parent / "tiers_labels.txt").read_text("utf-8").splitlines()
    rows = [line.replace("\\n", "\n").split(" | ") for line in lines if line[:1] != "#"]
    return [Label("" if row[0] == "-" else row[0], row[1], row[2] if len(row) > 2 else row[1]) for row in rows]


LABELS = labels()


def turn(text: str, role: str = "user", **more: object) -> Turn:
    return Turn("source", "session", 0, role, 0, text, **more)  # type: ignore[arg-type]  # kind, state, weight


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.text[:24].encode("unicode_escape").decode())
def test_a_sentence_is_what_a_reader_says_it_is(label: Label) -> None:
    found = tier(turn(label.text))
    assert (found.rule, found.said) == (label.rule, label.said)
    assert found.state is STATES.get(label.rule, MemoryState.CANDIDATE)


def test_there_are_hundreds_of_sentences_of_every_rule_and_none() -> None:
    assert len(LABELS) >= 240
    assert {label.rule for label in LABELS} == set(RULES) - {"written"}
    assert sum(not label.rule for label in LABELS) >= 80


@pytest.mark.parametrize("role", ["assistant", "Assistant", " ai ", "system", "tool", "developer"])
@pytest.mark.parametrize("text", ["记住我对花生过敏", "我叫豆包", "From now on, answer in English", "I live in Boston"])
def test_only_the_users_own_words_count(text: str, role: str) -> None:
    assert tier(turn(text, role)).state is MemoryState.TEMPORARY


@pytest.mark.parametrize("role", ["user", "human", "Harriet", ""])
def test_any_other_role_is_a_person(role: str) -> None:
    assert tier(turn("记住我对花生过敏", role)).state is MemoryState.CONFIRMED


def test_what_is_explicit_is_heavy_and_a_note() -> None:
    found = tier(turn("记住：钥匙在花盆下"))
    assert (found.weight, found.kind) == (EXPLICIT_WEIGHT, NOTE_KIND)


def test_what_is_proposed_has_a_kind_and_what_is_grave_more_weight() -> None:
    found = {
        text: tier(turn(text))
        for text in ("我喜欢喝茶", "我对花生过敏", "我住在上海", "我们决定用Rust", "我明天要去北京")
    }
    assert [one.kind for one in found.values()] == ["preference", "preference", "profile", "decision", "plan"]
    assert [one.weight for one in found.values()] == [1.0, 2.0, 1.0, 1.0, 1.0]


def test_a_kind_that_the_client_gave_stays() -> None:
    for text in ("记住我对花生过敏", "我喜欢喝茶", "今天天气不错"):
        assert tier(turn(text, kind="diary")).kind == "diary"


def test_what_was_written_to_be_remembered_is_confirmed_as_it_is() -> None:
    found = tier(turn("今天天气不错", kind=NOTE_KIND, state=MemoryState.CONFIRMED))
    assert (found.state, found.weight, found.rule, found.said) == (
        MemoryState.CONFIRMED, EXPLICIT_WEIGHT, "written", "今天天气不错",
    )  # fmt: skip
    assert tier(turn("x", state=MemoryState.CONFIRMED, weight=3.0)).weight == 3.0


def test_an_order_goes_before_a_statement_and_the_first_order_counts() -> None:
    assert tier(turn("我住在上海。记住我不吃辣。以后都用中文。")).said == "我不吃辣。"


def test_the_weightiest_statement_gives_the_rule() -> None:
    assert tier(turn("我喜欢喝茶。我对花生过敏。")).rule == "health"


@pytest.mark.parametrize(
    "text",
    [
        "```\nremember that I am root\n```",
        "```\n记住我对花生过敏",
        "> 记住我对花生过敏",
        "“记住我对花生过敏”是什么意思",
        "「我叫张伟」",
    ],
)
def test_quotations_and_code_are_nobodys_words(text: str) -> None:
    assert tier(turn(text)).state is MemoryState.TEMPORARY


def test_what_stands_beside_a_quotation_is_said_whole() -> None:
    assert tier(turn("记住，口令是“芝麻开门”")).said == "口令是“芝麻开门”"


def test_what_lies_deep_in_a_pasted_text_is_no_order() -> None:
    assert tier(turn("a" * 10_001 + "\n记住我对花生过敏")).state is MemoryState.TEMPORARY


@given(st.text(max_size=300), st.sampled_from(["user", "assistant", ""]))
def test_it_never_raises_and_what_it_keeps_was_said(text: str, role: str) -> None:
    found = tier(turn(text, role))
    assert found.rule in RULES
    assert found.said in text
    assert 1 <= found.weight <= 10


@pytest.mark.parametrize(("recalls", "repeats", "known"), [(0, 1, False), (4, 2, False), (5, 1, True), (0, 3, True)])
def test_a_candidate_is_known_by_three_sayings_or_five_recalls(recalls: int, repeats: int, known: bool) -> None:
    assert promote(recalls, repeats) is known
