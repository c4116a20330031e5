"""Numbers in words, as numbers: 三千六 and 3600, sixty-four and 64."""

from __future__ import annotations

import re

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10_000, "亿": 100_000_000}

HAN = "零〇一二两三四五六七八九十百千万亿"

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_ENGLISH = {word: value for value, word in enumerate(_SMALL.split())}
_TENS_LIST = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS_EN = _TENS_LIST.split()
_ENGLISH |= {word: 10 * value for value, word in enumerate(_TENS_EN, 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINAL_LIST = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = _ORDINAL_LIST.split()
ORDINALS = {word: value for value, word in enumerate(_ORDINALS, 1)} | {"twentieth": 20, "thirtieth": 30}

_UNITS = "|".join(sorted(_SMALL.split()[1:10], key=len, reverse=True))
_BELOW_100 = (
    rf"(?:(?:{'|'.join(_TENS_EN)})(?:[ -](?:{_UNITS}))?|{'|'.join(sorted(_SMALL.split(), key=len, reverse=True))})"
)
_BELOW_1000 = rf"(?:(?:{_BELOW_100}|an?) hundred(?:(?: and)? {_BELOW_100})?|{_BELOW_100})"
_SCALE = "thousand|million|billion"
# "two hundred and fifty", "twenty-one", "a thousand"; not the "a" of "a dog", and not "two and three" as one.
ENGLISH = re.compile(
    rf"\b(?:{_BELOW_1000}|an?(?= (?:{_SCALE})\b))(?: (?:{_SCALE})\b(?:(?: and)? {_BELOW_1000}\b)?)*(?![\w])",
    re.IGNORECASE | re.ASCII,
)


def chinese(text: str) -> str | None:
    """The digits of a Chinese numeral; None for what is none, or means roughly (三五, 二三十).

    Digit by digit where it is said so (二〇二六), and the last unit may be left out (三千六: 3600).
    """
    if all(char in _DIGITS for char in text):
        if len(text) == 1 or len(text) > 2 or "零" in text or "〇" in text:
            return "".join(str(_DIGITS[char]) for char in text)
        return None
    total = section = 0
    digit: int | None = None
    unit = 0
    for char in text:
        if char in _DIGITS:
            if digit is not None and digit != 0:
                return None
            digit = _DIGITS[char]
        elif char in _TENS:
            if digit is None and (section or char != "十"):
                return None
            unit = _TENS[char]
            section += (1 if digit is None else digit) * unit
            digit = None
        else:
            value = section + (digit or 0)
            if not value:
                return None
            unit = _BIG[char]
            total = (total + value) * unit if unit > total > 0 else total + value * unit
            section, digit = 0, None
    if digit is not None:
        # 三千六 is 3600, but 三千零六 is 3006 and 十六 is 16.
        section += digit * (unit // 10 if unit >= 100 and text[-2] in "百千万亿" else 1)
    return str(total + section)


def english(text: str) -> str:
    """The digits of English number words."""
    total = part = 0
    for word in re.split(r"[ -]+", text.lower()):
        if word in _ENGLISH:
            part += _ENGLISH[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in _SCALES:
            total += (part or 1) * _SCALES[word]
            part = 0
        elif word in ("a", "an"):
            part = 1
    return str(total + part)


def scaled(digits: str, unit: str) -> str:
    """1.5 and 万 are 15000; exact."""
    whole, _, rest = digits.partition(".")
    zeros = len(str({**_TENS, **_BIG}[unit])) - 1
    if len(rest) > zeros:
        return f"{digits}{unit}"
    return str(int(whole + rest.ljust(zeros, "0")))
