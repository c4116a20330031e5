"""Which of the running models a text goes to: by the language it is written in. Pure.

A language takes part in a text when it is half of it at least; or a fifth of it, and more than a name. Counted in
words: a letter of Chinese, Japanese or Korean is two thirds of one, and a Latin word is one when it reads as a word,
all small or with a capital first. So neither do the identifiers in a Chinese sentence make it English (`getUserName`,
`a_b`, `PDF`, `x86`), nor does a Chinese name in an English text make it Chinese. A text of one language alone is of
that language, be it one letter.

A text in both goes to both: that costs a second vector, and a wrong guess would cost finding it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

# A word of Chinese has 1.5 characters on average.
_WORD = 2 / 3
_FIFTH, _HALF = 0.2, 0.5
# Fewer are a name or a term: 欧阳娜娜, "docker compose".
_LETTERS, _WORDS = 5, 3

# UTF-8 tells scripts by a letter's first byte: E3 to E9 are those of kana and of nearly all of Han, but for the
# punctuation at E3 80. Counting bytes takes a fifth of the time that a regular expression takes.
_CJK_BYTES = bytes(range(0xE3, 0xEA))
_CJK_PUNCTUATION = b"\xe3\x80"
# The rest: Korean, rare and compatibility Han, half-width kana.
_OTHER_CJK = re.compile("[\u1100-\u11ff\uac00-\ud7a3\uf900-\ufaff\uff66-\uffdc\U00020000-\U000323af]")
_LATIN = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\uff21-\uff3a\uff41-\uff5a]")
_ASCII_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NO_LETTERS = bytes(set(range(256)) - set(_ASCII_LETTERS))
# What ends a word, "?" also for all that is not ASCII; an apostrophe is part of one. All else (digits, _, /, a dot
# inside) makes it no word.
_ENDS = b' \t\r\n,;:!?()[]{}<>"'
_SPACED = bytes(0x20 if byte in _ENDS else byte for byte in range(256))


class ModelLanguage(Protocol):
    """A model, and the language it is for: "zh", "en" or "any"; types.ModelInfo is one."""

    @property
    def id(self) -> str: ...

    @property
    def language(self) -> str: ...


def route(text: str, models: Sequence[ModelLanguage]) -> tuple[str, ...]:
    """The ids of the models for this text, in the order of `models`, never empty.

    Each language of the text goes to its models; one that has none, to those for any. What has no language (digits,
    emoji, other scripts), or none that a model is for, goes to the first model.
    """
    if len(models) == 1:
        return (models[0].id,)
    wanted: set[str] = set()
    for language in languages(text):
        own = [model.id for model in models if model.language == language]
        wanted.update(own or [model.id for model in models if model.language == "any"])
    return tuple(model.id for model in models if model.id in wanted) or (models[0].id,)


def languages(text: str) -> tuple[str, ...]:
    """ "zh", "en", both or none."""
    plain = text.encode("ascii", "replace")
    latin = bool(plain.translate(None, _NO_LETTERS))
    if text.isascii():
        return ("en",) if latin else ()
    raw = text.encode("utf-8", "surrogatepass")
    letters = len(raw) - len(raw.translate(None, _CJK_BYTES)) - raw.count(_CJK_PUNCTUATION)
    if not letters:
        letters = len(_OTHER_CJK.findall(text))
        latin = latin or bool(_LATIN.search(text))
    if not letters or not latin:
        return ("zh",) if letters else ("en",) if latin else ()
    words = _words(plain)
    chinese = letters * _WORD / (letters * _WORD + words)
    found = []
    if chinese >= _HALF or (chinese >= _FIFTH and letters >= _LETTERS):
        found.append("zh")
    if 1 - chinese >= _HALF or (1 - chinese >= _FIFTH and words >= _WORDS):
        found.append("en")
    return tuple(found)


def _words(plain: bytes) -> int:
    words = 0
    for word in plain.translate(_SPACED, b"'").split():
        bare = word if word.isalpha() else word.rstrip(b".")
        if len(bare) > 1 and bare.isalpha() and bare[1:].islower():
            words += 1
    return words
