"""What is left of a question when its times are taken out, and what holds for any text."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.recall.temporal import Times, tells_time, understand

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = (dt.datetime(2026, 7, 23, 15, 0, tzinfo=SHANGHAI) - EPOCH) // dt.timedelta(microseconds=1)
END = (dt.datetime(2100, 1, 1, tzinfo=dt.timezone.utc) - EPOCH) // dt.timedelta(microseconds=1)


def ask(query: str) -> Times:
    return understand(query, NOW, SHANGHAI)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("我上周三在公园说了什么", "我在公园说了什么"),
        ("上周三的会议讨论了什么？", "会议讨论了什么？"),
        ("我曾经在5月2日说起过我逛了花市，看了什么花？", "我曾经说起过我逛了花市，看了什么花？"),
        ("5月6日这天，我为什么要咨询你", "我为什么要咨询你"),
        ("在去年三月到五月期间我读了哪些书", "我读了哪些书"),
        ("钥匙84天前放在哪了", "钥匙放在哪了"),
        ("我最近去大理骑车了，喜欢哪里？", "我去大理骑车了，喜欢哪里？"),
        ("从3月以来我换了几次工作", "我换了几次工作"),
        ("上次聊到的餐厅叫什么", "聊到的餐厅叫什么"),
        ("昨天晚上的电影叫什么名字", "电影叫什么名字"),
        ("五一之前我买了什么", "五一我买了什么"),
        ("去年国庆去了哪", "国庆去了哪"),
        ("What did I say last Tuesday about the dog?", "What did I say about the dog?"),
        ("What quilt did Harriet bring on October 13, 2023?", "What quilt did Harriet bring?"),
        ("In March, what did we buy?", "what did we buy?"),
        ("Which books did I read from March to May?", "Which books did I read?"),
        ("What have I learned since 2024-03-01?", "What have I learned?"),
        ("Where is the photo from last week", "Where is the photo"),
        ("Yesterday's dinner was what?", "dinner was what?"),
        ("What did I promise before May 1st?", "What did I promise?"),
        ("What did we cook last Christmas?", "What did we cook Christmas?"),
        ("What did they blog about recently?", "What did they blog about?"),
    ],
)
def test_the_expression_goes_with_the_small_words_that_joined_it(query: str, left: str) -> None:
    assert ask(query).query == left


@pytest.mark.parametrize(
    "query", ["上周三", "昨天？", "在上个月的时候", "in March", "last Tuesday?", "最近", "2026-04-30"]
)
def test_a_question_of_nothing_else_stays_whole(query: str) -> None:
    times = ask(query)
    assert times.windows
    assert times.query == query


@pytest.mark.parametrize("query", ["国庆怎么过的", "What do they watch during Thanksgiving?", "端午节吃的粽子"])
def test_the_name_of_a_holiday_is_a_matter_too_and_stays(query: str) -> None:
    times = ask(query)
    assert times.query == query
    assert [window.explicit for window in times.windows] == [False]


def test_a_window_knows_with_which_characters_it_was_said() -> None:
    query = "我　ＬＡＳＴ　ＷＥＥＫ 和上週三都在"
    assert [query[w.start : w.end] for w in ask(query).windows] == ["ＬＡＳＴ　ＷＥＥＫ", "上週三"]


@pytest.mark.parametrize(
    "query", ["上次说的店", "上一次是在哪", "最近一次体检", "最后一次见他", "last time we met", "the latest plan"]
)
def test_the_most_recent_one_may_be_wanted(query: str) -> None:
    assert ask(query).latest


@pytest.mark.parametrize("query", ["最近的安排", "晚上次数多吗", "last week", "at last", "上周三"])
def test_or_any(query: str) -> None:
    assert not ask(query).latest


@pytest.mark.parametrize(
    "query",
    [
        "我什么时候去的厦门", "哪天吃的火锅", "他生日是几月几号", "哪一年毕业的", "哪个月搬的家",
        "那天的具体日期是？", "多久以前买的", "他何时来", "星期几开会", "When did Rosalind go?", "when was it",
        "Tell me when we met", "What date was it?", "how long ago was it", "Which year did I start surfing?",
        "What day did we leave?", "When Evan did meet his wife?", "how many days ago did I call",
    ],
)  # fmt: skip
def test_a_question_may_ask_for_a_time(query: str) -> None:
    assert ask(query).asks_when


@pytest.mark.parametrize(
    "query",
    [
        "我去了哪",
        "有时候会怎样",
        "昨天吃了什么",
        "What did I do when I was young?",
        "When I was younger, what did I play?",
        "whenever",
    ],
)
def test_or_for_something_else(query: str) -> None:
    assert not ask(query).asks_when


@pytest.mark.parametrize(
    "text",
    [
        "我昨天去了医院", "上周三开会", "3月5日出发", "三月底搬家", "两年前认识的", "国庆去了黄山", "周末见",
        "2022年毕业", "15号交房租", "去年买的", "I saw him yesterday.", "Last week I joined a gym",
        "we met last Friday", "it was in June", "back in 2022", "next month we move", "three days ago", "on Monday",
        "see you tuesday", "April 3rd", "Christmas dinner", "in May", "Today was great", "on 2024-03-01",
        "for the past few weeks",
    ],
)  # fmt: skip
def test_a_text_may_tell_when_something_happened(text: str) -> None:
    assert tells_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "我喜欢吃火锅",
        "三国演义",
        "他住在3号楼",
        "一起去公园玩",
        "I like dogs",
        "He sat down and may stay",
        "may I",
        "my last name",
        "",
        "3.5",
    ],
)
def test_or_not(text: str) -> None:
    assert not tells_time(text)


# Texts made of pieces of expressions come to more of the rules than letters at random.
PIECES = (
    *"上下这本周三月日号年前后天去今昨明到至-/.3个半几十底初的在从两２ \u3000İß\x00\U0001f600?",
    *("最近", "上次", "国庆", "春节", "五一", "之前", "以来", "30", "2026", "12", "晚上", "正月初五", "除夕", "清明"),
    *("过去", "小时", "分钟", "季度", "last", "next", "this", "week", "month", "year", "on", "in", "from", "to", "of"),
    *("before", "after", "since", "until", "March", "may", "April 30th", "the", "ago", "days", "two", "couple", "half"),
    *("Tuesday", "Christmas", "Easter", "Q1", "early", "end", "'s", "and", "between", "99", "9999", "2100", "1969"),
)
ZONES = st.sampled_from(
    ["Asia/Shanghai", "America/New_York", "Africa/Cairo", "Pacific/Apia", "Asia/Kathmandu", "UTC"]
).map(ZoneInfo)
MOMENTS = st.integers(min_value=0, max_value=END - 1)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, MOMENTS, ZONES)
def test_any_text_is_understood_or_left_alone(text: str, now: int, zone: ZoneInfo) -> None:
    times = understand(text, now, zone)
    end = 0
    for window in times.windows:
        assert 0 <= window.since < window.until <= END
        assert end <= window.start < window.end <= len(text)
        assert not window.explicit or window.since <= now
        end = window.end
    tells_time(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS, MOMENTS)
def test_what_is_left_speaks_of_no_time_but_a_holiday_or_is_the_whole(text: str, now: int) -> None:
    times = understand(text, now, SHANGHAI)
    if times.query != text:
        assert times.windows
        assert not any(window.explicit for window in understand(times.query, now, SHANGHAI).windows)


@given(st.integers(0, 9000), st.integers(1, 1000), ZONES)
def test_so_many_days_ago_is_the_day_that_holds_the_same_hour_then(day: int, count: int, zone: ZoneInfo) -> None:
    local = dt.datetime(1990, 1, 1, 12, 34) + dt.timedelta(days=day)  # noqa: DTZ001  # the zone is put on below
    now = (local.replace(tzinfo=zone) - EPOCH) // dt.timedelta(microseconds=1)
    then = ((local - dt.timedelta(days=count)).replace(tzinfo=zone) - EPOCH) // dt.timedelta(microseconds=1)
    for said in (f"{count}天前", f"{count} days ago"):
        [window] = understand(said, now, zone).windows
        assert window.since <= then < window.until
        assert window.explicit


@given(st.dates(dt.date(1970, 1, 2), dt.date(2099, 12, 30)))
def test_a_date_is_that_day_however_it_is_written(day: dt.date) -> None:
    months = "January February March April May June July August September October November December"
    name = months.split()[day.month - 1]
    written = (
        f"{day:%Y-%m-%d}", f"{day.year}/{day.month}/{day.day}", f"{day.year}年{day.month}月{day.day}日",
        f"{name} {day.day}, {day.year}", f"{day.day} {name[:3]} {day.year}",
    )  # fmt: skip
    since = (dt.datetime(day.year, day.month, day.day, tzinfo=SHANGHAI) - EPOCH) // dt.timedelta(microseconds=1)
    for text in written:
        assert [window.since for window in ask(text).windows] == [since], text


@pytest.mark.parametrize(
    "text", ["2020 years before 2026-01-01", "9999 years after 2026-01-01", "国庆前9999年", "9999年前"]
)
def test_a_count_beyond_the_calendar_is_no_error(text: str) -> None:
    assert all(0 <= window.since < window.until <= END for window in ask(text).windows)


@pytest.mark.parametrize("now", [-1, END, 2**63 - 1, -(2**63)])
def test_a_moment_outside_the_calendar_gives_no_window_and_no_error(now: int) -> None:
    assert understand("昨天什么时候", now, SHANGHAI) == Times((), "昨天什么时候", False, True)


@pytest.fixture
def other_machine() -> Iterator[None]:
    """A machine whose own zone is far from the asker's."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/Los_Angeles"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


QUERIES = ["昨晚", "上周三", "两小时前", "去年国庆", "last Tuesday", "in March", "recently", "五一之前", "84天前"]
HERE = [understand(query, NOW, SHANGHAI) for query in QUERIES]


def test_the_zone_of_the_machine_does_not_matter(other_machine: None) -> None:
    assert [understand(query, NOW, SHANGHAI) for query in QUERIES] == HERE


def test_the_lunar_calendar_is_loaded_only_for_those_who_ask() -> None:
    code = (
        "import sys, datetime as dt; from edge.recall.temporal import understand\n"
        "understand('上周三和 last Christmas', 10**15, dt.timezone.utc); assert 'borax' not in sys.modules\n"
        "understand('去年春节', 10**15, dt.timezone.utc); assert 'borax' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_very_long_question_is_no_trap() -> None:
    pieces = ("last ", "1", "一", "上", " ", "the ", "2026-", "3月", "3月到", "去年的", "from ", "春节", "in March ")
    for text in (piece * (20000 // len(piece)) for piece in pieces):
        times = ask(text)
        assert times.query


@pytest.mark.parametrize(
    "query",
    [
        "昨天", "上周三", "2026-07-01", "上周三说了什么", "我们前天都聊了些什么？", "这几天有什么事", "昨天和前天",
        "去年国庆", "What happened last Tuesday?", "what did we talk about two weeks ago", "yesterday",
    ],
)  # fmt: skip
def test_a_question_may_speak_of_nothing_but_a_time(query: str) -> None:
    assert ask(query).bare


@pytest.mark.parametrize(
    "query",
    ["", "说了什么", "昨天的猫", "去年国庆去了哪里", "端午", "上次聊了什么", "昨天几点", "What did Tim say yesterday?"],
)
def test_a_question_of_a_matter_a_feast_or_the_last_time_speaks_of_more_than_a_time(query: str) -> None:
    assert not ask(query).bare


def test_a_time_that_is_named_again_and_again_is_one_window_and_of_many_the_first_count() -> None:
    assert len(ask("国庆前" * 3000).windows) == 1
    assert len(ask("，".join(f"{n}天前" for n in range(1, 500))).windows) == 8


@pytest.mark.parametrize("query", ["上周到的快递", "下周到北京"])
def test_a_week_in_which_something_arrives_is_a_week(query: str) -> None:
    assert len(ask(query).windows) == 1
