"""A text as it is compared: one way to write a character, a quotation, a contraction; codes as they are."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

# Takes what is to be left as it is, and gives what stands for it.
Keep = Callable[[str], str]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe0f\ufeff]"
)
_HAN = r"\u3400-\u9fff"
# A space beside a Han character separates nothing that is not separate without it.
_LOOSE = re.compile(rf"(?<=[{_HAN}。、“”]) +| +(?=[{_HAN}。、“”])")
# A dash at the end is a smile, and before a number it means "about".
_SWUNG = re.compile(r"[~]+(?=$|[\s,。!])")
_QUOTED = re.compile(r"[“「『《\"]([^”」』》\"]{1,200})[”」』》\"]|`([^`]{1,200})`|(?<![\w])'([^']{1,200})'(?!\w)")
# Words in which a capital, a digit or a mark carries meaning.
_CODES = (
    # Calls, addresses, paths, options.
    r"\b\w+\(\)",
    r"[a-z][a-z0-9+.-]*://[^\s，。；）]+",
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    r"(?<![\w])(?:~|\.{1,2})?/[\w./~-]+",
    r"(?<![\w-])--?[A-Za-z][\w-]*",
    # user_id, v2.3.1, A-1037, 12-24-36, 64G, userName, app.toml; MB is no Mb.
    r"[A-Za-z]+_\w+",
    r"\b[A-Za-z]+[0-9][\w.-]*",
    r"\b[0-9]+(?:[.-][0-9]+){2,}\b",
    r"\b[0-9]+-[0-9]+\b",
    r"\b[0-9]{1,3}(?:[A-Z]\w*|[a-z]\w*[0-9]\w*)\b",
    r"\b[A-Za-z]+-[0-9]\w*(?:-\w+)*",
    r"\b[A-Za-z]*[a-z][A-Z][A-Za-z]*\b",
    r"\b\w+(?:\.[A-Za-z]\w*)+\b",
    r"\b[KMGTP]i?[Bb]\b",
)
_CODE = re.compile("|".join(_CODES), re.ASCII)
# Of which everybody writes the capitals as he likes.
_BRAND_LIST = """
wifi iphone ipad macbook macos ios airpods github gitlab youtube postgresql mysql mongodb sqlite javascript typescript
vscode openai chatgpt deepseek linkedin paypal ebay wechat tiktok whatsapp powerpoint onenote latex numpy pytorch
tensorflow graphql nextjs fastapi
"""
_BRANDS = frozenset(_BRAND_LIST.split())
# Capitals that as small letters would be a common word.
_INITIAL_LIST = "IT US OR IN ME AM IS AS WHO NO GO MAY ALL SO DO BE HE OK ON AT AN UP"
_INITIALS = frozenset(_INITIAL_LIST.split())
_CONTRACTIONS = (
    (re.compile(r"\bcan't\b|\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bshan't\b", re.IGNORECASE), "shall not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"'m\b", re.IGNORECASE), " am"),
    (re.compile(r"'re\b", re.IGNORECASE), " are"),
    (re.compile(r"'ve\b", re.IGNORECASE), " have"),
    (re.compile(r"'ll\b", re.IGNORECASE), " will"),
    (re.compile(r"'d (?=like|love|prefer|rather)", re.IGNORECASE), " would "),
    (re.compile(r"\blet's\b", re.IGNORECASE), "let us"),
    (re.compile(r"\b(s?he|it|that|there|here|what|who|where)'s got\b", re.IGNORECASE), r"\1 has"),
    (re.compile(r"\b(s?he|it|that|there|here|what|who|where)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"'s (?=(?:on|at|in|under|behind|beside|not|always|called|named|now)\b)", re.IGNORECASE), " is "),
    (re.compile(r"\b(name|number|password|birthday|address|color|colour)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\bgonna\b", re.IGNORECASE), "going to"),
    (re.compile(r"\bwanna\b", re.IGNORECASE), "want to"),
)


def fold(text: str, keep: Keep) -> str:
    """NFKC, simplified characters, nothing unseen; of a quotation what `keep` puts in its place."""
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'").replace("‘", "'")
    if not text.isascii():
        text = str(_converter().convert(text))
    text = _SWUNG.sub("", " ".join(text.split()))
    text = _LOOSE.sub("", text)
    text = _QUOTED.sub(lambda m: keep(next(filter(None, m.groups()))), text)
    for pattern, spelled in _CONTRACTIONS:
        text = pattern.sub(spelled, text)
    return text


def codes(text: str, keep: Keep) -> str:
    """The text outside of marks with what `keep` puts in the place of names that need their capitals and marks."""

    def code(m: re.Match[str]) -> str:
        word = m[0].rstrip(".-")
        return m[0] if word.lower() in _BRANDS else keep(word) + m[0][len(word) :]

    return _CODE.sub(code, text)


def lower(word: str) -> str:
    return word if word in _INITIALS else word.casefold()


@functools.cache
def _converter() -> Any:
    import opencc  # here, so that importing the room costs nothing: 12 ms and 5 MB

    return opencc.OpenCC("t2s")
