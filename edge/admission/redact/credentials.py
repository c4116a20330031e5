"""Passwords and keys that only the words around them give away: 密码是…, password: …, DB_PASSWORD=…, u:p@host.

The policy, by how sure the words are:

- **Assigned** (`password: x`, `密码：x`, `--password x`, `"password": "x"`): the value goes, unless it is a type
  (`string`), a stand-in (`<your password>`, `${DB_PASSWORD}`, `****`), a call or a name in code (`user.password`).
- **Said** (`my password is x`, `密码是x`, `x is my password`): the value goes if it has a digit or a symbol in it, or
  is quoted; a plain word only when it ends the clause and says nothing about passwords (`wrong`, `required`, …).
- **Side by side** (`password x`, `密码 x`): only when it mixes letters with digits or symbols, or is six digits.
- Names of keys (`api_key`, `token`, `密钥`, …) need a value that looks random, since `token: 4096` is a number.
- A password made of Chinese words alone goes only in quotation marks: 密码是什么 and 密码是错的 are no passwords.
"""

from __future__ import annotations

import re

from edge.admission.redact.edges import opens, word
from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span
from edge.admission.redact.randomness import looks_random
from edge.admission.redact.tokens import Finder, continued
from edge.admission.redact.values import counted, is_sentence, is_strong, read_value, stands_in

# "tokens": 4096 is what most tokens of a log are.
_NUMBER = re.compile(r"[\s:：=\\\"']{1,6}[0-9]{1,9}(?![\w/+=.-])")
# What may follow the word and still be the same name: password2, passwords, PASSWORD_PROD, password (wifi), 密码本身.
_TAIL = re.compile(
    r"(?:s|[_-]?[0-9]{1,2})?(?P<more>(?:[_-]?[A-Za-z]{1,16}){0,2}(?=[\"'`\])]{0,2}\s?[:=：＝]))?"
    r"(?:\\*(?:[\"`*\]]|'(?!s\b)){1,3}|\s?[(（][^()（）\n]{0,30}[)）])?"
)
_ZH_TAIL = re.compile(r"(?:本身|为|是)?(?:[\"'”’」*\]]{1,3})?(?:\s?[(（][^()（）\n]{0,30}[)）])?")
# Names that hold something about a secret, and not the secret.
_ABOUT = re.compile(
    r"(?:hash|salt|reset|length|len|min|max|size|policy|file|path|dir|field|input|hint|manager|strength|expir|age|chang|"
    r"updat|count|error|form|label|rule|valid|regex|pattern|type|name|url|uri|link|id$|ids$|version|limit|ring|store|arn|"
    r"attempt|retr|enabled|required|less|protect|usage|used|budget|izer|ize|ized|format|env|mode|at$|s$)",
    re.IGNORECASE,
)
_ASSIGN = re.compile(
    r"[ \t]{0,4}(?:=>|->|:=|→|»|[:：=＝]{1,2}(?!=))[ \t]{0,4}(?:\r?\n[ \t>]{0,8})?|>\s{0,4}|\"\s+value\s?=\s?"
)
_EN_SAID = re.compile(
    r"(?:\s+(?:for|of|to|on|at|in|from)\s+(?:[^\n.,;:!?。，]|\.(?=\w)){1,48}?)?"
    r"(?:\s+(?:is|was|are|will be|should be|has been|must be|would be|becomes?|=|(?:changed|set|reset|updated) to)|"
    r"'s|’s|\s?[:：])\s*:?\s+(?:(?:now|still|currently|just|always|simply|actually|(?:set|changed|reset) to|literally|"
    r"called|this|like)\s*:?\s+){0,2}",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"\s?(?:[:：=]|\s(?:is|was))\s{1,2}(?P<value>(?:[A-Za-z]{3,12}[ -]){3,11}[A-Za-z]{3,12})(?![\w ])")
_EN_SET = re.compile(r"(?:\s+(?:for|of|on|at)\s+[^\n.,;:!?]{1,48}?)?\s+to(?:\s+be)?\s*:?\s+", re.IGNORECASE)
# A space, a dash between spaces, or the border of a table's cell.
_EN_BESIDE = re.compile(r"[ \t]{0,8}\|[ \t]{0,8}|[ \t]{1,2}[-–—][ \t]{1,2}|[ \t]{1,8}")
_SET_BEFORE = re.compile(r"\b(?:set|reset|chang|updat|switch|rotat|renam|mov)\w*\b[^\n.。]{0,40}$", re.IGNORECASE)

_ZH_GAP = (
    r"(?:就|还|仍|应该|一直|都|现在|已经|已|默认|初始|暂时|目前|统一|其实|好像|大概|可能|又|全|也|好|帮我|给|被|"
    r"我|他|她|你|的|了){0,3}"
)
_ZH_SAID = re.compile(
    rf"(?:[（(][^()（）\n]{{0,20}}[)）])?\s?{_ZH_GAP}"
    r"(?:是|为|為|叫|设成|设为|设置为|设置成|設為|改成|改为|改成了|改為|换成|换成了|变成|变成了|重置为|重置成|更新为|定为|"
    r"用的是|用|填|输入|输|发你|给你)"
    r"(?:了|的|一下)?\s{0,2}[:：]?\s{0,2}(?:\r?\n\s{0,4})?"
)
_SAID = re.compile(rf"(?=[\s'’])(?:{_EN_SAID.pattern})|(?=[^\x00-\x7f])(?:{_ZH_SAID.pattern})", re.IGNORECASE)
_ZH_BESIDE = re.compile(r"(?:[（(][^()（）\n]{1,20}[)）])?\s{0,3}(?:\|\s{0,8})?")
# 密码都是同一个：…
_ZH_REMARK = re.compile(r"[\u4e00-\u9fff]{1,10}\s?[:：]\s?")
# Four digits that are no year.
_DOOR_CODE = re.compile("(?!19|20)[0-9]{4,5}")
_ZH_OTHER = re.compile(
    r"学|锁|本[^身]|箱|子|器|管|机|策|强|长|错|找|框|输错|泄|保护|忘|重置(?!为|成)|登录|验证(?!码)|提示|问题|规则|安全"
)

# In small letters only: a capital begins another sentence.
_REVERSED_EN = re.compile(
    r"(?P<quote>[\"'“‘`「『]?)(?P<value>[^\s\"'“”‘’`「」『』，。；]{4,64})(?:[\"'”’`」』])?\s+(?:is|was|as|for)\s+"
    r"(?:(?:my|the|our|your|his|her|their|a|new|old|root|admin|[Ww]i-?[Ff]i|database|db|login|current)\s+){0,3}$"
)
_REVERSED_ZH = re.compile(
    r"[\"'“‘「『]?(?P<value>[\x21-\x7e]{4,64}?)[\"'”’」』]?\s?(?:就是|是|当作|当|做|作为|设为|设成|这个是)[^\s，。；,;\n]{0,8}$"
)

_EN_LINKS = (" is ", " was ", " as ", " for ")
_ZH_LINKS = ("是", "当", "做", "作为", "设")

_PASSWORDS = (
    "password", "passwd", "passwort", "passphrase", "passcode", "pass code", "pwd", "psw", "mot de passe", "contraseña",
)  # fmt: skip
_ZH_PASSWORDS = ("密码", "密碼", "密 码", "口令", "口 令", "暗号", "暗號")
_SECRETS = ("secret", "psk")
_KEY_NAMES = (
    "api key", "api-key", "api_key", "apikey", "access key", "access_key", "access-key", "accesskey", "secret key",
    "secret_key", "secret-key", "secretkey", "private key", "private_key", "privatekey", "account key", "accountkey",
    "account_key", "encryption key", "encryption_key", "encryptionkey", "signing key", "signing_key", "signingkey",
    "master key", "master_key", "license key", "auth key", "auth_key", "authkey", "sharedaccesskey", "app key",
    "app_key", "appkey", "appsecret", "token", "credential", "auth_pass", "phpsessid", "jsessionid", "cookie",
    "密钥", "秘钥", "金鑰", "密鑰", "令牌", "私钥", "凭证", "凭据", "授权码", "激活码",
)  # fmt: skip


def finders() -> dict[str, Finder]:
    """By the lower-case words that the text is searched for."""
    table: dict[str, Finder] = dict.fromkeys(_PASSWORDS, _password)
    table |= dict.fromkeys(_ZH_PASSWORDS, _zh_password)
    table |= dict.fromkeys(_KEY_NAMES, _key)
    table |= dict.fromkeys(_SECRETS, _secret)
    return table | {"pass": _pass, "pw": _pass}


def _password(view: View, start: int, end: int) -> Span | None:
    text = view.text
    name = view.low[start:end]
    if name in ("pwd", "psw") and not (opens(text, start) or text[start - 1] in "_-"):
        return None
    tail = _tail(text, end)
    if tail is None:
        return None
    if name == "passphrase" and (words := _PHRASE.match(text, tail)) and not is_sentence(words["value"]):
        return Span(*words.span("value"), "credential")
    if assigned := _ASSIGN.match(text, tail):
        value = read_value(text, assigned.end(), quoted_only="==" in assigned[0])
        # $PWD is where a shell is.
        if value and not (name == "pwd" and value.text[:1] in "/~."):
            return value.span("credential")
    for form in (_EN_SAID, _EN_SET):
        said = form.match(text, tail)
        if said and (form is _EN_SAID or _SET_BEFORE.search(text, max(0, start - 60), start)):
            value = read_value(text, said.end(), said=True)
            if value:
                return value.span("credential")
    if beside := _EN_BESIDE.match(text, tail):
        option = text[max(0, start - 2) : start] == "--" or text[max(0, start - 1) : start] == "-"
        value = read_value(text, beside.end(), said=True)
        if value and (option or value.quoted or is_strong(value.text, beside=True)):
            return value.span("credential")
    return _reversed(view, start, _REVERSED_EN, _EN_LINKS)


def _zh_password(view: View, start: int, end: int) -> Span | None:
    text = view.text
    if assigned := _ASSIGN.match(text, _zh_tail(text, end)):
        value = read_value(text, assigned.end())
        if value and not counted(text, value.text, value.end):
            return value.span("credential")
    if _ZH_OTHER.match(text, end):
        return None
    if said := _ZH_SAID.match(text, end):
        value = read_value(text, said.end(), said=True, mixed=True)
        if value and not counted(text, value.text, value.end):
            return value.span("credential")
    for form in (_ZH_BESIDE, _ZH_REMARK):
        beside = form.match(text, end)
        value = read_value(text, beside.end(), said=True) if beside else None
        if value is None or counted(text, value.text, value.end):
            continue
        if value.quoted or is_strong(value.text, beside=True) or _DOOR_CODE.fullmatch(value.text):
            return value.span("credential")
    return _reversed(view, start, _REVERSED_ZH, _ZH_LINKS)


def _tail(text: str, end: int) -> int | None:
    """Where the name ends that the word at `end` belongs to; None if it is the name of something else."""
    tail = _TAIL.match(text, end)
    assert tail is not None  # every part of it may be absent
    more = tail["more"]
    if more and _ABOUT.match(more.lstrip("_-")):
        return None
    after = text[tail.end() : tail.end() + 1]
    return None if after and (word(after) or after == "(") else tail.end()


def _zh_tail(text: str, end: int) -> int:
    tail = _ZH_TAIL.match(text, end)
    assert tail is not None  # every part of it may be absent
    return tail.end()


def _reversed(view: View, start: int, form: re.Pattern[str], links: tuple[str, ...]) -> Span | None:
    """`hunter2 is my password`, 用abc123当密码."""
    text = view.text
    near = view.low[max(0, start - 40) : start]
    match = None
    # The search is dear, and the words between value and name are few.
    if any(link in near for link in links):
        match = form.search(text, max(0, start - 100), start)
    if match is None:
        return None
    value = match["value"].strip(".,;:!?()")
    first = match.start("value") + match["value"].find(value)
    if len(value) < 4 or not is_strong(value, beside=True) or stands_in(value):
        return None
    return Span(first, first + len(value), "credential")


def _pass(view: View, start: int, end: int) -> Span | None:
    """`pass` and `pw` by themselves or at the end of a name; the verb is none."""
    text = view.text
    inside = not opens(text, start)
    if (inside and not (text[start].isupper() and text[start - 1].islower())) or text[end : end + 1].isalnum():
        return None
    assigned = _ASSIGN.match(text, _zh_tail(text, end))
    value = read_value(text, assigned.end(), quoted_only="==" in assigned[0]) if assigned else None
    if value is None and (said := _EN_SAID.match(text, end)):
        value = read_value(text, said.end(), said=True)
    if value is None or (" " in value.text and is_sentence(value.text)):
        # A first pass: "Your boxes keep working when …".
        return None
    # A boarding pass: gate 14. Only what is quoted or no word can be a password here.
    return value.span("credential") if value.quoted or is_strong(value.text) else None


def _secret(view: View, start: int, end: int) -> Span | None:
    """A secret is a password where it is given a value, and anything at all in a sentence."""
    text = view.text
    tail = _tail(text, end)
    assigned = _ASSIGN.match(text, tail) if tail is not None else None
    if assigned is None:
        return _key(view, start, end)
    value = read_value(text, assigned.end(), quoted_only="==" in assigned[0])
    if value is None or len(value.text) < 8:
        return None
    if not (looks_random(value.text, 8) or is_strong(value.text, beside=True)):
        return None
    return Span(value.start, continued(text, value.end, value.text), "token")


def _key(view: View, _: int, end: int) -> Span | None:
    text = view.text
    tail = _tail(text, end)
    if tail is None or _NUMBER.match(text, tail):
        return None
    gap = _ASSIGN.match(text, tail) or _SAID.match(text, tail) or _EN_BESIDE.match(text, tail)
    # 密钥a8f5… needs nothing between; in Latin letters it would be one word.
    if gap is None and text[end - 1].isascii():
        return None
    beside = gap is None or not gap[0].strip()
    value = read_value(text, gap.end() if gap else tail)
    # Another assignment, or a block that edge.admission.redact.keys looks after.
    if value is None or "=" in value.text.rstrip("=") or "-----" in value.text:
        return None
    if not looks_random(value.text, 16 if beside else 8):
        return None
    return Span(value.start, continued(text, value.end, value.text), "token")
