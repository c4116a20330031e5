"""Private keys: PEM and OpenSSH blocks, PGP, PuTTY, XML and seed phrases, whole or cut off.

A block goes from its BEGIN to its END with all that is between. Without an END it goes as far as its lines look like
base64; without a BEGIN, from the first such line before the END. A base64 text without either goes only when it
begins as the DER of a private key does (a SEQUENCE that opens with INTEGER 0 or 1) or as OpenSSH's magic: certificates,
images and archives are wrapped base64 too, and stay. Prose about keys stays: a block needs base64 in it.
"""

from __future__ import annotations

import re

from edge.admission.redact.edges import opens
from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span
from edge.admission.redact.tokens import Finder

_DASH = "[-\u2010-\u2015\u2212\uff0d]"
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?"
_BEGIN = re.compile(rf"{_DASH}{{2,8}}\s?BEGIN {_NAME}\s?{_DASH}{{2,8}}", re.IGNORECASE)
_END = re.compile(rf"{_DASH}{{2,8}}\s?END {_NAME}\s?(?:{_DASH}{{2,8}})?", re.IGNORECASE)
_EDGE = re.compile(rf"(?P<end>{_END.pattern})|{_BEGIN.pattern}", re.IGNORECASE)
# Between two runs of base64: line ends, real or escaped, quotation marks of mails and of source code.
_JOIN = r"(?:\\+[nrt]|[\s>\"'`,|\\#*]|[+](?=\s))*"
_HEADER = rf"(?:(?:Proc-Type|DEK-Info|Comment|Version|Subject|Charset|Hash|x-[\w-]+)[ \t]*:[^\n\\]{{0,200}}{_JOIN})*"
# A line of a key, or the short last one with its padding or checksum.
# The last line is short; a word there is no part of the key.
_LAST = r"(?:[A-Za-z0-9+/]*={1,2}|(?:(?<=\n)|(?<=> ))(?=[A-Za-z]*[0-9+/])[A-Za-z0-9+/]{4,15}(?=[ \t]*(?:\r?\n|$)))"
_RUNS = rf"(?:[A-Za-z0-9+/]{{16,}}{_JOIN})*{_LAST}?(?:{_JOIN}=[A-Za-z0-9+/]{{4}})?"
_BODY = re.compile(rf"{_JOIN}{_HEADER}{_RUNS}")
_INSIDE = re.compile(
    rf"{_JOIN}{_HEADER}(?:[A-Za-z0-9+/]{{16,}}={{0,2}}{_JOIN})*(?:[A-Za-z0-9+/]{{1,15}}={{0,2}})?{_JOIN}"
    r"(?:=[A-Za-z0-9+/]{4})?\s*"
)
_LONG_RUN = re.compile("[A-Za-z0-9+/]{16,}")
_SHORT_LINE = re.compile(r"(?:\\+[nrt]|[\s>\"'`,|\\#*])*=?[A-Za-z0-9+/]{1,76}={0,2}(?:\\+[nrt]|[\s>\"'`,|\\#*])*")
_LINE = re.compile(r"(?:\\+[nrt]|[\s>\"'`,|\\#*])*[A-Za-z0-9+/]{16,}={0,2}(?:\\+[nrt]|[\s>\"'`,|\\#*])*")
# How far an END is looked for, in characters: RSA of 16,384 bits takes 13,000.
_LONGEST = 64 * 1024

# PKCS #1, PKCS #8 and SEC 1 in DER, as base64: 30 len 02 01 00|01; certificates go on with 30 instead.
_DER = re.compile(
    r"(?:MII[A-K][A-Za-z0-9+/]{2}IBA|MII[A-K][A-Za-z0-9+/]{4,6}BgkqhkiG9w0BBQ0|MI[GH][A-Za-z0-9+/]AgE[AB]|"
    r"M[A-H][A-Za-z0-9+/]CAQ[AE])[A-Za-z0-9+/]{20,}"
)
_OPENSSH = re.compile(r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{16,}")
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-\d[^\n]*(?:[\s\S]{0,65536}?Private-(?:MAC|Hash):[ \t]*[0-9a-fA-F]+|"
    r"(?:\s*\n[\w-]+:[^\n]*|\s*\n[A-Za-z0-9+/=]{4,})*)"
)
_XML = re.compile(r"<RSAKeyValue>(?:[A-Za-z0-9+/=\s]|</?[A-Z]{1,8}>){1,16384}</RSAKeyValue>", re.IGNORECASE)
_JWK = re.compile(r'"(?:d|p|q|dp|dq|qi)"\s*:\s*"([A-Za-z0-9_-]{20,})"')
_WORD_LIST = re.compile(
    r"[^a-zA-Z]{0,12}(?:(?:is|are|was)[:\s]+)?[\"'`]?((?:(?:\d{1,2}[.)、]\s*)?[a-z]{3,8}[\s,，、]+){11,23}[a-z]{3,8})(?![a-z])"
)


def finders() -> dict[str, Finder]:
    """By the lower-case words that the text is searched for."""
    return {
        "private key": _block,
        "putty-user-key-file-": _whole(_PUTTY),
        "<rsakeyvalue>": _whole(_XML, needs="<d>"),
        "mii": _bare(_DER),
        "mig": _bare(_DER),
        "mih": _bare(_DER),
        "mc4caq": _bare(_DER),
        "me4caq": _bare(_DER),
        "mhccaq": _bare(_DER),
        "mhqcaq": _bare(_DER),
        "b3blbnnzac1rzxktdje": _bare(_OPENSSH),
        '"kty"': _jwk,
        "助记词": _phrase,
        "助記詞": _phrase,
        "seed phrase": _phrase,
        "recovery phrase": _phrase,
        "mnemonic": _phrase,
    }


def open_block(text: str) -> bool:
    """Whether the text ends inside a private key, so that the next turn may be the rest."""
    last = None
    for found in _BEGIN.finditer(text):
        last = found
    if last is None:
        head = text.lstrip()
        return bool(_DER.match(head) or _OPENSSH.match(head)) and _covers(text, len(text) - len(head))
    return not _END.search(text, last.end()) and _covers(text, last.end())


def goes_on(text: str) -> tuple[int, bool] | None:
    """For a turn after an open one: where the key's part ends, and whether it was closed; None if it is none."""
    close = _END.search(text)
    if close:
        return (close.end(), True) if _covers(text[: close.start()], 0) else None
    return (len(text), False) if text.strip() and _covers(text, 0) else None


def _covers(text: str, start: int) -> bool:
    """Whether all from `start` on may be the inside of a block."""
    return _INSIDE.fullmatch(text, start) is not None


def _block(view: View, start: int, end: int) -> Span | None:
    text = view.text
    around = max(0, start - 60)
    for begin in _BEGIN.finditer(text, around, end + 20):
        if begin.start() <= start < begin.end():
            return _from_begin(text, begin)
    for close in _END.finditer(text, around, end + 20):
        if close.start() <= start < close.end():
            first = _back(text, close.start())
            return Span(first, close.end(), "private_key") if first < close.start() else None
    return None


def _from_begin(text: str, begin: re.Match[str]) -> Span | None:
    # Looked for nearby first, so that a page of BEGIN lines is not searched to its end from each.
    if not _LONG_RUN.search(text, begin.end(), begin.end() + 800):
        return None
    edge = _EDGE.search(text, begin.end(), begin.end() + _LONGEST)
    if edge and edge["end"]:
        between = text[begin.end() : edge.start()]
        material = sum(len(run) for run in _LONG_RUN.findall(between))
        return Span(begin.start(), edge.end(), "private_key") if 5 * material > len(between) else None
    body = _BODY.match(text, begin.end(), edge.start() if edge else len(text))
    assert body is not None  # every part of it may be empty
    if not _LONG_RUN.search(text, begin.end(), body.end()):
        return None
    return Span(begin.start(), begin.end() + len(body[0].rstrip(" \t\r\n>\"'`,|\\#*")), "private_key")


def _back(text: str, end: int) -> int:
    """Where the lines of base64 before `end` begin; the last of them may be short."""
    first = end
    form = _SHORT_LINE
    while first:
        line = text.rfind("\n", 0, first - 1) + 1
        if not form.fullmatch(text, line, first) and not (form := _LINE).fullmatch(text, line, first):
            break
        first = line
        # A checksum (=abcd) and a short line may follow each other.
        form = _SHORT_LINE if text[line : line + 1] == "=" else _LINE
    return first


def _bare(form: re.Pattern[str]) -> Finder:
    def find(view: View, start: int, _: int) -> Span | None:
        text = view.text
        if not opens(text, start) or not form.match(text, start):
            return None
        body = _BODY.match(text, start)
        assert body is not None  # every part of it may be empty
        return Span(start, start + len(body[0].rstrip(" \t\r\n>\"'`,|\\#*")), "private_key")

    return find


def _whole(form: re.Pattern[str], needs: str = "") -> Finder:
    def find(view: View, start: int, _: int) -> Span | None:
        match = form.match(view.text, start)
        return Span(*match.span(), "private_key") if match and needs in match[0].lower() else None

    return find


def _jwk(view: View, start: int, end: int) -> Span | None:
    """The exponents of a JSON Web Key (RFC 7517); its public half stays."""
    first, last = max(0, start - 4000), end + 4000
    left = view.text.rfind("{", first, start)
    right = view.text.find("}", end, last)
    if left < 0 or right < 0:
        return None
    found = [match.span(1) for match in _JWK.finditer(view.text, left, right)]
    return Span(found[0][0], found[-1][1], "private_key") if found else None


def _phrase(view: View, _: int, end: int) -> Span | None:
    match = _WORD_LIST.match(view.text, end)
    return Span(*match.span(1), "private_key") if match else None
