"""Text folded without moving a character, and numbers in words."""

from __future__ import annotations

_TRADITIONAL = "週個號點後間從節國慶聖誕這過時兩陽幾禮現剛當曆歷臘淩裡內開陰陣長鐘勞動來麼樓線門廳館選種電機員會"
_SIMPLIFIED = "周个号点后间从节国庆圣诞这过时两阳几礼现刚当历历腊凌里内开阴阵长钟劳动来么楼线门厅馆选种电机员会"


def _folding() -> dict[int, str]:
    table = {0xFF01 + n: chr(0x21 + n) for n in range(94)}
    table.update(zip(map(ord, _TRADITIONAL), _SIMPLIFIED, strict=True))
    table.update(dict.fromkeys(map(ord, "\t\n\r\v\f\u00a0\u2002\u2003\u2009\u3000"), " "))
    table.update(dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u301c\uff5e"), "-"))
    table.update(dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"))
    table[ord("○")] = "〇"
    table.update({ord(c): c.lower() for c in map(chr, range(65, 91))})
    table.update({point: char.lower() for point, char in table.items() if len(char) == 1})
    return table


_FOLDING = _folding()


def fold(text: str) -> str:
    """Lower case, half width, simplified where a time is said with it; each character stays at its place."""
    return text.translate(_FOLDING)


_DIGIT = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TEN = {"十": 10, "百": 100, "千": 1000}
# 廿 and 卅 are 二十 and 三十.
_SHORT = str.maketrans({"廿": "二十", "卅": "三十"})


def chinese_number(text: str) -> int | None:
    """八十四, 两, 二〇二六, 42: the number; None for what is none."""
    text = text.translate(_SHORT)
    if text.isascii():
        return int(text) if text.isdigit() else None
    if all(char in _DIGIT for char in text):
        # 二〇二六 is read digit by digit, and needs a digit for each place.
        return int("".join(str(_DIGIT[char]) for char in text))
    total, digit = 0, 0
    for char in text:
        if char in _TEN:
            total += (digit or 1) * _TEN[char]
            digit = 0
        elif char in _DIGIT:
            digit = _DIGIT[char]
        else:
            return None
    return total + digit


def chinese_quantity(text: str) -> tuple[float, float] | None:
    """What somebody may mean: (84, 84) of 八十四, (2, 3) of 两三, (10, 19) of 十几, (0.5, 0.5) of 半."""
    if text == "半":
        return 0.5, 0.5
    if text in ("几", "好几", "数"):
        return 2, 9
    if text == "十几":
        return 10, 19
    if text == "几十":
        return 20, 99
    if len(text) == 2 and all(char in _DIGIT for char in text) and _DIGIT[text[0]] < _DIGIT[text[1]]:
        return _DIGIT[text[0]], _DIGIT[text[1]]
    number = chinese_number(text)
    return None if number is None else (number, number)


_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_ENGLISH = {word: value for value, word in enumerate(_WORDS.split(), 1)}
_ENGLISH |= {"a": 1, "an": 1, "the": 1, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
ENGLISH_NUMBER = "|".join(sorted((word for word in _ENGLISH if word != "the"), key=len, reverse=True))


def english_quantity(text: str) -> tuple[float, float] | None:
    """What somebody may mean: (2, 2) of two, (2, 3) of a couple of, (3, 9) of several, (0.5, 0.5) of half a."""
    text = " ".join(text.split())
    if text.isascii() and text.isdigit():
        return int(text), int(text)
    if text.startswith("half"):
        return 0.5, 0.5
    if "couple" in text:
        return 2, 3
    if "few" in text or "several" in text:
        return 2, 9
    number = _ENGLISH.get(text)
    return None if number is None else (number, number)
