"""Texts that hold one secret each: every class, in both languages, in the forms in which people paste it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from secrets_corpus import makers, phrases

WIDE = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)})
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"


@dataclass(frozen=True)
class Secret:
    """text[start:end] must go, and nothing else."""

    kind: str
    form: str
    text: str
    start: int
    end: int


def placed(kind: str, form: str, frame: str, secret: str) -> Secret:
    before, after = frame.split("{}")
    return Secret(kind, form, before + secret + after, len(before), len(before) + len(secret))


def positives(seed: int, count: int) -> Iterator[Secret]:
    r = random.Random(seed)  # noqa: S311  # repeatable texts, no secrets
    for n in range(count):
        yield (_cards, _identities, _passwords, _tokens, _opaque, _keys)[n % 6](r)


def _grouped(r: random.Random, digits: str) -> list[str]:
    if len(digits) == 15:
        return [digits[:4], digits[4:10], digits[10:]]
    if len(digits) == 14:
        return [digits[:4], digits[4:10], digits[10:]]
    if len(digits) == 19 and r.random() < 0.3:
        return [digits[:6], digits[6:]]
    return [digits[at : at + 4] for at in range(0, len(digits), 4)]


def _invisible(r: random.Random, text: str) -> str:
    at = r.randrange(1, len(text))
    return text[:at] + r.choice(ZERO_WIDTH) + text[at:]


def _dressed(r: random.Random, digits: str, groups: list[str]) -> tuple[str, str]:
    forms: dict[str, Callable[[], str]] = {
        "plain": lambda: digits,
        "spaces": lambda: " ".join(groups),
        "dashes": lambda: "-".join(groups),
        "dots": lambda: ".".join(groups) if len(groups) > 2 else digits,
        "no-break": lambda: "\u00a0".join(groups),
        "full-width": lambda: digits.translate(WIDE),
        "full-width spaces": lambda: "\u3000".join(groups).translate(WIDE),
        "invisible": lambda: _invisible(r, digits),
        "invisible and spaces": lambda: _invisible(r, " ".join(groups)),
        "en dashes": lambda: "–".join(groups),
        "two lines": lambda: " ".join(groups[:2]) + "\n" + " ".join(groups[2:]) if len(groups) > 3 else digits,
    }
    form = r.choice(list(forms))
    return form, forms[form]()


def _cards(r: random.Random) -> Secret:
    digits = makers.card(r)
    form, shown = _dressed(r, digits, _grouped(r, digits))
    return placed("bank_card", form, r.choice(phrases.CARDS), shown)


def _identities(r: random.Random) -> Secret:
    number = makers.identity(r)
    if r.random() < 0.5:
        number = number.lower()
    form, shown = _dressed(r, number, [number[:6], number[6:14], number[14:]])
    return placed("identity", form, r.choice(phrases.IDENTITIES), shown)


def _passwords(r: random.Random) -> Secret:
    secret = makers.password(r)
    form, frame = r.choice(phrases.PASSWORDS)
    if form == "basic":
        secret = base64.b64encode(f"admin:{secret}".encode()).decode()
    elif form == "url":
        secret = secret.replace("@", "%40").replace("#", "%23")
    elif form == "wide":
        secret = secret.translate(WIDE)
    elif form == "code":
        secret = str(r.randrange(1000, 999_999))
    return placed("credential", form, frame, secret)


def _tokens(r: random.Random) -> Secret:
    maker = r.choice(list(makers.TOKENS))
    token = makers.TOKENS[maker](r)
    form = r.choice(("plain",) * 6 + ("invisible", "full-width", "two lines"))
    if form == "invisible":
        token = _invisible(r, token)
    elif form == "full-width" and maker in ("github", "aws", "deepseek"):
        token = token.translate(WIDE)
    elif form == "two lines" and len(token) > 60:
        at = r.randrange(30, len(token) - 20)
        return placed("token", f"{maker}, two lines", r.choice(phrases.OWN_LINE), token[:at] + "\n" + token[at:])
    return placed("token", f"{maker}, {form}", r.choice(phrases.TOKENS), token)


def _opaque(r: random.Random) -> Secret:
    form, frame = r.choice(phrases.NAMED_KEYS)
    return placed("token", form, frame, makers.opaque(r))


def _keys(r: random.Random) -> Secret:
    if r.random() < 0.1:
        return placed("private_key", "putty", r.choice(phrases.OWN_LINE), makers.putty(r))
    key = makers.private_key(r)
    lines = key.split("\n")
    forms: dict[str, Callable[[], str]] = {
        "whole": lambda: key,
        "windows": lambda: "\r\n".join(lines),
        "quoted": lambda: "\n> ".join(lines),
        "indented": lambda: "\n    ".join(lines),
        "one line": lambda: " ".join(lines),
        "escaped": lambda: json.dumps(key)[1:-1],
        "no end": lambda: "\n".join(lines[:-1]),
        "cut off": lambda: "\n".join(lines[: max(3, len(lines) * 2 // 3)]),
        "no begin": lambda: "\n".join(line for line in lines[1:] if ":" not in line and line),
    }
    form = r.choice(list(forms))
    shown = forms[form]()
    if form == "escaped":
        return placed("private_key", form, r.choice(phrases.JSON_STRINGS), shown)
    return placed("private_key", form, r.choice(phrases.OWN_LINE), shown)
