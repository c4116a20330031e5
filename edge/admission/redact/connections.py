"""Passwords in the addresses, options and headers that programs connect with."""

from __future__ import annotations

import re

from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span
from edge.admission.redact.randomness import looks_random, varied
from edge.admission.redact.tokens import Finder, continued
from edge.admission.redact.values import stands_in

_URL = re.compile(r"://(?P<user>[^\s/:@\"'<>]{0,100}):(?P<value>(?!\d+/)[^\s\"'<>，。]{1,200})@(?=[\w\[{$.-])")
_SHELL = {
    "sshpass": re.compile(r"sshpass\s+-p\s?(?P<quote>[\"']?)(?P<value>[^\s\"']{3,100})"),
    "mysql": re.compile(r"mysql\w*\s[^\n|;]{0,120}?\s-p(?P<quote>[\"']?)(?P<value>[^\s\"']{3,100})"),
    "curl": re.compile(r"curl\s[^\n]{0,400}?(?:-u|--user)[\s=]?[\"']?[\w.@+-]{1,64}:(?P<value>[^\s\"']{3,100})"),
    "identified by": re.compile(r"(?i)identified\s+by\s+[\"'](?P<value>[^\"'\n]{3,100})[\"']"),
    "requirepass": re.compile(r"requirepass\s+[\"']?(?P<value>[^\s\"']{3,100})"),
}
_AUTHORIZATION = re.compile(
    r"[\"'`]?\s?[:=：]\s?[\"'`]?(?P<scheme>Basic|Bearer|Token|Digest|ApiKey|Negotiate)[ \t\n]{1,3}"
    r"(?P<value>[\w\-.~+/:]{6,}={0,2})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)bearer[ \t]{1,2}(?P<value>[\w\-.~+/]{16,}={0,2})")


def finders() -> dict[str, Finder]:
    """By the lower-case words that the text is searched for."""
    return dict.fromkeys(_SHELL, _shell) | {"://": _url, "authorization": _authorization, "bearer ": _bearer}


def _url(view: View, start: int, _: int) -> Span | None:
    """The password of `scheme://user:password@host`; one with an unescaped @ or / goes up to the last @."""
    match = _URL.match(view.text, start)
    if match is None or stands_in(match["value"]):
        return None
    return Span(*match.span("value"), "credential")


def _shell(view: View, start: int, end: int) -> Span | None:
    match = _SHELL[view.low[start:end]].match(view.text, start)
    if match is None or stands_in(match["value"]):
        return None
    return Span(*match.span("value"), "credential")


def _authorization(view: View, _: int, end: int) -> Span | None:
    match = _AUTHORIZATION.match(view.text, end)
    if match is None or stands_in(match["value"]) or not varied(match["value"]):
        return None
    kind = "credential" if match["scheme"].lower() in ("basic", "digest") else "token"
    return Span(match.start("value"), continued(view.text, match.end(), match["value"]), kind)


def _bearer(view: View, start: int, _: int) -> Span | None:
    match = _BEARER.match(view.text, start)
    if match is None or not looks_random(match["value"], 16):
        return None
    return Span(match.start("value"), continued(view.text, match.end(), match["value"]), "token")
