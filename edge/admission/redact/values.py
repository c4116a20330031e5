"""The value that follows the name of a password: where it ends, and whether it is one."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from edge.admission.redact.fold import BARRIER
from edge.admission.redact.kinds import Span

# What opens a quotation, and what closes it.
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "”": "”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "《": "》",
    "【": "】",
} | {'\\"': '\\"'}
# \n and \t of an escaped text end a value as well.
_UNQUOTED = re.compile(rf"(?:(?!\\+[nrt\"'])[^\s\"'“”‘’`<>，。；、！？）】」』《》{BARRIER}]){{1,256}}")
_SAID = re.compile(r"(?:(?!\\+[nrt\"'])[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x5f\x61-\x7e]){1,256}")
# A new assignment begins: host=…;user=…, ?a=1&b=2, {a: 1, b: 2}.
_NEXT = re.compile(r"[;&,]\s*[\"']?[A-Za-z_][\w .-]{0,30}[\"']?\s?[=:]")
_MIXED_HEAD = re.compile(r"[\u4e00-\u9fff]{1,8}(?=[\x21-\x7e]{4})")

_STAND_INS = re.compile(
    r"[*•·●xX.…\-_#?]+|<[^>]*>?|\$\{?[A-Z_][A-Z0-9_]*\}?|\$\{.*|\$\(.*|\{\{?.*|%(?:\(\w+\))?[sd]|%\w+%|\[.*|@\w+@|"
    r"(?:your|my|the|a|some|new|old|user|db|example|dummy|test)?[_\- ]?(?:password|passwd|pass|pwd|secret|token|"
    r"api[_-]?key)(?:[_\- ]?(?:here|value|placeholder|goes|field|hash))*|"
    r"null|none|nil|undefined|true|false|yes|no|n/?a|string|str|text|bytes|int|integer|number|bool|boolean|any|object|"
    r"varchar\(?\d*\)?|char\(\d+\)|required|optional|redacted|masked|hidden|encrypted|hashed|unknown|empty|tbd|todo|"
    r"omitted|"
    r"env|environ|process\.env\.?.*|os\.(?:environ|getenv).*|getpass.*|input.*|prompt.*|self\..*|this\..*|args?\..*|"
    r"config\..*|settings\..*|request\..*|req\..*|ctx\..*|data\[.*|https?://[^@]*|无|没有|未知|同上|忘了|空",
    re.IGNORECASE,
)
_CALL = re.compile(r"[A-Za-z_][\w.]*\(|[A-Za-z_]\w*\[|\(|=|>|\|")
_DOTTED = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+(?:\(\))?[,;)]?|[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+")
# Said about passwords: no password itself. So is whatever ends as adjectives and participles do.
_ABOUT = frozenset(
    """
    about above account again all also always and anything authentication available awful bad based being below
    blank box broken but case change characters clear complex complicated compromised confidential correct default
    different digits done down easy eight empty everything expired field fine first five fixed for form four free
    from generator given going gone good guessable hard hash here hers hint his how if important incorrect insecure
    invalid it just kept known later least less letters login long lost manager mandatory me memorable mine missing
    necessary needed never new no not nothing now obvious off ok okay old one only optional or ours out over page
    permanent plain plaintext policy private prompt protection public random ready recovery required reset right
    safe same saved secret secure sensitive sent set short shown simple six something soon stale still strong
    symbols temporary ten terrible text that the theirs there this three today tomorrow too twelve two under unique
    unknown very visible weak what when where which who why with without wrong yes yesterday you your yours
    """.split()  # noqa: SIM905  # a list of 200 strings is no easier to read
)
_SMALL = frozenset(
    ("the", "not", "and", "for", "with", "that", "too", "from", "your", "this", "which", "when", "must", "should")
)
_ENDINGS = re.compile(r"(?:ed|ing|ly|able|ible|ful|ness|tion|ment|ent|ant|ous|ive)$")
# Names of formats and versions that mix letters with digits.
_TECHNICAL = re.compile(
    r"(?:sha|md|aes|rsa|ed|base|utf|bcrypt|scrypt|argon|pbkdf|oauth|https?|ipv|mp|windows|win|office|python|java)"
    r"[\-_]?[0-9]{1,4}[a-z\-]{0,8}|(?:ios|android|chrome|web|version|ver|top|no|step|part|week|day|[vxhqse])"
    r"[\-_.]?[0-9]{1,4}(?:\.[0-9]+)*|[0-9]+(?:st|nd|rd|th|px|ms|[smhdkgx%]|gb|mb|kb)|"
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:am|pm)?|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9.]+",
    re.IGNORECASE,
)


# 密码是6位数, 密码2024年改过, 密码输错5次: a count, no password.
_COUNTED = re.compile(r"\s?(?:位|个|次|年|月|天|种|条|小时|分钟|秒|字符|多|块|元|号之|或以上|以上|以内)")


@dataclass(frozen=True, slots=True)
class Value:
    start: int
    end: int
    text: str
    quoted: bool

    def span(self, name: str) -> Span:
        return Span(self.start, self.end, name)


def read_value(
    text: str, start: int, *, said: bool = False, mixed: bool = False, quoted_only: bool = False
) -> Value | None:
    """The value at `start`, if it may be a secret. `said`: in a sentence, so it must not be a word like any other;
    `mixed`: Chinese characters may lead up to it (密码是生日19900101).
    """
    opening = text[start : start + 2] if text[start : start + 2] in _QUOTES else text[start : start + 1]
    if opening in _QUOTES:
        close = text.find(_QUOTES[opening], start + len(opening), start + 260)
        inside = text[start + len(opening) : close] if close > 0 else ""
        if close > 0 and "\n" not in inside and len(inside.strip()) >= 2 and BARRIER not in inside:
            return None if stands_in(inside) else Value(start + len(opening), close, inside, True)
        return None
    if quoted_only:
        return None
    match = (_SAID if said else _UNQUOTED).match(text, start)
    if match is None:
        head = _MIXED_HEAD.match(text, start) if mixed else None
        after = read_value(text, head.end(), said=True) if head else None
        return after if after and is_strong(after.text, beside=True) else None
    end = match.end()
    if (following := _NEXT.search(text, start, end + 40)) and following.start() > start:
        end = min(end, following.start())
    end = _trimmed(text, start, end)
    value = text[start:end]
    if len(value) < (4 if said else 3) or stands_in(value) or _CALL.match(value):
        return None
    good = is_strong(value) or _last_word(text, end, value) if said else _assigned_well(value)
    return Value(start, end, value, False) if good else None


def counted(text: str, value: str, end: int) -> bool:
    """Whether a value that ends at `end` is a number of something."""
    return value.replace("-", "").isdigit() and bool(_COUNTED.match(text, end))


def stands_in(value: str) -> bool:
    """Whether it only marks where a secret would be."""
    return bool(_STAND_INS.fullmatch(value.strip()))


def is_strong(value: str, *, beside: bool = False) -> bool:
    """Whether no writer uses it as a word: a digit or a symbol in it; `beside`: nothing but nearness speaks for it."""
    digits = sum(c.isdigit() for c in value)
    if digits == len(value):
        return digits >= (6 if beside else 4)
    if _TECHNICAL.fullmatch(value) or _CALL.match(value):
        return False
    symbols = sum(not c.isalnum() and c not in "-'._/" for c in value)
    letters = sum(c.isalpha() for c in value)
    if beside:
        mixed = digits > 0 or symbols > 0 or value.count("-") >= 3
        return len(value) >= 6 and letters > 0 and mixed and value[0] not in "-(/"
    return len(value) >= 4 and (digits > 0 or symbols > 0 or _humped(value) or value.count("-") >= 2)


def is_sentence(words: str) -> bool:
    """Whether a row of words speaks of a passphrase (`is used to encrypt the key`), and is none."""
    return any(word in _SMALL or _ENDINGS.search(word) for word in words.lower().replace("-", " ").split())


def _humped(value: str) -> bool:
    """xKqZtWb: capitals that no name has."""
    return sum(a.islower() and b.isupper() for a, b in itertools.pairwise(value)) >= 2


def _last_word(text: str, end: int, value: str) -> bool:
    """A plain word is only taken at the end of its clause, and if it says nothing about passwords."""
    rest = text[end : end + 1]
    if rest not in ("", ".", ",", ";", "!", "\n", "，", "。", "；", "！", ")", "\r"):
        return False
    word = value.lower()
    return value.isalpha() and value.isascii() and len(value) >= 4 and word not in _ABOUT and not _ENDINGS.search(word)


def _assigned_well(value: str) -> bool:
    if value.isascii():
        return not _DOTTED.fullmatch(value) and any(c.isalnum() for c in value) and value.lower() not in _ABOUT
    # Chinese after a colon is a remark (密码：见邮件), unless there is a password in it (密码：生日19900101).
    return sum(c.isascii() and c.isalnum() for c in value) >= 3 and any(c.isdigit() for c in value)


def _trimmed(text: str, start: int, end: int) -> int:
    """Without what closes the sentence or the code around it. A last ! stays: passwords end so more often."""
    while end > start:
        last = text[end - 1]
        if last in ".,;:?\\…" or (last in ")]}" and _unopened(text[start:end], last)):
            end -= 1
        else:
            break
    return end


def _unopened(value: str, close: str) -> bool:
    return value.count(close) > value.count({")": "(", "]": "[", "}": "{"}[close])
