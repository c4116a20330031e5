"""One-time codes, PINs and the extraction codes of shared folders.

They are credentials as well: nobody will ask for them again, and some still open a door. A code is the number right
after its name; 验证码60秒后失效 and `Erlang OTP 26` are too short, or counts.
"""

from __future__ import annotations

import re

from edge.admission.redact.edges import opens
from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span
from edge.admission.redact.tokens import Finder
from edge.admission.redact.values import counted

_ZH_CODES = ("验证码", "驗證碼", "动态码", "校验码", "提取码", "pin码", "安全码")
_CODES = (
    "verification code", "one-time code", "security code", "otp", "2fa code", "pin code", "pin number", "cvv", "cvc",
)  # fmt: skip

_ZH_CODE = re.compile(r"(?:就|为|是|：|:|\s|=){0,4}[\"“「【\[]?(?P<value>[0-9]{4,8}|[0-9a-zA-Z]{4,8}(?![A-Za-z]))")
_CODE = re.compile(
    r"(?:\s(?:is|was)|\s?[:：=#])?:?\s{0,2}[\"“]?(?P<value>[0-9]{3,8}|[0-9]{3}[- ][0-9]{3})(?![0-9A-Za-z])"
)
_PIN = re.compile(r"(?:\s?(?:is|was|码|[:：=]|是|为)){0,2}\s{0,2}(?P<value>[0-9]{4,8})(?![0-9A-Za-z])")
_WHOSE = re.compile(r"(?:my|card|bank|phone|door|the)\s$", re.IGNORECASE)


def finders() -> dict[str, Finder]:
    """By the lower-case words that the text is searched for."""
    table: dict[str, Finder] = dict.fromkeys(_ZH_CODES, _zh_code)
    return table | dict.fromkeys(_CODES, _code) | {"pin": _pin}


def _zh_code(view: View, _: int, end: int) -> Span | None:
    match = _ZH_CODE.match(view.text, end)
    if match is None or not any(c.isdigit() for c in match["value"]) or counted(view.text, match["value"], match.end()):
        return None
    return Span(*match.span("value"), "credential")


def _code(view: View, start: int, end: int) -> Span | None:
    match = _CODE.match(view.text, end) if opens(view.text, start) else None
    return Span(*match.span("value"), "credential") if match else None


def _pin(view: View, start: int, end: int) -> Span | None:
    """PIN or `my pin`, then four to eight digits; a pin of a plug or of a processor is none."""
    text = view.text
    if not opens(text, start) or text[max(0, start - 1) : start] in ("_", "-"):
        return None
    if text[start:end] != "PIN" and not _WHOSE.search(text, max(0, start - 6), start):
        return None
    match = _PIN.match(text, end)
    return Span(*match.span("value"), "credential") if match else None
