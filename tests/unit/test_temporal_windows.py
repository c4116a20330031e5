"""What people say about time, and the days they mean by it."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from edge.recall.temporal import Window, understand

SHANGHAI = ZoneInfo("Asia/Shanghai")
# A Thursday.
NOW = dt.datetime(2026, 7, 23, 15, 0, tzinfo=SHANGHAI)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
HINT = "hint"


def micros(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def ask(query: str, now: dt.datetime = NOW) -> tuple[Window, ...]:
    assert now.tzinfo
    return understand(query, micros(now), now.tzinfo).windows


def local(moment: int, zone: dt.tzinfo = SHANGHAI) -> str:
    """2026-07-23, with the hour where it is not midnight."""
    when = (EPOCH + dt.timedelta(microseconds=moment)).astimezone(zone)
    return f"{when:%Y-%m-%d}" if (when.hour, when.minute) == (0, 0) else f"{when:%Y-%m-%d %H:%M}"


ALWAYS, TODAY_NOW = "1970-01-01 08:00", "2026-07-23 15:00"

# (said, since, until), and HINT where the window is not explicit. Asked on Thursday 2026-07-23 at 15:00 in Shanghai.
SAID = [
    # Days.
    ("今天", "2026-07-23", "2026-07-24"),
    ("昨天", "2026-07-22", "2026-07-23"),
    ("前天", "2026-07-21", "2026-07-22"),
    ("大前天", "2026-07-20", "2026-07-21"),
    ("昨日", "2026-07-22", "2026-07-23"),
    ("明天", "2026-07-24", "2026-07-25", HINT),
    ("大后天", "2026-07-26", "2026-07-27", HINT),
    ("today", "2026-07-23", "2026-07-24"),
    ("yesterday", "2026-07-22", "2026-07-23"),
    ("the day before yesterday", "2026-07-21", "2026-07-22"),
    ("tomorrow", "2026-07-24", "2026-07-25", HINT),
    # Parts of days.
    ("昨晚", "2026-07-22 17:00", "2026-07-23 04:00"),
    ("昨天晚上", "2026-07-22 17:00", "2026-07-23 04:00"),
    ("今早", "2026-07-23 05:00", "2026-07-23 12:00"),
    ("今天凌晨", "2026-07-23", "2026-07-23 06:00"),
    ("前天下午", "2026-07-21 12:00", "2026-07-21 18:00"),
    ("上周三晚上", "2026-07-15 17:00", "2026-07-16 04:00"),
    ("4月30日上午", "2026-04-30 05:00", "2026-04-30 12:00"),
    ("last night", "2026-07-22 17:00", "2026-07-23 04:00"),
    ("this morning", "2026-07-23 05:00", "2026-07-23 12:00"),
    ("yesterday afternoon", "2026-07-22 12:00", "2026-07-22 18:00"),
    ("Tuesday evening", "2026-07-21 17:00", "2026-07-22 04:00", HINT),
    ("the morning of May 3", "2026-05-03 05:00", "2026-05-03 12:00"),
    # Days of the week; weeks begin on Monday.
    ("上周三", "2026-07-15", "2026-07-16"),
    ("上上周三", "2026-07-08", "2026-07-09"),
    ("上个星期三", "2026-07-15", "2026-07-16"),
    ("上礼拜天", "2026-07-19", "2026-07-20"),
    ("上週三", "2026-07-15", "2026-07-16"),
    ("这周二", "2026-07-21", "2026-07-22"),
    ("本周一", "2026-07-20", "2026-07-21"),
    ("下周三", "2026-07-29", "2026-07-30", HINT),
    ("周三", "2026-07-22", "2026-07-23", HINT),
    ("星期四", "2026-07-16", "2026-07-17", HINT),
    ("last Tuesday", "2026-07-21", "2026-07-22"),
    ("last Thursday", "2026-07-16", "2026-07-17"),
    ("on Tuesday", "2026-07-21", "2026-07-22"),
    ("Tuesday of last week", "2026-07-14", "2026-07-15"),
    ("on Fri", "2026-07-17", "2026-07-18"),
    ("next Friday", "2026-07-24", "2026-07-25", HINT),
    # Weeks and weekends.
    ("上周", "2026-07-13", "2026-07-20"),
    ("上上周", "2026-07-06", "2026-07-13"),
    ("这周", "2026-07-20", "2026-07-27"),
    ("上周末", "2026-07-18", "2026-07-20"),
    ("上个周末", "2026-07-18", "2026-07-20"),
    ("周末", "2026-07-18", "2026-07-20", HINT),
    ("last week", "2026-07-13", "2026-07-20"),
    ("the week before last", "2026-07-06", "2026-07-13"),
    ("last weekend", "2026-07-18", "2026-07-20"),
    ("two weekends ago", "2026-07-11", "2026-07-13"),
    ("over the weekend", "2026-07-18", "2026-07-20", HINT),
    # Months.
    ("上个月", "2026-06-01", "2026-07-01"),
    ("上上个月", "2026-05-01", "2026-06-01"),
    ("这个月", "2026-07-01", "2026-08-01"),
    ("上月底", "2026-06-21", "2026-07-01"),
    ("月初", "2026-07-01", "2026-07-11"),
    ("三月", "2026-03-01", "2026-04-01"),
    ("七月份", "2026-07-01", "2026-08-01"),
    ("十一月", "2025-11-01", "2025-12-01"),
    ("三月底", "2026-03-21", "2026-04-01"),
    ("3月初", "2026-03-01", "2026-03-11"),
    ("5月中旬", "2026-05-11", "2026-05-21"),
    ("六月下旬", "2026-06-21", "2026-07-01"),
    ("去年三月", "2025-03-01", "2025-04-01"),
    ("2024年3月", "2024-03-01", "2024-04-01"),
    ("２０２４年３月", "2024-03-01", "2024-04-01"),
    ("二〇二四年三月", "2024-03-01", "2024-04-01"),
    ("2024-03", "2024-03-01", "2024-04-01"),
    ("last month", "2026-06-01", "2026-07-01"),
    ("in March", "2026-03-01", "2026-04-01"),
    ("in December", "2025-12-01", "2026-01-01"),
    ("last March", "2026-03-01", "2026-04-01"),
    ("March of last year", "2025-03-01", "2025-04-01"),
    ("March 2024", "2024-03-01", "2024-04-01"),
    ("Sept. 2024", "2024-09-01", "2024-10-01"),
    ("early May", "2026-05-01", "2026-05-11"),
    ("mid-June 2025", "2025-06-11", "2025-06-21"),
    ("the end of last month", "2026-06-21", "2026-07-01"),
    # Dates.
    ("4月30日", "2026-04-30", "2026-05-01"),
    ("四月三十号", "2026-04-30", "2026-05-01"),
    ("4月30", "2026-04-30", "2026-05-01"),
    ("12月31日", "2025-12-31", "2026-01-01"),
    ("7月23日", "2026-07-23", "2026-07-24"),
    ("去年4月30日", "2025-04-30", "2025-05-01"),
    ("2025年4月30日", "2025-04-30", "2025-05-01"),
    ("25年4月30日", "2025-04-30", "2025-05-01"),
    ("2月29日", "2024-02-29", "2024-03-01"),
    ("上个月30号", "2026-06-30", "2026-07-01"),
    ("15号", "2026-07-15", "2026-07-16", HINT),
    ("31号", "2026-05-31", "2026-06-01", HINT),
    ("4月30日星期四", "2026-04-30", "2026-05-01"),
    ("2026-04-30", "2026-04-30", "2026-05-01"),
    ("2026/4/30", "2026-04-30", "2026-05-01"),
    ("2026.04.30", "2026-04-30", "2026-05-01"),
    ("4/30/2026", "2026-04-30", "2026-05-01"),
    ("30/4/2026", "2026-04-30", "2026-05-01"),
    ("4/30", "2026-04-30", "2026-05-01"),
    ("on 4/3", "2026-04-03", "2026-04-04", HINT),
    ("April 30th", "2026-04-30", "2026-05-01"),
    ("30 April", "2026-04-30", "2026-05-01"),
    ("the 30th of April", "2026-04-30", "2026-05-01"),
    ("Apr 30 2025", "2025-04-30", "2025-05-01"),
    ("April 30, 2025", "2025-04-30", "2025-05-01"),
    ("8th December, 2023", "2023-12-08", "2023-12-09"),
    ("December 1,2023", "2023-12-01", "2023-12-02"),
    ("on the 15th", "2026-07-15", "2026-07-16", HINT),
    ("the 30th of last month", "2026-06-30", "2026-07-01"),
    # Counted back.
    ("84天前", "2026-04-30", "2026-05-01"),
    ("八十四天前", "2026-04-30", "2026-05-01"),
    ("两天之前", "2026-07-21", "2026-07-22"),
    ("两周前", "2026-07-06", "2026-07-13"),
    ("三个星期以前", "2026-06-29", "2026-07-06"),
    ("三个月前", "2026-04-08", "2026-05-09"),
    ("半个月前", "2026-07-01", "2026-07-16"),
    ("一个半月前", "2026-06-01", "2026-06-16"),
    ("一年前", "2025-01-21", "2026-01-23"),
    ("两小时前", "2026-07-23 12:30", "2026-07-23 13:30"),
    ("十分钟前", "2026-07-23 14:45", "2026-07-23 14:55"),
    ("几天前", "2026-07-14", "2026-07-22", HINT),
    ("十几天前", "2026-07-04", "2026-07-14", HINT),
    ("两三天前", "2026-07-20", "2026-07-22", HINT),
    ("二十多天前", "2026-06-24", "2026-07-04", HINT),
    ("3 days ago", "2026-07-20", "2026-07-21"),
    ("84 days ago", "2026-04-30", "2026-05-01"),
    ("two weeks ago", "2026-07-06", "2026-07-13"),
    ("a month ago", "2026-06-08", "2026-07-09"),
    ("a year and a half ago", "2024-10-24", "2025-04-25"),
    ("a couple of days ago", "2026-07-20", "2026-07-22", HINT),
    ("a few weeks ago", "2026-05-21", "2026-07-10", HINT),
    ("a week or two ago", "2026-07-09", "2026-07-17", HINT),
    # Stretches up to now.
    ("过去两周", "2026-07-09", TODAY_NOW),
    ("最近三天", "2026-07-20", TODAY_NOW),
    ("近半年", "2026-01-23", TODAY_NOW),
    ("过去的一个月里", "2026-06-23", TODAY_NOW),
    ("这几天", "2026-07-14", TODAY_NOW, HINT),
    ("前两天", "2026-07-21", TODAY_NOW, HINT),
    ("三天内", "2026-07-20", TODAY_NOW, HINT),
    ("the past two weeks", "2026-07-09", TODAY_NOW),
    ("in the last 3 days", "2026-07-20", TODAY_NOW),
    ("the past month", "2026-06-23", TODAY_NOW),
    ("last few days", "2026-07-14", TODAY_NOW, HINT),
    # Years, their halves, quarters, seasons.
    ("去年", "2025-01-01", "2026-01-01"),
    ("前年", "2024-01-01", "2025-01-01"),
    ("今年", "2026-01-01", "2027-01-01"),
    ("2023年", "2023-01-01", "2024-01-01"),
    ("08年", "2008-01-01", "2009-01-01"),
    ("去年年底", "2025-11-01", "2026-01-01"),
    ("今年年初", "2026-01-01", "2026-04-01"),
    ("年中", "2026-05-01", "2026-09-01"),
    ("去年上半年", "2025-01-01", "2025-07-01"),
    ("下半年", "2026-07-01", "2027-01-01"),
    ("第一季度", "2026-01-01", "2026-04-01"),
    ("上个季度", "2026-04-01", "2026-07-01"),
    ("2025年Q1", "2025-01-01", "2025-04-01"),
    ("Q2", "2026-04-01", "2026-07-01", HINT),
    ("今年春天", "2026-03-01", "2026-06-01"),
    ("去年夏天", "2025-06-01", "2025-09-01"),
    ("去年冬天", "2025-12-01", "2026-03-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("in 2023", "2023-01-01", "2024-01-01"),
    ("early 2024", "2024-01-01", "2024-04-01"),
    ("last summer", "2025-06-01", "2025-09-01"),
    ("summer 2024", "2024-06-01", "2024-09-01"),
    ("the first half of 2024", "2024-01-01", "2024-07-01"),
    ("last quarter", "2026-04-01", "2026-07-01"),
    ("去年今天", "2025-07-23", "2025-07-24"),
    ("this time last year", "2025-07-08", "2025-08-08"),
    # Holidays; without a year they only hint.
    ("去年国庆", "2025-10-01", "2025-10-08"),
    ("去年的國慶節", "2025-10-01", "2025-10-08"),
    ("国庆", "2025-10-01", "2025-10-08", HINT),
    ("今年春节", "2026-02-16", "2026-03-04"),
    ("去年除夕", "2025-01-28", "2025-01-29"),
    ("今年清明", "2026-04-04", "2026-04-07"),
    ("今年端午", "2026-06-18", "2026-06-21"),
    ("去年中秋", "2025-10-05", "2025-10-08"),
    ("2023年中秋节", "2023-09-28", "2023-10-01"),
    ("元旦", "2025-12-31", "2026-01-04", HINT),
    ("五一", "2026-05-01", "2026-05-06", HINT),
    ("大年初一", "2026-02-17", "2026-02-18"),
    ("农历八月十五", "2025-10-06", "2025-10-07"),
    ("圣诞节", "2025-12-24", "2025-12-27", HINT),
    ("last Christmas", "2025-12-24", "2025-12-27"),
    ("Christmas 2023", "2023-12-24", "2023-12-27"),
    ("Thanksgiving", "2025-11-27", "2025-12-01", HINT),
    ("Easter 2025", "2025-04-18", "2025-04-22"),
    ("last Halloween", "2025-10-31", "2025-11-01"),
    ("New Year's Eve", "2025-12-31", "2026-01-01", HINT),
    ("the Friday after Thanksgiving", "2025-11-28", "2025-11-29"),
    # From one to another.
    ("4月到6月", "2026-04-01", "2026-07-01"),
    ("4-6月", "2026-04-01", "2026-07-01"),
    ("去年三月到五月", "2025-03-01", "2025-06-01"),
    ("11月到2月", "2025-11-01", "2026-03-01"),
    ("4月3日到5日", "2026-04-03", "2026-04-06"),
    ("上周一到周三", "2026-07-13", "2026-07-16"),
    ("从去年国庆到今年春节", "2025-10-01", "2026-03-04"),
    ("2024-03-01至2024-03-05", "2024-03-01", "2024-03-06"),
    ("四月和六月之间", "2026-04-01", "2026-07-01"),
    ("from March to May", "2026-03-01", "2026-06-01"),
    ("from March to May 2023", "2023-03-01", "2023-06-01"),
    ("between August 11 and August 15 2023", "2023-08-11", "2023-08-16"),
    ("from 2020 to 2023", "2020-01-01", "2024-01-01"),
    ("between Monday and Wednesday", "2026-07-20", "2026-07-23", HINT),
    # Since, until, before, after.
    ("3月以来", "2026-03-01", TODAY_NOW),
    ("从上周三到现在", "2026-07-15", TODAY_NOW),
    ("自从去年国庆", "2025-10-01", TODAY_NOW),
    ("五一之前", ALWAYS, "2026-05-01"),
    ("2023年以前", ALWAYS, "2023-01-01"),
    ("截至上个月", ALWAYS, "2026-07-01"),
    ("春节之后", "2026-03-04", TODAY_NOW),
    ("国庆前三天", "2025-09-28", "2025-10-01"),
    ("5月1日的前一天", "2026-04-30", "2026-05-01"),
    ("since 2024-03-01", "2024-03-01", TODAY_NOW),
    ("since last Tuesday", "2026-07-21", TODAY_NOW),
    ("before May", ALWAYS, "2026-05-01"),
    ("after Christmas", "2025-12-27", TODAY_NOW),
    ("as of December 2023", ALWAYS, "2024-01-01"),
    ("the week before August 3, 2023", "2023-07-27", "2023-08-03"),
    ("two weeks before August 11, 2023", "2023-07-25", "2023-08-01"),
    ("last weekend before April 10, 2023", "2023-04-08", "2023-04-10"),
    # Vague.
    ("上次", "2025-07-23", TODAY_NOW, HINT),
    ("最近", "2026-06-23", TODAY_NOW, HINT),
    ("前阵子", "2026-03-25", "2026-07-20", HINT),
    ("刚才", "2026-07-23 13:00", TODAY_NOW, HINT),
    ("recently", "2026-06-23", TODAY_NOW, HINT),
    ("the other day", "2026-07-09", TODAY_NOW, HINT),
    ("last time", "2025-07-23", TODAY_NOW, HINT),
]


@pytest.mark.parametrize("row", SAID, ids=lambda row: row[0])
def test_an_expression_means_these_days(row: tuple[str, ...]) -> None:
    said, since, until, *hint = row
    windows = ask(said)
    assert [(local(w.since), local(w.until), w.explicit) for w in windows] == [(since, until, not hint)]


@pytest.mark.parametrize("row", SAID, ids=lambda row: row[0])
def test_an_expression_means_the_same_inside_a_sentence(row: tuple[str, ...]) -> None:
    said, since, until, *_ = row
    before, after = (
        ("请问，", "，我们说了什么？") if any("一" <= c <= "鿿" for c in said) else ("Tell me, ", ", what happened?")
    )
    windows = ask(f"{before}{said}{after}")
    assert [(local(w.since), local(w.until)) for w in windows] == [(since, until)]


NO_TIMES = [
    "三国演义好看吗", "一天到晚都在忙什么", "May I ask you something", "March on Washington was about what",
    "版本 3.5 有什么新功能", "电话是 139-1234-5678 吗", "100%", "十月怀胎", "second", "it costs 20.26 dollars",
    "24小时客服", "7x24 支持", "in case of rain", "which sunscreen do I use", "he sat down", "mon ami", "2022款的车",
    "2月30日", "2月30号下午", "13月5日", "4月31日的会", "2023-02-29", "February 30", "99/99/2020", "1000年前",
    "before 1950", "in 2150", "三号楼在哪", "坐5号线去哪", "the 30th floor", "this may be wrong", "什么时候去的",
    "哪天去的", "几月几号", "What did April say?", "june bug", "离我最近的地铁站", "我最喜欢夏天",
    "plans for the summer", "目前天气怎么样", "他说明天文学", "以后天天见", "每周三都做什么", "every Tuesday",
    "on Tuesdays", "十一点", "第三月台", "一周一次", "iPhone 15 的密码", "五一路怎么走", "周围有什么", "上周围",
    "李白的生平", "1/2 cup of sugar", "订单 20260430123456", "192.168.1.12", "his last name", "at last",
    "inspired by autumn",
    "the latter", "一次性", "早上好", "good morning", "good night", "二月兔", "五月天的歌",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_gives_no_window_and_stays_as_it_is(text: str) -> None:
    times = understand(text, micros(NOW), SHANGHAI)
    assert times.windows == ()
    assert times.query == text


@pytest.mark.parametrize(
    ("said", "windows"),
    [
        ("昨天和今天", ["2026-07-22", "2026-07-23"]),
        ("去年夏天和今年夏天", ["2025-06-01", "2026-06-01"]),
        ("last week or in March", ["2026-07-13", "2026-03-01"]),
        ("recently, as mentioned on 3 June, 2023", ["2026-06-23", "2023-06-03"]),
    ],
)
def test_two_times_are_two_windows(said: str, windows: list[str]) -> None:
    assert [local(w.since) for w in ask(said)] == windows


def at(year: int, month: int, day: int, hour: int = 12, minute: int = 0, zone: str = "Asia/Shanghai") -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("now", "said", "since", "until"),
    [
        (at(2026, 2, 28), "三月", "2025-03-01", "2025-04-01"),
        (at(2026, 2, 28), "明天", "2026-03-01", "2026-03-02"),
        (at(2024, 2, 28), "明天", "2024-02-29", "2024-03-01"),
        (at(2024, 3, 1), "昨天", "2024-02-29", "2024-03-01"),
        (at(2024, 2, 29), "一年前", "2022-08-29", "2023-08-31"),
        (at(2026, 3, 31), "一个月前", "2026-02-13", "2026-03-16"),
        (at(2026, 1, 1, 0, 5), "昨晚", "2025-12-31 17:00", "2026-01-01 04:00"),
        (at(2026, 1, 1, 0, 5), "去年", "2025-01-01", "2026-01-01"),
        (at(2026, 1, 1, 0, 5), "上个月", "2025-12-01", "2026-01-01"),
        (at(2026, 7, 20, 0, 5), "上周日", "2026-07-19", "2026-07-20"),
        (at(2026, 7, 26), "上周日", "2026-07-19", "2026-07-20"),
        (at(2026, 7, 26), "last Sunday", "2026-07-19", "2026-07-20"),
        (at(2026, 12, 31), "New Year's Eve", "2026-12-31", "2027-01-01"),
        (at(2026, 2, 10), "春节", "2025-01-28", "2025-02-13"),
        (at(2026, 1, 15), "去年冬天", "2025-12-01", "2026-03-01"),
        (at(2026, 3, 1), "三月五号下午", "2025-03-05 12:00", "2025-03-05 18:00"),
        (at(2098, 6, 1), "2月29日", "2096-02-29", "2096-03-01"),
    ],
)
def test_it_depends_on_when_it_is_asked(now: dt.datetime, said: str, since: str, until: str) -> None:
    [window] = ask(said, now)
    assert (local(window.since), local(window.until)) == (since, until)


def test_a_day_has_the_hours_that_its_zone_gives_it() -> None:
    for now, hours in ((at(2026, 3, 9, zone="America/New_York"), 23), (at(2026, 11, 2, zone="America/New_York"), 25)):
        [window] = ask("yesterday", now)
        assert window.until - window.since == hours * 3600 * 10**6


def test_hours_ago_are_hours_even_when_the_clock_was_set_back() -> None:
    # 01:30 for the second time.
    now = dt.datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York"))
    [window] = ask("2 hours ago", now)
    assert window.since < micros(now) - 2 * 3600 * 10**6 < window.until


def test_a_day_that_begins_at_one_begins_there() -> None:
    # Cairo sets its clock forward at midnight.
    now = at(2026, 4, 24, zone="Africa/Cairo")
    [window] = ask("今天", now)
    assert window.since == micros(dt.datetime(2026, 4, 23, 22, 0, tzinfo=dt.timezone.utc))


def test_the_same_moment_is_another_day_elsewhere() -> None:
    moment = at(2026, 7, 23, 0, 5)
    [here] = ask("今天", moment)
    [there] = ask("今天", moment.astimezone(ZoneInfo("America/Los_Angeles")))
    assert local(here.since) == "2026-07-23"
    assert local(there.since, ZoneInfo("America/Los_Angeles")) == "2026-07-22"


def test_a_time_to_come_never_filters() -> None:
    for said in ("明天", "下周三", "next month", "in 2050", "after 2050", "before 2050"):
        assert [w.explicit for w in ask(said)] == [False], said
