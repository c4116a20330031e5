"""Which texts go to which model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.embedder.routing import languages, route
from edge.types import ModelInfo


def model(name: str, language: str) -> ModelInfo:
    return ModelInfo(name, 8, "cpu", 1, 0, language=language)


ZH, EN, ANY = model("zh", "zh"), model("en", "en"), model("any", "any")
HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1)
CJK = st.text(
    st.one_of(
        st.characters(min_codepoint=0x3400, max_codepoint=0x4DBF),
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
        st.characters(min_codepoint=0x3041, max_codepoint=0x3096),
        st.characters(min_codepoint=0x20000, max_codepoint=0x2A6D6),
        st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
    ),
    min_size=1,
)
LATIN = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCXYZéÅß"), min_size=1)
NEITHER = st.text(
    st.one_of(st.sampled_from("0123456789 .,!?()。，、「」\n🙂🦄→"), st.characters(categories=["Sm", "Sc"]))
)


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("我把备用钥匙放在阳台第三个花盆下面。", ("zh",)),
        ("The spare key lies under the third flower pot on the balcony.", ("en",)),
        # Identifiers, acronyms, paths and numbers are no English.
        ("我把 getUserName 改成 get_user_name_v2 了", ("zh",)),
        ("周三下午我们把PostgreSQL主库迁到了新机房，脚本在 /opt/ops/rollback.sh。", ("zh",)),
        ("把 PDF 用 OCR 转成 TXT", ("zh",)),
        ("用 docker compose 启动服务", ("zh",)),
        # A name is no Chinese.
        ("I met 王小明 at the station yesterday", ("en",)),
        ("Ask 欧阳娜娜 whether she can bring the cake on Sunday", ("en",)),
        # Both are a real part.
        ("帮我 review 一下这个 pull request", ("zh", "en")),
        ("周三的会改到下午。Please bring the slides and the budget numbers with you.", ("zh", "en")),
        ("王小明 wifi password", ("zh", "en")),
        # No word of English, and yet in no other language.
        ("getUserName()", ("en",)),
        ("café", ("en",)),
        # Neither.
        ("", ("zh",)),
        ("12345", ("zh",)),
        ("🙂 👍", ("zh",)),
        ("。。。", ("zh",)),
        ("Привет, как дела", ("zh",)),
    ],
)
def test_a_text_goes_to_the_models_of_its_languages(text: str, models: tuple[str, ...]) -> None:
    assert route(text, [ZH, EN]) == models


@given(st.text(), st.lists(st.sampled_from([ZH, EN, ANY]), min_size=1, unique=True))
def test_every_text_goes_to_some_running_model_and_to_none_twice(text: str, models: list[ModelInfo]) -> None:
    chosen = route(text, models)
    assert chosen
    assert [one.id for one in models if one.id in chosen] == list(chosen)


@given(st.text())
def test_a_model_that_runs_alone_gets_every_text(text: str) -> None:
    assert [route(text, [one]) for one in (ZH, EN, ANY)] == [("zh",), ("en",), ("any",)]


@given(CJK, NEITHER)
def test_what_has_no_letters_does_not_make_chinese_anything_else(text: str, rest: str) -> None:
    assert languages(rest + text + rest) == ("zh",)


@given(LATIN, NEITHER)
def test_what_has_no_letters_does_not_make_english_anything_else(text: str, rest: str) -> None:
    assert languages(rest + text + rest) == ("en",)


@given(NEITHER)
def test_what_has_no_letters_goes_to_the_first_model(text: str) -> None:
    assert route(text, [EN, ZH]) == ("en",)
    assert route(text, [ZH, EN]) == ("zh",)


@given(HAN, st.integers(0, 200))
def test_more_english_words_never_take_english_out_again(text: str, words: int) -> None:
    def english(count: int) -> bool:
        return "en" in languages(text + " word" * count)

    assert english(words + 1) >= english(words)


@given(HAN, st.integers(1, 50))
def test_a_text_of_two_languages_has_one_of_them_at_least(text: str, words: int) -> None:
    assert languages(text + " word" * words)


def test_a_model_for_any_language_gets_what_no_other_is_for() -> None:
    assert route("钥匙在花盆下面", [ANY, EN]) == ("any",)
    assert route("the key is under the pot", [ANY, EN]) == ("en",)
    assert route("the key is under the pot", [ZH, ANY]) == ("any",)
    # Nobody is for English: the first has it.
    assert route("the key is under the pot", [ZH, model("zh2", "zh")]) == ("zh",)


def test_half_a_character_is_no_letter() -> None:
    assert languages("\ud800") == ()
    assert languages("\ud800 钥匙") == ("zh",)
