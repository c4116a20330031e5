"""What is read alike, and what is not: the claims that merging rests on, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.agree import counts_from_today, read
from edge.admission.agree.numerals import chinese, english, scaled


def each(joined: str) -> list[str]:
    return joined.split("|")


@pytest.mark.parametrize(
    ("numeral", "digits"),
    [
        ("三", "3"), ("十", "10"), ("十六", "16"), ("二十", "20"), ("一百零三", "103"), ("一百三", "130"),
        ("三千六", "3600"), ("三千零六", "3006"), ("一万二", "12000"), ("两万五千", "25000"), ("一亿三", "130000000"),
        ("十万", "100000"), ("一百万", "1000000"), ("二〇二六", "2026"), ("一三八", "138"),
    ],
)  # fmt: skip
def test_a_chinese_numeral_is_its_digits(numeral: str, digits: str) -> None:
    assert chinese(numeral) == digits


@pytest.mark.parametrize("numeral", each("三五|二三十|万|百|千万|万一|十百"))
def test_what_means_roughly_or_is_no_numeral_has_no_digits(numeral: str) -> None:
    assert chinese(numeral) is None


@given(st.integers(1, 99_999_999))
def test_every_whole_number_is_read_as_it_is_said(number: int) -> None:
    assert chinese(spoken(number)) == str(number)


def spoken(number: int) -> str:
    """As a newsreader says it, without what may be left out."""
    if number >= 10_000:
        rest = number % 10_000
        return f"{spoken(number // 10_000)}万" + (("零" if rest < 1000 else "") + spoken(rest) if rest else "")
    text, gap = "", False
    for at, unit in enumerate(("千", "百", "十", "")):
        digit = number // 10 ** (3 - at) % 10
        if digit:
            text += ("零" if gap and text else "") + "零一二三四五六七八九"[digit] + unit
        gap = not digit
    return text


@pytest.mark.parametrize(
    ("words", "digits"),
    [("twelve", "12"), ("sixty-four", "64"), ("two hundred and fifty", "250"), ("a thousand", "1000"),
     ("three million two hundred thousand", "3200000")],
)  # fmt: skip
def test_english_number_words_are_their_digits(words: str, digits: str) -> None:
    assert english(words) == digits


def test_a_scale_after_digits_is_exact() -> None:
    assert scaled("1.5", "万") == "15000"
    assert scaled("0.1", "亿") == "10000000"
    assert scaled("1.23", "十") == "1.23十"


@pytest.mark.parametrize(
    "alike",
    [
        "下午三点|15点|15:00|3 pm|3:00 p.m.|3 in the afternoon",
        "早上七点半|上午7:30|7:30 am|07:30",
        "晚上十二点|24:00",
        "晚上十一点|夜里11点|23:00|11 pm",
        "中午十一点|上午十一点|11 am",
        "in May|in May.",
        "5月3日|五月三号|May 3|May 3rd|3 May|the 3rd of May",
        "2026年3月1日|2026-03-01|2026/3/1|March 1, 2026|二〇二六年三月一日",
        "周五|星期五|礼拜五|在周五|Friday|on Friday",
        "下周一|下个星期一|下礼拜一|next Monday",
        "每周二和周四|每周二和每周四|每个星期二、星期四",
        "Tuesdays and Thursdays|every Tuesday and Thursday|on Tuesdays and on Thursdays",
        "三千六百元|3600块|3600块钱|¥3600|￥3,600|三千六块钱|3600 CNY",
        "50 dollars|$50|50美元|fifty dollars|50 USD",
        "五公里|5公里|5km|5 千米|five kilometers",
        "百分之三十|30%|30 percent|30 per cent",
        "一米七八|1.78米|1.78 m",
        "两公斤|2kg|2 千克|two kilos",
        "第三|第3|third|3rd",
        "三万五|35000|3.5万",
    ],
)
def test_one_value_is_read_alike_however_it_is_written(alike: str) -> None:
    assert len({read(text) for text in each(alike)}) == 1


@pytest.mark.parametrize(
    "apart",
    [
        "三点|下午三点|上午三点|三点半|三点一刻|3:05|13:00",
        "周五|下周五|这周五|每周五|周五前|周五后|周六",
        "早上十一点|晚上十一点|十一点",
        "正式一点|一点|一点半",
        "5月3日|5月13日|3月5日|2026年5月3日|5月|农历5月3日",
        "每天|每周|每月|每年|每小时|隔天|每两天",
        "两公斤|两斤|两克|2|2公里",
        "30%|3.0%|30|30个百分点|0.3",
        "一个半小时|半小时|半个小时|一小时|一个小时零五分",
        "三五天|三十五天|35天前|五天",
        "007|7|0|00",
        "v1.1|v1.10|1.1|1.10",
        "a few|few|a little|little|few|many",
        "100 MB|100 Mb|100 GB|100MB/s|100Mbps",
        "5 mW|5 MW|5 kW",
        "5 dollars|5 euros|5 pounds|5 yuan",
        "first|second|third|1|2",
        "by Friday|on Friday|before Friday|after Friday|until Friday|every other Friday",
    ],
)
def test_what_is_another_value_is_read_otherwise(apart: str) -> None:
    texts = set(each(apart))
    assert len({read(text) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text", each("明天开会|今晚加班|下周五|去年|三天前|tomorrow|two weeks ago|next month|in 3 days|刚才")
)
def test_some_times_count_from_the_day_they_are_said(text: str) -> None:
    assert counts_from_today(text)


@pytest.mark.parametrize("text", each("每天开会|周五下午|5月3日|2026年|Friday|every day|我住在上海|昨日酒店"))
def test_others_are_the_same_on_any_day(text: str) -> None:
    assert not counts_from_today(text)


@given(st.text(max_size=120))
def test_reading_never_raises(text: str) -> None:
    assert all(isinstance(token, str) and token for token in read(text))


@given(st.text("我他不是的在了和,。?0123456789一二三百年月日点周前后aAbB-:'\"“”` ", max_size=60))
def test_reading_never_raises_on_what_the_rules_are_about(text: str) -> None:
    read(text)
