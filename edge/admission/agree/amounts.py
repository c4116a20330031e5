"""Numbers and their units as values: 三千六百块 and ¥3600, two kilos and 2 kg. 斤 and 里 stay what they are."""

from __future__ import annotations

import re

from edge.admission.agree import numerals
from edge.admission.agree.marks import AMOUNT, NUMBER, ORDINAL, mark, outside

# Of each line the first is the name of the unit. Single Latin letters only as they are written here: 5m is no 5M.
_UNITS = """
km 公里 千米 kilometers kilometer kilometres kilometre
m 米 公尺 meters meter metres metre
cm 厘米 公分 centimeters centimeter centimetres centimetre
mm 毫米 millimeters millimeter millimetres millimetre
kg 公斤 千克 kilos kilo kilograms kilogram
g 克 grams gram
ml 毫升 milliliters milliliter millilitres millilitre
l 升 公升 liters liter litres litre
㎡ 平方米 平米 m2 m²
秒 秒钟 seconds second secs sec s
毫秒 ms milliseconds millisecond
分钟 minutes minute mins min
小时 个小时 钟头 个钟头 hours hour hrs hr h
天 days day
周 个星期 星期 个礼拜 weeks week
个月 months month
年 years year
岁 周岁 years-old year-old
° 度 ℃ °c 摄氏度 degrees-celsius degrees celsius
% percent per-cent
元 块钱 块 圆 人民币 rmb cny yuan
usd 美元 美金 dollars dollar bucks
eur 欧元 euros euro
gbp 英镑
"""
_SIGNS = {"$": "usd", "¥": "元", "￥": "元", "€": "eur", "£": "gbp"}
_NAMES = {word.replace("-", " "): line.split()[0] for line in _UNITS.strip().splitlines() for word in line.split()}
# Fahrenheit, yuan per something and a month of age are other things; a longer word is no unit.
_UNIT = "|".join(
    re.escape(word) + (r"(?![a-z])" if word[-1].isascii() and word[-1].isalpha() else "")
    for word in sorted(_NAMES, key=len, reverse=True)
)
_AFTER = re.compile(
    rf"({AMOUNT}) ?(?:个(?=(?:小时|月|星期|礼拜)))?(?P<unit>{_UNIT})(?![桌子长量轮纪级龄代面边年])", re.IGNORECASE
)
_SIGNED = re.compile(r"([$¥￥€£]) ?([0-9][0-9,]*(?:\.[0-9]+)?)")

_COMMAS = re.compile(r"(?<![\d,.])([0-9]{1,3}(?:,[0-9]{3})+)(?![\d,])")
_PER_CENT = re.compile(rf"百分之([0-9.]+|[{numerals.HAN}点]+)")
_HEIGHT = re.compile(rf"([0-9一两])米([0-9{numerals.HAN[2:12]}]{{1,2}})(?![0-9{numerals.HAN}])")
_ORDINAL = re.compile(
    rf"第([0-9]+|[{numerals.HAN}]+)|\b([0-9]+)(?:st|nd|rd|th)\b|\b({'|'.join(numerals.ORDINALS)})\b(?! ?hand)",
    re.IGNORECASE,
)
# A number that is no part of a name, a version or a longer code.
_PLAIN = re.compile(
    r"(?<![A-Za-z0-9_./-])(?<!\d[,:])([0-9]+(?:\.[0-9]+)?)(?:([万亿千百])(?![克米瓦卡兆]))?(?![\d_])(?!\.\d)"
)
_HAN = re.compile(rf"[{numerals.HAN}]+")
_PAIRS = re.compile("[俩仨]")


def amounts(text: str) -> str:
    """The text with its numbers as marks, each followed by the one name of its unit."""
    text = _COMMAS.sub(lambda m: m[1].replace(",", ""), text)
    text = _SIGNED.sub(lambda m: f"{m[2].replace(',', '')} {_SIGNS[m[1]]}", text)
    text = _PAIRS.sub(lambda m: {"俩": "两个", "仨": "三个"}[m[0]], text)
    text = _PER_CENT.sub(lambda m: f"{_digits(m[1]) or m[1]}%", text)
    text = _HEIGHT.sub(_height, text)
    text = _each(text, _ORDINAL, _ordinal)
    text = _each(text, numerals.ENGLISH, lambda m: mark(NUMBER, numerals.english(m[0])))
    text = _each(text, _PLAIN, lambda m: mark(NUMBER, numerals.scaled(m[1], m[2]) if m[2] else m[1]))
    text = _each(text, _HAN, _han)
    return _AFTER.sub(lambda m: f"{m[1]}{_NAMES.get(m['unit'], '') or _NAMES.get(m['unit'].lower(), m['unit'])}", text)


def _each(text: str, pattern: re.Pattern[str], make: object) -> str:
    parts = outside(text)
    parts[::2] = [pattern.sub(make, part) for part in parts[::2]]  # type: ignore[call-overload]  # a function of a match
    return "".join(parts)


def _digits(text: str) -> str | None:
    if text[0].isascii():
        return text
    whole, point, rest = text.partition("点")
    digits = numerals.chinese(whole)
    decimals = [numerals.chinese(char) for char in rest]
    if digits is None or None in decimals:
        return None
    return digits + ("." + "".join(map(str, decimals)) if point else "")


def _height(m: re.Match[str]) -> str:
    """一米七八 is 1.78 m."""
    rest = m[2] if m[2].isascii() else "".join(numerals.chinese(char) or "?" for char in m[2])
    return m[0] if "?" in rest else f"{numerals.chinese(m[1]) or m[1]}.{rest}米"


def _ordinal(m: re.Match[str]) -> str:
    if m[3]:
        return mark(ORDINAL, str(numerals.ORDINALS[m[3].lower()]))
    digits = m[2] or (m[1] if m[1].isascii() else numerals.chinese(m[1]))
    return m[0] if digits is None else mark(ORDINAL, digits)


def _han(m: re.Match[str]) -> str:
    digits = numerals.chinese(m[0])
    return m[0] if digits is None else mark(NUMBER, digits)
