"""Whom a question speaks of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.recall.cues import ASKER, ASSISTANT, cue


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("我家的猫叫什么", ASKER),
        ("我们上次去了哪里", ASKER),
        ("What is my cat's name?", ASKER),
        ("where did I put it", ASKER),
        ("I'm allergic to what?", ASKER),
        ("which of these is mine", ASKER),
        ("请问my cat叫什么", ASKER),
        ("你推荐了哪本书", ASSISTANT),
        ("您说的那家店", ASSISTANT),
        ("what did you recommend", ASSISTANT),
        ("What was YOUR advice?", ASSISTANT),
        ("What did you say about my cat", ASSISTANT),
        ("我问你的那本书", ASKER),
        ("小明的生日", ""),
        ("where is the router password", ""),
        ("", ""),
    ],
)
def test_the_first_person_that_is_spoken_of_counts(query: str, speaker: str) -> None:
    assert cue(query).speaker == speaker


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("你知道吗，小明的生日是哪天", ""),
        ("你还记得小明的生日吗", ""),
        ("你能告诉我那家店叫什么吗", ASKER),
        ("你好，我的猫叫什么", ASKER),
        ("你觉得小明喜欢什么", ""),
        ("您好，你推荐了什么", ASSISTANT),
        ("Do you know where the router is?", ""),
        ("Can you tell me what Kim said?", ""),
        ("could you remind me where my keys are", ASKER),
        ("you know, the garden", ""),
        ("Thank you! What's the password?", ""),
        ("Would you please say what you recommended", ASSISTANT),
    ],
)
def test_to_address_somebody_is_not_to_speak_of_them(query: str, speaker: str) -> None:
    assert cue(query).speaker == speaker


@pytest.mark.parametrize("query", ["the iPhone in the army", "meow, mystery, wei, youth", "wifi", "i_max", "hours"])
def test_pronouns_inside_words_are_none(query: str) -> None:
    assert cue(query).speaker == ""


@pytest.mark.parametrize(
    ("query", "askers", "assistants"),
    [("what did I say", 1.0, 0.0), ("what did you say", 0.0, 1.0), ("what was said", 0.0, 0.0)],
)
def test_i_is_the_asker_and_you_is_the_assistant(query: str, askers: float, assistants: float) -> None:
    assert {cue(query).fit(role, named=False) for role in ("user", "User", "human")} == {askers}
    assert {cue(query).fit(role, named=False) for role in ("assistant", "AI", "model", "bot")} == {assistants}


@pytest.mark.parametrize("role", ["", "system", "tool", "document", "developer"])
def test_what_nobody_said_is_spoken_of_by_no_pronoun(role: str) -> None:
    assert cue("what did I say").fit(role, named=False) == cue("what did you say").fit(role, named=False) == 0.0


def test_where_somebody_is_named_pronouns_count_no_more() -> None:
    asked = cue("what did I tell kim")
    assert [asked.fit(role, named=True) for role in ("Kim", "user", "lee")] == [1.0, 0.0, 0.0]
    assert asked.fit("user", named=False) == 1.0


@pytest.mark.parametrize(
    ("query", "role", "named"),
    [
        ("What did Rosalind paint?", "Rosalind", True),
        ("what did CAROLINE paint", "caroline", True),
        ("Rosalind's painting", "Rosalind", True),
        ("what did Rosalinds paint", "Rosalind", False),
        ("the ann-arbor trip", "Ann", True),
        ("the annual trip", "Ann", False),
        ("what did kim_2 say", "kim", False),
        ("小明去了哪里", "小明", True),
        ("问一下kim去了哪里", "Kim", True),
        ("小红去了哪里", "小明", False),
        ("what does the user want", "user", False),
        ("what did the assistant say", "assistant", False),
        ("the tool and the system", "tool", False),
        ("a b c", "a", False),
        ("what did a.b say", "a.b", True),
        ("what did axb say", "a.b", False),
        ("what", "", False),
    ],
)
def test_a_question_names_who_is_in_it_as_a_whole_word(query: str, role: str, named: bool) -> None:
    assert cue(query).names(role) is named


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_text_is_too_odd_to_be_asked(query: str, role: str) -> None:
    asked = cue(query)
    assert asked.speaker in ("", ASKER, ASSISTANT)
    assert asked.fit(role, named=True) == float(asked.names(role))
    assert 0 <= asked.fit(role, named=False) <= bool(asked.speaker)
