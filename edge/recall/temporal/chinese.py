"""Dates, and their parts and places in the calendar, as they are said in Chinese."""

from __future__ import annotations

import re

from edge.recall.temporal import holidays
from edge.recall.temporal.calendar import (
    DAY,
    At,
    Bounds,
    Grain,
    Now,
    day_of_month,
    days,
    days_of_week,
    following,
    hours,
    index,
    month_day,
    months,
    phase,
    phased,
    week,
    year,
    year_months,
)
from edge.recall.temporal.numerals import chinese_number
from edge.recall.temporal.phrase import Rule, Sense, back, fixed, recurring

_MONTH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY = r"(?:[0-9]{1,2}|[一二三四五六七八九十廿卅]{1,3})"
_PHASE = r"(?:上旬|中旬|下旬|初(?![一二三四五六七八九十])|头|底|末|尾|中(?![国午秋学考山央华东]))"
# 2014年中 may be the beginning of 2014年中山市, so the middle of a year needs its 年.
_OF_YEAR = (
    r"(?:的?年(?P<phase>初(?![一二三四五六七八九十])|中|底|末|尾)|的?(?P<end>初(?![一二三四五六七八九十])|底|末))?"
)
_PHASES = dict.fromkeys(("初", "头", "上旬"), "early") | dict.fromkeys(("底", "末", "尾", "下旬"), "end")
_PHASES |= dict.fromkeys(("中", "中旬"), "mid")
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2}
_WEEKDAYS = {char: number for number, char in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
# Wide: whoever says 早上 may mean five or eleven, and a night lasts until the morning after it.
_PARTS = (
    dict.fromkeys(("清晨", "早晨", "早上", "早", "晨", "上午"), (5, 12))
    | dict.fromkeys(("下午", "午后"), (12, 18))
    | dict.fromkeys(("晚上", "晚间", "晚", "夜里", "夜晚", "夜"), (17, 28))
    | {"凌晨": (0, 6), "中午": (11, 14), "傍晚": (16, 20), "深夜": (21, 28), "半夜": (21, 30)}
)
_PART = "凌晨|清晨|早晨|早上|上午|中午|午后|下午|傍晚|晚上|晚间|夜里|夜晚|深夜|半夜"


def _steps(text: str) -> int:
    """上上 is two back, 下 one on, 这 and 本 none."""
    return text.count("下") - text.count("上")


def _same_day(m: re.Match[str], now: Now) -> Sense | None:
    """去年今天 is a day, 去年这个时候 some days around it."""
    circle = {"年": "year", "月": "month", "周": "week"}[m["circle"][-1]]
    then = back(now.today, 2 if m["circle"] == "前年" else 1, circle)
    around = {"year": 15, "month": 3, "week": 1}[circle] if m["what"][-1] in "候期" else 0
    return fixed(Bounds(then - DAY * around, then + DAY * (1 + around))) if then else None


def _span(first: At, last: At) -> At:
    def at(number: int) -> Bounds | None:
        begin, end = first(number), last(number)
        return Bounds(begin.first, end.last) if begin and end and begin.first < end.last else None

    return at


def _date_range(m: re.Match[str], now: Now) -> Sense | None:
    month, first, last = (chinese_number(m[name]) or 0 for name in ("month", "first", "last"))
    return recurring(_span(month_day(month, first), month_day(month, last)), Grain.YEAR, now)


def _date(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(month_day(chinese_number(m["month"]) or 0, chinese_number(m["day"]) or 0), Grain.YEAR, now)


def _lunar_date(m: re.Match[str], now: Now) -> Sense | None:
    name = m["month"] or m["named"]
    month = {"正": 1, "腊": 12}.get(name) or chinese_number(name)
    day = chinese_number(m["day"])
    return recurring(holidays.lunar(month, day), Grain.YEAR, now) if month and day else None


def _month_range(m: re.Match[str], now: Now) -> Sense | None:
    first, last = chinese_number(m["first"]) or 0, chinese_number(m["last"]) or 0
    return recurring(year_months(first, (last - first) % 12 + 1), Grain.YEAR, now)


def _month(m: re.Match[str], now: Now) -> Sense | None:
    at = year_months(chinese_number(m["month"]) or 0)
    return recurring(phased(at, _PHASES[m["phase"]]) if m["phase"] else at, Grain.YEAR, now)


def _lunar_month(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(holidays.lunar_month(1 if m[0][0] == "正" else 12), Grain.YEAR, now)


def _days_of_month(m: re.Match[str], now: Now) -> Sense | None:
    first, last = chinese_number(m["first"]) or 0, chinese_number(m["last"]) or 0
    return recurring(_span(day_of_month(first), day_of_month(last)), Grain.MONTH, now, explicit=False)


def _day_of_month(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(day_of_month(chinese_number(m["day"][:-1]) or 0), Grain.MONTH, now, explicit=False)


def _numbered_year(m: re.Match[str], now: Now) -> Sense | None:
    number = chinese_number(m["digits"]) or 0
    # 08年 and 98年 leave the century to the listener: the latest that has begun.
    if len(m["digits"]) == 2:
        number += 2000 if number <= now.local.year % 100 else 1900
    return _phased_year(number, m["phase"] or m["end"])


def _said_year(m: re.Match[str], now: Now) -> Sense | None:
    return _phased_year(now.local.year + _YEARS[m["said"]], m["phase"] or m["end"])


def _phased_year(number: int, which: str | None) -> Sense | None:
    return fixed(phase(year(number), _PHASES[which]) if which else year(number))


def _half(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(year_months(1 if m[0][0] in "上前" else 7, 6), Grain.YEAR, now)


def _quarter(m: re.Match[str], now: Now) -> Sense | None:
    number = chinese_number(m["number"])
    return recurring(year_months(number * 3 - 2, 3), Grain.YEAR, now) if number else None


def _this_quarter(m: re.Match[str], now: Now) -> Sense | None:
    return fixed(months((index(Grain.MONTH, now.local) // 3 + _steps(m["which"])) * 3, 3))


def _year_phase(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(phased(year, _PHASES[m["phase"]]), Grain.YEAR, now)


def _month_phase(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(phased(months, _PHASES[m["phase"] or m["month_phase"]]), Grain.MONTH, now)


def _this_month(m: re.Match[str], now: Now) -> Sense | None:
    whole = months(index(Grain.MONTH, now.local) + _steps(m["which"]))
    return fixed(phase(whole, _PHASES[m["phase"]]) if m["phase"] else whole)


def _this_week(m: re.Match[str], now: Now) -> Sense | None:
    number = index(Grain.WEEK, now.local) + _steps(m["which"])
    if not m["day"]:
        return fixed(week(number))
    at = days_of_week(5, 2) if m["day"] == "末" else days_of_week(_WEEKDAYS[m["day"]])
    return fixed(at(number))


def _weekday(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(days_of_week(_WEEKDAYS[m[0][-1]]), Grain.WEEK, now, explicit=False, over=True)


def _weekend(_: re.Match[str], now: Now) -> Sense | None:
    return recurring(days_of_week(5, 2), Grain.WEEK, now, explicit=False)


def _day(m: re.Match[str], now: Now) -> Sense | None:
    return fixed(days(now.today + DAY * _DAYS[m["day"]], 1))


def _day_part(m: re.Match[str], now: Now) -> Sense | None:
    return fixed(hours(*_PARTS[m["part"]])((now.today + DAY * _DAYS[m["day"]]).toordinal()))


def _part(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(hours(*_PARTS[m[0]]), Grain.DAY, now, alone=False)


def _season(m: re.Match[str], now: Now) -> Sense | None:
    """A season by itself is a matter (我最喜欢夏天), and a time only of a year."""
    return recurring(year_months(_SEASONS[m[0][0]], 3), Grain.YEAR, now, alone=False)


def _this_season(m: re.Match[str], now: Now) -> Sense | None:
    at, which = year_months(_SEASONS[m["season"] or m["season2"]], 3), m["which"] or m["which2"]
    if which in "今去":
        return fixed(at(now.local.year - (which == "去")))
    if which == "下":
        return fixed(following(at, Grain.YEAR, now.local))
    return recurring(at, Grain.YEAR, now, over=which == "上")


def _holiday(pattern: str, at: At) -> Rule:
    """The holiday alone only hints: whoever asks what 端午 is like does not ask for last June."""
    begins = "".join(part[0] for part in pattern.split("|"))
    return Rule(begins, pattern, lambda _, now: recurring(at, Grain.YEAR, now, explicit=False), _NOT_NUMBER, topic=True)


def _lunar_new_year(m: re.Match[str], now: Now) -> Sense | None:
    return recurring(holidays.lunar(1, chinese_number(m["day"]) or 0), Grain.YEAR, now)


_NOT_NUMBER = "0123456789.零〇一二三四五六七八九十百千两几第初每"
# What 目前天气, 以后天天, 说明天气 and 过去年轻时 would lend half a word from.
_NOT_RELATIVE = "目之以然说证聪文声透先当跟最背如过天年月周时不"
# 3号楼 and 5日游 are no days.
_NOT_CALLED = (
    "楼线门院房室公店车位桌机厅馆球选种电汽油床员字码段区坑仓窗井柜铺出口站台航塔男女游内元均报志程餐常期子历本后前%"
)
# What goes on after a day of the month; anything else makes 八号 a name (八号风球).
_AFTER_DAY = " ,.?!，。？！、的那这我你他她咱谁是有在去到至早晚上下中凌傍以之-"
_NUMBERS = "0123456789一二三四五六七八九十廿卅"
_YEAR_BEFORE = r"年(?:的?(?:1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月|[春夏秋冬年]|国庆|暑假|寒假)"

RULES: tuple[Rule, ...] = (
    Rule(
        "去前上", r"(?P<circle>去年|前年|上个?月|上周)的?(?P<what>今天|今日|这一?天|同一天|这个?时候|同期)", _same_day
    ),
    Rule(
        "农阴正腊",
        rf"(?:(?:农历|阴历)的?(?P<month>[正腊]|{_MONTH})|(?P<named>[正腊]))月初?(?P<day>{_DAY})[日号]?",
        _lunar_date,
    ),
    Rule("大正年", r"(?:大年|正月|年)初(?P<day>[一二三四五六七八九十])", _lunar_new_year, "今去前明中少多"),
    Rule(
        _NUMBERS,
        rf"(?P<month>{_MONTH})月(?P<first>{_DAY})[日号]?[-~到至](?P<last>{_DAY})[日号]",
        _date_range,
        _NOT_NUMBER,
    ),
    Rule(_NUMBERS, rf"(?P<month>{_DAY})月份?的?(?P<day>{_DAY})[日号]", _date, _NOT_NUMBER),
    Rule(_NUMBERS, r"(?P<month>1[0-2]|0?[1-9])月(?P<day>[0-9]{1,2})(?![0-9%年月个天:：.])", _date, _NOT_NUMBER),
    *(_holiday(pattern, at) for pattern, at in holidays.CHINESE.items()),
    Rule(
        _NUMBERS,
        rf"(?P<first>{_MONTH})月?[-~到至](?P<last>{_MONTH})月份?(?![0-9一二三四五六七八九十])",
        _month_range,
        _NOT_NUMBER,
    ),
    Rule(
        _NUMBERS,
        rf"(?P<month>{_MONTH})月(?![天花饼兔半零〇一二三四五六七八九十0-9]|怀胎|革命)份?(?:的?(?P<phase>{_PHASE}))?",
        _month,
        _NOT_NUMBER,
    ),
    Rule("正腊", r"[正腊]月", _lunar_month, "反公"),
    Rule(
        _NUMBERS,
        rf"(?P<first>{_DAY})[日号]?[-~到至](?P<last>{_DAY})[日号](?![{_NOT_CALLED}])",
        _days_of_month,
        _NOT_NUMBER,
    ),
    Rule(
        _NUMBERS,
        rf"(?P<day>[0-9]{{1,2}}[日号]|{_DAY}号)(?=$|[{_AFTER_DAY}])",
        _day_of_month,
        _NOT_NUMBER,
    ),
    Rule(
        _NUMBERS,
        rf"(?P<digits>(?:19|20)[0-9]{{2}}(?=年)|[一二][零〇一二三四五六七八九]{{3}}(?=年)|[0789][0-9](?=年)"
        rf"|[0-9]{{2}}(?={_YEAR_BEFORE}))年{_OF_YEAR}(?![级代])",
        _numbered_year,
        _NOT_NUMBER,
    ),
    Rule(
        "大前去今本明后",
        rf"(?P<said>大前|[前去今本明后])年(?![轻纪龄迈幼少级]){_OF_YEAR}",
        _said_year,
        _NOT_RELATIVE,
    ),
    Rule("上下前后", r"[上下前后]半年", _half),
    Rule("第一二三四1234", r"第?(?P<number>[一二三四1-4])季度", _quarter),
    Rule("上这本下", r"(?P<which>上|这|本|下)一?个?季度", _this_quarter),
    Rule(
        "年",
        r"年(?P<phase>[初中底末尾])(?![一二三四五六七八九十国学午秋])",
        _year_phase,
        _NOT_NUMBER + "成青少老往历多许年",
    ),
    Rule(
        "上这本下",
        rf"(?P<which>上{{1,3}}|这|本|下{{1,2}})一?个?月(?:的?月?(?P<phase>{_PHASE}))?(?![亮饼经票球薪])",
        _this_month,
        "天晚早楼线网路马日",
    ),
    Rule(
        "上中下月",
        r"(?P<phase>[上中下]旬)|月(?P<month_phase>[初底末中])(?![国午秋学考])",
        _month_phase,
        _NOT_NUMBER + "个",
    ),
    Rule(
        "上这本下",
        r"(?P<which>上{1,3}|这|本|下{1,2})一?个?(?:周|星期|礼拜)"
        r"(?:的?(?:周|星期|礼拜)?(?P<day>[一二三四五六日天末])|(?![围边期转岁刊折密]))",
        _this_week,
        "网路晚早线楼身",
    ),
    Rule("周星礼", r"周[一二三四五六日]|(?:星期|礼拜)[一二三四五六日天]", _weekday, _NOT_NUMBER + "上下这本个半多整逢"),
    Rule("周", r"周末(?!愉快|快乐)", _weekend, "每个"),
    Rule(
        "大昨今明前后", r"(?P<day>大前|大后|[昨今明前后])(?:天(?!性|形成|养成)|日(?!头条|[后子]))", _day, _NOT_RELATIVE
    ),
    Rule("昨今明前", r"(?P<day>[昨今明前])(?P<part>[晚夜早晨])[上里间]?(?![期年安])", _day_part, _NOT_RELATIVE),
    Rule("凌清早上中午下傍晚夜深半", _PART + r"|(?<=[日号天])(?:早|晚(?![饭餐会安点年]))", _part),
    Rule("春夏秋冬", r"[春夏秋冬][天季]|(?<=年)[春夏秋冬]", _season),
    Rule(
        "今去上这下",
        r"(?P<which>[今去])(?P<season>[春夏秋冬])|(?P<which2>[上这下])个?(?P<season2>[春夏秋冬])[天季]",
        _this_season,
    ),
)
