"""What marks the block of memories in a model's context, and how a line is kept from passing for it. Pure."""

from __future__ import annotations

import re
import unicodedata

from edge.quoting import BRACKETS

# Each character of the markers' words with what is drawn like it (the letters after Unicode Technical Standard 39,
# confusables.txt, and the digits that stand for letters), in lower case and without accents.
_ALIKE = {
    "相": "",
    "关": "關関",
    "记": "記",
    "忆": "憶亿億",
    "开": "開幵",
    "始": "",
    "结": "結",
    "束": "朿柬",
    "a": "аαɑᴀꭺ4",
    "b": "вьъбβʙƅ8",
    "d": "ԁɗᴅժđꭰ",
    "e": "еєэεɛᴇҽəꭼ3",
    "g": "ɡɢցԍǥ96",
    "i": "lіӏιıɩɪꭵ1",
    "l": "iіӏιıʟłⲓ1",
    "m": "мμᴍɱ",
    "n": "пηոɴŋɳ",
    "o": "оοσᴏօøөɵჿ0",
    "r": "гʀяɾꮁ",
    "s": "ѕꜱʂ5",
    "t": "тτᴛŧꭲ7",
    "y": "уγʏүყ",
}


def _word(word: str) -> str:
    return "".join(f"[{char}{_ALIKE[char]}]" for char in word)


_WORDS = re.compile(
    f"{_word('相关记忆')}(?:{_word('开始')}|{_word('结束')})"
    f"|{_word('relatedmemor')}(?:{_word('y')}|{_word('ies')})(?:{_word('begin')}|{_word('end')})"
)
# Letters among the symbols: regional indicators, and white ones in black circles and squares.
_SYMBOLS = re.compile("[\U0001f150-\U0001f169\U0001f170-\U0001f189\U0001f1e6-\U0001f1ff]")
_SYMBOL_A = (0x1F150, 0x1F170, 0x1F1E6)
# In the place of a marker's words. A letter, so that what stands before and after cannot join to another marker.
_OMITTED = "略"


def defuse(line: str) -> str:
    """The line, unable to pass for a marker.

    Brackets of every kind become parentheses, and that alone keeps the markers out. The markers' words are left out
    besides, where they stand together in any width, case, script variant or spacing, with any accents, or in letters
    of other scripts that look the same.
    """
    line = line.translate(BRACKETS)
    # First as if symbols were nothing, then as the letters they show.
    line = _omit(line, symbols=False)
    return _omit(line, symbols=True) if _SYMBOLS.search(line) else line


def _omit(line: str, *, symbols: bool) -> str:
    skeleton: list[str] = []
    places: list[int] = []
    for place, char in enumerate(line):
        for letter in _skeletons[char] or (_symbol(char) if symbols else ""):
            skeleton.append(letter)
            places.append(place)
    parts: list[str] = []
    at = 0
    for match in _WORDS.finditer("".join(skeleton)):
        parts += line[at : places[match.start()]], _OMITTED
        at = places[match.end() - 1] + 1
    return "".join(parts) + line[at:]


def _symbol(char: str) -> str:
    if not _SYMBOLS.match(char):
        return ""
    return chr(ord("a") + ord(char) - max(first for first in _SYMBOL_A if first <= ord(char)))


class _Skeletons(dict[str, str]):
    """Of a character what remains without width, case, accents and punctuation. It fills itself."""

    def __missing__(self, char: str) -> str:
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        self[char] = result = "".join(filter(str.isalnum, plain))
        return result


_skeletons = _Skeletons()
