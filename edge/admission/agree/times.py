"""Dates, weekdays and times of day as values, however they are written: 下午三点 and 15:00, May 3rd and 5月3日."""

from __future__ import annotations

import re
from collections.abc import Callable

from edge.admission.agree import numerals
from edge.admission.agree.marks import CLOCK, CLOSE, DATE, FREQUENCY, OPEN, TIME, WEEKDAY, mark, outside

_N = rf"[0-9]{{1,2}}|[{numerals.HAN}]{{1,3}}"
_MONTH_LIST = "january february march april may june july august september october november december"
_MONTHS = _MONTH_LIST.split()
_MONTH = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' if len(name) > 3 else name for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# 早上 to 上午 leave the hour as it is, the others belong to the second half of the day.
_MORNING, _NOON, _EVENING, _NIGHT = (
    "凌晨|清晨|早晨|早上|上午|早",
    "中午",
    "下午|午后|傍晚|晚上|晚间|晚",
    "夜里|夜晚|深夜|半夜",
)
_PART = rf"(?P<part>(?:{_MORNING}|{_NOON}|{_EVENING}|{_NIGHT}))"
_UNSURE = "?"


def _number(text: str) -> int | None:
    if text.isascii():
        return int(text)
    digits = numerals.chinese(text)
    return None if digits is None else int(digits)


def _clock(hour: int | None, minute: int | None, part: str, *, sure: bool = False) -> str | None:
    """A mark such as 15:30; with a question mark where it may be morning or afternoon."""
    if hour is None or minute is None or not (0 <= hour <= 24 and 0 <= minute < 60):
        return None
    if part and re.fullmatch(_MORNING, part):
        hour, sure = (0 if part == "凌晨" and hour == 12 else hour), True
    elif part and (part in _NIGHT.split("|") or part in ("晚上", "晚")) and (hour < 5 or hour == 12):
        # Two o'clock at night is the next day's; twelve at night ends this one.
        hour, sure = (24 if hour == 12 else hour), True
    elif part:
        # 中午十一点 is before noon, and 晚上十一点 is not.
        hour, sure = (hour + 12 if hour < (11 if part == _NOON else 12) else hour), True
    sure = sure or hour > 12 or hour == 0
    return mark(CLOCK, f"{'' if sure else _UNSURE}{hour}:{minute:02}")


def _colon(m: re.Match[str]) -> str | None:
    part = m["part"] or ""
    # 07:30 is written by whoever counts to 24.
    return _clock(int(m["hour"]), int(m["minute"]), part, sure=len(m["hour"]) == 2 and m["hour"] < "10")


def _chinese_clock(m: re.Match[str]) -> str | None:
    past = m["past"] or ""
    minute = {"": 0, "半": 30, "一刻": 15, "三刻": 45}.get(past)
    if minute is None:
        minute = _number(past.removesuffix("分").removeprefix("零").removeprefix("过"))
    return _clock(_number(m["hour"]), minute, m["part"] or "")


def _english_clock(m: re.Match[str]) -> str | None:
    half = m["half"].lower()[0]
    hour = int(m["hour"])
    if not 1 <= hour <= 12:
        return None
    return _clock(hour % 12 + (12 if half == "p" else 0), int(m["minute"] or 0), "", sure=True)


def _part_clock(m: re.Match[str]) -> str | None:
    later = m["when"].lower() != "morning"
    hour = int(m["hour"])
    return _clock(hour + 12 if later and hour < 12 else hour, int(m["minute"] or 0), "", sure=True)


def _date(year: str | None, month: int | None, day: int | None) -> str | None:
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return mark(DATE, f"{year or _UNSURE}-{month or _UNSURE}-{day or _UNSURE}")


def _chinese_date(m: re.Match[str]) -> str | None:
    year = m["year"]
    if year and not year.isascii():
        year = numerals.chinese(year)
        if year is None or len(year) != 4:
            return None
    month, day = (None if m[name] is None else _number(m[name]) for name in ("month", "day"))
    if (m["month"] and month is None) or (m["day"] and day is None):
        return None
    return _date(year, month, day)


def _english_date(m: re.Match[str]) -> str | None:
    groups = m.groupdict()
    month = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(m["month"].lower()[:3]))
    return _date(groups.get("year"), month, int(groups["day"]) if groups.get("day") else None)


def _weekday(m: re.Match[str]) -> str:
    number = "一二三四五六日".find(m["day"].replace("天", "日")) + 1 or int(m["day"])
    which = {"本": "这", None: ""}.get(m["which"], m["which"])
    if which and which.startswith("每"):
        return mark(FREQUENCY, f"每周{number}")
    return mark(WEEKDAY, f"{which}{number}")


def _english_weekday(m: re.Match[str]) -> str:
    number = next(at for at, name in enumerate(_DAYS, 1) if name.startswith(m["day"].lower()[:3]))
    which = (m["which"] or "").strip().lower()
    if which in ("every", "each") or m["plural"]:
        return mark(FREQUENCY, f"每周{number}")
    return mark(WEEKDAY, f"{({'next': '下', 'last': '上', 'this': '这'}).get(which, '')}{number}")


def _zh_day(m: re.Match[str]) -> str:
    plain = m[0].replace("个", "").replace("本", "这").replace("星期", "周").replace("礼拜", "周")
    return mark(DATE, plain)


def _often(value: str) -> Callable[[re.Match[str]], str]:
    return lambda _m: mark(FREQUENCY, value)


Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], "str | None"]]


def _rule(pattern: str, make: Callable[[re.Match[str]], str | None], flags: int = re.IGNORECASE) -> Rule:
    return re.compile(pattern, flags), make


_ENGLISH_DAYS = {"today": "今天", "tomorrow": "明天", "yesterday": "昨天"}
_PARTS = {"早晨": "早上", "午后": "下午", "晚间": "晚上"}
# 中秋 is 中秋节, but 情人 is no 情人节.
_FEASTS = {f"{name}节": name for name in ("中秋", "端午", "国庆", "清明", "圣诞", "元宵", "重阳")}
# In this order; where a maker says None the text stays as it is.
_RULES: tuple[Rule, ...] = (
    _rule(r"(?<![\d.-])(?P<year>[0-9]{4})([-/.])(?P<month>[0-9]{1,2})\2(?P<day>[0-9]{1,2})(?![\d.-])",
          lambda m: _date(m["year"], int(m["month"]), int(m["day"]))),
    _rule(rf"(?:(?P<year>[0-9]{{4}}|[{numerals.HAN}]{{4}})年)(?:(?P<month>{_N})月份?)(?:(?P<day>{_N})(?:日|号))?",
          _chinese_date),
    _rule(rf"(?P<year>(?!))?(?<![\d{numerals.HAN}个])(?P<month>{_N})月(?P<day>{_N})(?:日|号)", _chinese_date),
    _rule(rf"\b{_MONTH} {_DAY}(?:,? ?{_YEAR})?\b(?!:)", _english_date),
    _rule(rf"\b(?:the )?{_DAY} (?:of )?{_MONTH}(?:,? ?{_YEAR})?\b", _english_date),
    _rule(rf"\b{_MONTH},? ?{_YEAR}\b", _english_date),
    _rule(rf"\bin {_MONTH}(?![\w.])(?! ?[0-9])", _english_date),
    _rule(rf"(?P<year>(?:19|20)[0-9]{{2}}"
          rf"|[{numerals.HAN}]{{4}})年(?P<month>(?!))?(?P<day>(?!))?(?![级前后代度底初末中])", _chinese_date),
    _rule(rf"\bin {_YEAR}\b(?![-/.,:]?\d)", lambda m: _date(m["year"], None, None)),
    _rule(r"(?P<which>上上|下下|上|下|这|本|每)?个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天]"
          r"|[1-6](?![0-9.]))(?![年次])", _weekday),
    _rule(rf"\b(?P<which>every |each |next |last |this )?(?P<day>{'|'.join(_DAYS)})(?P<plural>s)?\b", _english_weekday),
    _rule(r"\b(?P<which>every |each |next |last |this )?(?P<day>Mon|Tues?|Wed|Thu(?:rs?)?|Fri)(?P<plural>(?!))?\b\.?",
          _english_weekday, 0),
    _rule(rf"(?:{_PART}的?)?(?<![\d:])(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})"
          r"(?! ?[ap]\.?m\b)(?! in the (?:mor|aft|eve))(?![\d:])", _colon),
    _rule(rf"(?:{_PART}的?)?(?<![\d.{numerals.HAN}])(?P<hour>{_N})(?:点钟|点整|点)(?P<past>半|一刻|三刻"
          rf"|过?零?(?:{_N})分|[零{numerals.HAN[2:]}]{{2,3}}(?!分)|[0-9]{{2}}(?!分))?",
          _chinese_clock),
    _rule(r"(?<![\d:.])(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))? ?(?P<half>[ap])\.?m\b\.?", _english_clock),
    _rule(r"(?<![\d:.])(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?: o'clock)? in the (?P<when>morning"
          r"|afternoon|evening)\b",
          _part_clock),
    _rule(r"(?<![\d:.])(?P<hour>[0-9]{1,2}) o'clock\b", lambda m: _clock(int(m["hour"]), 0, "")),
    _rule(r"\b(?:12 )?noon\b|正午", lambda _m: _clock(12, 0, "", sure=True)),
    _rule(r"(?:大?[前后]|[今明昨])天|[今明后去前]年|(?:上上|下下|[上下这本])(?:个?月|个?(?:周|星期|礼拜)末?"
          r"|个?季度|学期)", _zh_day),
    _rule(r"双休日|周末|星期六日", lambda _m: mark(WEEKDAY, "周末")),
    _rule(r"工作日", lambda _m: mark(WEEKDAY, "工作日")),
    _rule(r"春节|中秋节?|端午节?|国庆节?|元旦|清明节?|圣诞节?|除夕|元宵节?|重阳节?|七夕|情人节|暑假|寒假"
          r"|[春夏秋冬][天季]",
          lambda m: mark(DATE, _FEASTS.get(m[0], m[0].replace("季", "天")))),
    _rule(r"[早午晚][饭餐](?:之|以)?[前后]|饭[前后]|睡觉?前|起床后|[上下]班[前后]",
          lambda m: mark(CLOCK, re.sub("[之以觉]", "", m[0]).replace("餐", "饭"))),
    _rule(r"凌晨|早上|早晨|清晨|上午|中午|下午|午后|傍晚|晚上|晚间|夜里|夜晚|深夜|半夜",
          lambda m: mark(CLOCK, _PARTS.get(m[0], m[0]))),
    _rule(r"\b(?:today|tomorrow|yesterday)\b", lambda m: mark(DATE, _ENGLISH_DAYS[m[0].lower()])),
    _rule(r"\b(?:this|next|last) (?:week|month|year|weekend|quarter|spring|summer|fall|autumn|winter|morning|night"
          r"|evening|afternoon)\b"
          r"|\btonight\b", lambda m: mark(DATE, m[0].lower())),
    _rule(r"\b(?:before|after|during) (?:breakfast|lunch|dinner|bed|work|school|meals?|class)\b",
          lambda m: mark(CLOCK, m[0].lower())),
    # Beside a day that is a mark by now: Friday morning.
    _rule(r"^ (?:morning|afternoon|evening|night)\b", lambda m: mark(CLOCK, m[0].strip().lower())),
    _rule(r"\bin the (?:morning|afternoon|evening)\b|\bat night\b", lambda m: mark(CLOCK, m[0].lower().split()[-1])),
    _rule(r"\b(?:on |at )?(?:the )?weekends?\b", lambda _m: mark(WEEKDAY, "周末")),
    _rule(r"\b(?:on )?weekdays\b", lambda _m: mark(WEEKDAY, "工作日")),
    _rule(r"每天|天天|每日|"
          # Before how much: 一天喝两升.
          r"(?<![过第上下用了这那半哪有])一天(?=[\u4e00-\u9fff]{0,3}[0-9一两二三四五六七八九十])"
          r"(?![^,。]*[了过])"
          r"|\b(?:every|each|an?|per) day\b|\bdaily\b", _often("每天")),
    _rule(r"\b(?:every|each) (morning|afternoon|evening|night)\b", lambda m: mark(FREQUENCY, f"每天{m[1].lower()}")),
    _rule(r"每个?(?:周|星期|礼拜)(?![末边围岁])"
          r"|(?<![过第上下用了这那半])一个?(?:周|星期|礼拜)(?=[^,。了过]{0,6}[0-9一两二三四五六七]次)"
          r"|\b(?:every|each|per|(?<!for )(?<!in )an?) week\b|\bweekly\b", _often("每周")),
    _rule(r"每个?月|\b(?:every|each|per|(?<!for )(?<!in )an?) month\b|\bmonthly\b", _often("每月")),
    _rule(r"每年|\b(?:every|each|per|(?<!for )(?<!in )an?) year\b|\byearly\b|\bannually\b", _often("每年")),
    _rule(r"\bhourly\b|\b(?:every|each|an|per) hour\b|每个?小时", _often("每小时")),
)  # fmt: skip
# 正式一点 and 快点 name no hour.
_A_BIT = re.compile(
    r"(?<=[说会懂学吃喝有])一点点?(?=[\u4e00-\u9fff])(?![钟半整])"
    r"|(?<=[式短快慢细单早晚好多少大小高低松软轻淡甜厚薄长])一?(?:点|些)(?=$|[,。!了的])"
)
_SHORT = re.compile("([今明昨])([早晚])(?:上|间|晨)?(?!报)")
# On Friday is Friday, 在周五 and 是周五 are 周五; but 周五前, by Friday and every other Friday are other times.
_BEFORE = re.compile(rf"(?:\b(?:on|at|in) |(?<![现改定])在|于)(?={OPEN}T)", re.IGNORECASE)
# 每周二和周四 is 每周二和每周四.
_ALSO_OFTEN = re.compile(
    rf"({OPEN}{FREQUENCY} 每周)([1-7]{CLOSE}(?: and |, ?|、|和|跟|与)){OPEN}{WEEKDAY} ([1-7]{CLOSE})", re.IGNORECASE
)
_NEXT_TO = re.compile(rf"((?:{TIME}[ ,，的]{{0,2}}){{2,}})")


def times(text: str) -> str:
    """The text with its times as marks, adjacent ones in one order, and no preposition before them."""
    text = _A_BIT.sub("一些", text)
    text = _SHORT.sub(lambda m: f"{m[1]}天{m[2]}上", text)
    for pattern, make in _RULES:
        parts = outside(text)
        # What is read stays read.
        parts[::2] = [_put(pattern, make, part) for part in parts[::2]]
        text = "".join(parts)
    text = _ALSO_OFTEN.sub(r"\1\2\1\3", text)
    return _NEXT_TO.sub(_in_order, _BEFORE.sub("", text))


def _put(pattern: re.Pattern[str], make: Callable[[re.Match[str]], str | None], text: str) -> str:
    return pattern.sub(lambda m: m[0] if (made := make(m)) is None else made, text)


def _in_order(m: re.Match[str]) -> str:
    kinds = (FREQUENCY, DATE, WEEKDAY, CLOCK)
    found = re.findall(TIME, m[0])
    # Of two of one kind the first stays first: 周一周三 is a list.
    return "".join(sorted(found, key=lambda one: kinds.index(one[1:3]))) + (" " if m[0].endswith(" ") else "")
