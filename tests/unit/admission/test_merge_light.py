"""What may be said or left out, or stand elsewhere, and what may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.agree import read, same_but_for_light


def same(older: str, newer: str) -> bool:
    return same_but_for_light(read(older), read(newer))


@pytest.mark.parametrize(
    "pair",
    [
        "我买了一份重疾险|我买了份重疾险", "我换了一台新电脑|我换了台新电脑",
        "我失眠有半年了|我失眠已经半年了", "他在英国留学|他正在英国留学", "每个周末都去看外婆|每个周末我都会去看外婆",
        "周五要去上海出差|周五去上海出差", "我和妈妈关系好|我和我妈关系好", "我对数学很感兴趣|我对数学感兴趣",
        "I've booked the flight|I booked the flight", "I live together with my sister|I live with my sister",
        "I have to buy some milk|I need to buy milk", "I will move on Friday|I move on Friday",
        "I have a dog and one cat|I have a dog and a cat", "I think that it rains|I think it rains",
    ],
)  # fmt: skip
def test_a_light_word_may_be_there_or_not(pair: str) -> None:
    assert same(*pair.split("|"))


@pytest.mark.parametrize(
    "pair",
    [
        "我要钱|我有钱", "我会弹琴|我在弹琴", "我有一个孩子|我有三个孩子", "我只有一个孩子|我有一个孩子",
        "我买了一份保险|我又买了一份保险", "我会做饭|我会去做饭", "我要结婚了|我结婚了", "我很少去|我少去",
        "会议定在周五|会议改到周五", "王磊欠我钱|王磊欠钱", "我不用车|我不是车", "我搬家了|我们搬家了",
        "I have lived in Rome|I lived in Rome", "I have never decided|I decided", "I just want tea|I only want tea",
        "I will be there|I am there", "I run about five miles|I run five miles", "I have one dog|I have two dogs",
        "I have to book a flight|I booked a flight", "I need no milk|I need some milk",
    ],
)  # fmt: skip
def test_what_stands_in_the_place_of_another_word_is_not_light(pair: str) -> None:
    assert not same(*pair.split("|"))


@pytest.mark.parametrize(
    "pair",
    [
        "去大理的机票我订好了|我订好了去大理的机票", "我把头发剪短了|我剪短了头发", "我被公司裁了|公司把我裁了",
        "我得了感冒|我得感冒了", "我去健身房两次|我去两次健身房",
        "I pick Anna up|I pick up Anna", "In March I go to Rome|I go to Rome in March",
        "When I run, my knee hurts|My knee hurts when I run", "My boss fired me|I was fired by my boss",
        "Next month my sister will move to Berlin|My sister is moving to Berlin next month",
    ],
)  # fmt: skip
def test_another_order_of_the_same_is_the_same(pair: str) -> None:
    assert same(*pair.split("|"))


@pytest.mark.parametrize(
    "pair",
    [
        "我把他打了|他把我打了", "我被狗咬了|狗被我咬了", "小林喜欢我|我喜欢小林", "猫我喜欢|猫喜欢我",
        "周五开会，爬山|开会，周五爬山", "我吃饭跑步|我跑步吃饭", "我从北京飞上海|我从上海飞北京",
        "I picked Anna up|Anna picked me up", "I take off on Friday|I take Friday off",
        "When I run, my knee hurts|When my knee hurts, I run", "Anna was hit by Tom|Tom was hit by Anna",
        "I often think Tom drinks|I think Tom often drinks", "With Tom I met Anna|With Anna I met Tom",
        "I don't usually eat meat|I usually don't eat meat",
    ],
)  # fmt: skip
def test_another_order_that_tells_another_thing_keeps_apart(pair: str) -> None:
    assert not same(*pair.split("|"))


TOKENS = st.lists(
    st.sampled_from(
        [
            *"我把被了不在去要会有是的一个家",
            "have",
            "not",
            "i",
            "up",
            "usually",
            "in",
            ",",
            *read("周五三点"),
            *read("一"),
        ]
    ),
    max_size=30,
).map(tuple)


@given(TOKENS, TOKENS)
def test_light_is_light_on_either_side_and_nothing_is_raised(older: tuple[str, ...], newer: tuple[str, ...]) -> None:
    assert same_but_for_light(older, newer) == same_but_for_light(newer, older)


@given(TOKENS)
def test_a_reading_says_what_it_says(tokens: tuple[str, ...]) -> None:
    assert same_but_for_light(tokens, tokens)
