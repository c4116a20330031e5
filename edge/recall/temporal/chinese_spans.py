"""Stretches counted back from now, and vague times, as they are said in Chinese."""

from __future__ import annotations

import re

from edge.recall.temporal.calendar import DAY, Bounds, Now
from edge.recall.temporal.numerals import chinese_quantity
from edge.recall.temporal.phrase import Rule, Sense, ago, fixed, last_time, past

_QUANTITY = r"(?:[0-9]{1,5}|十几|几十|好几|半|几|数|[零〇一二两三四五六七八九十百千]{1,7})"
_UNIT = (
    r"(?:个半(?:月|小时|钟头|星期|礼拜)|年(?![级代])|个月|个?星期|个?礼拜|周(?![围边岁])|天|日|个?小时|个?钟头|分钟)"
)


def unit(text: str) -> str:
    """The unit's English name, as in phrase.UNITS."""
    for char, name in (("年", "year"), ("月", "month"), ("时", "hour"), ("钟头", "hour"), ("分", "minute")):
        if char in text:
            return name
    return "day" if text in ("天", "日") else "week"


def _ago(m: re.Match[str], now: Now) -> Sense | None:
    quantity = chinese_quantity(m["count"])
    if quantity is None:
        return None
    low, high = quantity
    if m["half"] or "半" in m["unit"]:
        low, high = low + 0.5, high + 0.5
    # 二十多天 is twenty to thirty, 两年多 two to three.
    high += 9 if m["tens"] else 1 if m["more"] else 0
    return ago(low, high, unit(m["unit"]), now)


def _past(m: re.Match[str], now: Now) -> Sense | None:
    quantity = chinese_quantity(m["count"])
    if quantity is None:
        return None
    # Nobody counts in 这两天, 前几天, 前两周.
    vague = quantity[0] != quantity[1] or m["word"] in ("前", "头", "上") or (m["word"] == "这" and m["count"] == "两")
    half = 0.5 if "半" in m["unit"] else 0
    return past(quantity[1] + half, unit(m["unit"]), now, explicit=not vague)


def _within(m: re.Match[str], now: Now) -> Sense | None:
    """三天内 may be the next three as well."""
    quantity = chinese_quantity(m["count"])
    half = 0.5 if "半" in m["unit"] else 0
    return past(quantity[1] + half, unit(m["unit"]), now, explicit=False) if quantity else None


def _these_years(_: re.Match[str], now: Now) -> Sense | None:
    return past(5, "year", now, explicit=False)


def _these_days(_: re.Match[str], now: Now) -> Sense | None:
    return past(10, "day", now, explicit=False)


def _lately(m: re.Match[str], now: Now) -> Sense | None:
    # 离我最近的地铁站 is near, not new.
    if "离" in m.string[max(0, m.start() - 6) : m.start()]:
        return None
    return past(30, "day", now, explicit=False)


def _not_long_ago(_: re.Match[str], now: Now) -> Sense | None:
    return past(60, "day", now, explicit=False)


def _just_now(_: re.Match[str], now: Now) -> Sense | None:
    return past(2, "hour", now, explicit=False)


def _a_while_ago(_: re.Match[str], now: Now) -> Sense | None:
    """前阵子: neither these days nor last year."""
    return fixed(Bounds(now.today - DAY * 120, now.today - DAY * 3), explicit=False)


_NOT_NUMBER = "0123456789.零〇一二三四五六七八九十百千两几第初每"

_NUMBERS = "0123456789零〇一二两三四五六七八九十百千几好半数"

RULES: tuple[Rule, ...] = (
    Rule(
        "最上",
        r"最近的?(?:这?一)(?:次|回)|上一?[次回](?![序要品性等])|最后一[次回]|最新(?!鲜)",
        last_time,
        "早晚线楼网以路身马车",
    ),
    Rule(
        _NUMBERS,
        rf"(?P<count>(?!(?:19|20)[0-9]{{2}}年){_QUANTITY})(?P<tens>多)?(?P<unit>{_UNIT})(?P<half>半)?(?P<more>多)?(?:之|以)?前(?![后面台])",
        _ago,
        _NOT_NUMBER,
    ),
    Rule(
        "过最近这头前上",
        rf"(?P<word>过去|最近|近|这|头|[前上](?![一半]))(?:(?<=[去近这])的)?(?P<count>(?!(?:19|20)[0-9]{{2}}){_QUANTITY})(?P<unit>{_UNIT})"
        r"(?:之内|以内|以来|期间|[里内来中间])?",
        _past,
        "目之以附靠接从",
    ),
    Rule(
        _NUMBERS, rf"(?P<count>{_QUANTITY})(?P<unit>{_UNIT})(?:之内|以内|以来|内(?![部容存心]))", _within, _NOT_NUMBER
    ),
    Rule("近这", r"近年来?|[这近]些年", _these_years, "附靠接将"),
    Rule("这前近", r"[这前近]些[天日]子?", _these_days),
    Rule("最近这", r"最近(?!邻)|近来|近期|近日|这一?(?:阵子|段时间|段日子|阵儿?)", _lately, "附靠接"),
    Rule("不前", r"不久前|前不久|不久之前", _not_long_ago),
    Rule("刚方", r"刚才|刚刚(?!好)|方才", _just_now),
    Rule("前", r"前一?(?:阵子|段时间|段日子|阵儿?|些日子|些时候)", _a_while_ago, "目之以"),
)
