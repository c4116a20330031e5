from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.recall.courtesy import is_courtesy
from edge.recall.level import ABSTRACT_LIMIT, OVERVIEW_LIMIT, abstract, at_level, overview
from edge.recall.line import ELLIPSIS, flatten
from edge.types import Level

# Pieces that make sentences, lines, labels, courtesies and all that is in the way of cutting them.
WORDS = (
    "好的， 当然可以！ Sure, 我家的猫叫豆包 它三岁 2026年3月5日 3.14 ， 。 ！ ？ Mel: 张三： We went to Berlin "
    ". ? ! 《围城》 1. e\u0301 …"
)
OTHERS = [" ", "\n", "\r\n", "\u200b", "\u202e", "👨\u200d👩\u200d👧", "a" * 90, "话" * 90, "12345678901234567890"]
PIECES = st.lists(st.sampled_from([*WORDS.split(), *OTHERS]), max_size=30).map("".join)


def comes_from(shown: str, text: str) -> bool:
    """Whether every character but ellipses is one of the text's, in order."""
    rest = iter(flatten(text))
    return all(char in rest for char in shown if char != ELLIPSIS)


def test_an_abstract_is_the_sentence_that_the_question_meant() -> None:
    text = "先说天气。\n再说猫：它叫豆包！最后，版本3.14发布了."
    assert abstract(text, ["豆包", "猫"]) == "再说猫：它叫豆包！"
    assert abstract(text, ["3"]) == "最后，版本3.14发布了."
    assert abstract("We sold the car. The dog is called Rex.", ["dog"]) == "The dog is called Rex."
    assert abstract("啊" * 200) == "啊" * 79 + "…"
    assert abstract("！！！") == "！！！"
    assert abstract("") == ""


def test_without_a_question_it_is_the_sentence_nearest_to_the_whole() -> None:
    text = "今天下雨。我们的预算会议改到周五，预算要先由财务看过。财务看过的预算才上会议。回头见。"
    assert abstract(text) == "我们的预算会议改到周五，预算要先由财务看过。"
    assert abstract("It rained. The budget meeting is about the budget of the house. Well.") == (
        "The budget meeting is about the budget of the house."
    )


def test_names_and_numbers_count() -> None:
    assert abstract("那部电影很好看。那本《围城》很好看。那些东西很好看。") == "那本《围城》很好看。"
    assert abstract("会议时间要改了。会议时间改到4月30日。会议时间再说吧。") == "会议时间改到4月30日。"
    assert abstract("我们去了那里玩。我们和Alice去了那里。我们去了那里看。") == "我们和Alice去了那里。"


def test_what_is_said_comes_before_what_is_asked_or_put_in_brackets() -> None:
    assert abstract("你家的猫叫什么名字？我家的猫叫豆包。") == "我家的猫叫豆包。"
    assert abstract("We won. [photo: a photo of a photo]") == "We won."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("好的，我明天下午三点来。", "我明天下午三点来。"),
        ("好的！没问题！钥匙在花盆下。", "钥匙在花盆下。"),
        ("当然可以！谢谢您的建议。我去买票。", "我去买票。"),
        ("你好，我叫李小雨。", "我叫李小雨。"),
        ("Sure, I will bring it.", "I will bring it."),
        ("Of course! Thanks, Mel! The key is here.", "The key is here."),
        ("Hey Tim, great to see you! We moved to Oslo.", "We moved to Oslo."),
        ("好的，谢谢！", "好的，谢谢！"),
        ("surely the best。", "surely the best。"),
        ("好人一生平安。", "好人一生平安。"),
    ],
)
def test_a_courtesy_never_wins_while_there_is_something_else(text: str, shown: str) -> None:
    assert abstract(text) == shown
    assert abstract(text, ["好的", "谢谢", "sure", "thanks"]) == shown


def test_courtesies_in_a_row_are_read_at_once_and_so_is_what_only_begins_like_them() -> None:
    assert is_courtesy("哈" * 50)
    assert not is_courtesy("哈哈" * 10_000 + "x")
    assert not is_courtesy("")


def test_who_speaks_stays() -> None:
    assert abstract("Mel: Hi! We went to Oslo in May.", ["oslo"]) == "Mel: We went to Oslo in May."
    assert abstract("张三：你好！我明天去上海。") == "张三：我明天去上海。"
    assert abstract("Mel: We are off.\nTim: The key is in Oslo.", ["oslo"]) == "Tim: The key is in Oslo."


def test_a_label_is_not_put_before_another_label_s_words() -> None:
    assert abstract("时间：下午三点。地点：会议室。", ["会议室"]) == "地点：会议室。"


def test_the_terms_of_a_lexicon_are_found_as_they_are_written() -> None:
    text = "他在学车。他用的是ＧＰＴ-v1.5。他回家了。"
    assert abstract(text, ["v1\ue0005", "v1"]) == "他用的是ＧＰＴ-v1.5。"
    # A short word is no part of another one.
    assert abstract("The cat sleeps. A category is empty.", ["cat"]) == "The cat sleeps."
    # A pair says more than single characters, and a term that is given twice counts twice.
    assert abstract("猫和包都在。我家的豆包。", ["豆包", "猫", "包"]) == "我家的豆包。"
    assert abstract("豆包在这。花生在这。", ["豆包", "花生", "花生"]) == "花生在这。"
    assert abstract("豆包。", [""]) == "豆包。"


def test_a_long_sentence_is_shortened_around_what_matters() -> None:
    long = "他先说了很多很多的话，" * 12 + "然后说备用钥匙在花盆下面，" + "后来又说了一些别的话，" * 12
    shown = abstract(long + "。", ["钥匙"])
    assert "备用钥匙在花盆下面" in shown
    assert shown.startswith("…") and shown.endswith("…") and len(shown) <= ABSTRACT_LIMIT
    assert "4月30日" in abstract("他先说了很多很多的话，" * 12 + "会议定在4月30日。")


def test_lists_titles_and_versions_are_no_ends_of_sentences() -> None:
    text = "1. Dr. J. Smith asked for v1.5 at St. Mary. 2. Nothing."
    assert abstract(text, ["smith"]) == "1. Dr. J. Smith asked for v1.5 at St. Mary."


def test_a_text_of_letters_may_be_twice_as_long() -> None:
    text = "We met at the station and walked along the river until the rain began and everybody ran home again."
    assert abstract(text) == text
    assert len(abstract("word " * 100)) <= 2 * ABSTRACT_LIMIT


def test_an_overview_is_the_best_sentences_in_their_order() -> None:
    assert overview("一句话。" * 10) == "一句话。" * 10
    assert overview("啊" * 300) == "啊" * (OVERVIEW_LIMIT - 1) + "…"
    filler = "嗯嗯，好的。"
    text = filler + "豆包是一只三岁的猫。" + filler * 20 + "豆包的生日是5月6日。" + filler * 20
    assert overview(text).startswith("豆包是一只三岁的猫。豆包的生日是5月6日。")
    text = "Mel: " + "We talked about this and that. " * 20 + "The key is in Oslo."
    assert overview(text, ["oslo"]).startswith("Mel: ")
    assert overview(text, ["oslo"]).endswith("The key is in Oslo.")


def test_each_level_is_as_deep_as_it_says() -> None:
    text = "先说天气。\n" + "再说一点别的，说来话长。" * 30
    assert at_level(text, Level.DETAIL) == text
    assert len(at_level(text, Level.ABSTRACT)) < len(at_level(text, Level.OVERVIEW)) < len(text)


@given(st.text(max_size=400) | PIECES, st.lists(st.sampled_from(["猫", "豆包", "berlin", "3", "a", ""]), max_size=4))
def test_what_is_shown_is_one_short_line_of_the_text_in_its_order(text: str, terms: list[str]) -> None:
    for shown, limit in ((abstract(text, terms), ABSTRACT_LIMIT), (overview(text, terms), OVERVIEW_LIMIT)):
        assert len(shown) <= 2 * limit
        assert shown == flatten(shown)
        assert comes_from(shown, text)
        assert bool(shown) == bool(flatten(text))


@given(PIECES, st.integers(1, 120))
def test_any_limit_is_kept(text: str, limit: int) -> None:
    assert len(abstract(text, (), limit)) <= limit
    assert len(overview(text, (), limit)) <= limit


@given(PIECES, st.text(alphabet="猫狗鱼马", min_size=2, max_size=4))
def test_no_other_sentence_is_nearer_to_the_question(text: str, term: str) -> None:
    assert term in abstract(f"{text}。答案是{term}在这里。", [term])
