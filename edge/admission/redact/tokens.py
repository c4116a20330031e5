"""Tokens and API keys whose form gives them away: the prefixes that their makers gave them to be found by.

The forms are those of gitleaks' rules (MIT, config/gitleaks.toml) and of the makers' own pages, with lengths taken
as lower bounds where makers have changed them. detect-secrets 1.5 was measured instead and not taken: 0.06 MB/s,
307 modules at import (requests and PyYAML among them), `my password is hunter2` answered with every word of it.

A token stands alone: no letter or digit touches its front. One that a terminal or a mail program broke over lines is
followed over them, as long as the next line goes on in the same characters and looks random too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edge.admission.redact.edges import opens
from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span
from edge.admission.redact.randomness import looks_random, varied

Finder = Callable[[View, int, int], Span | None]

_WRAP = re.compile(r"[ \t]*\\?\r?\n[ \t>|]*")
_WORDS = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"

# Lower-case start → the whole form. A start of letters must not follow a letter or digit.
_FORMS: dict[str, str] = {
    "sk-": rf"sk-{_WORDS}{{20,}}",
    "ghp_": rf"ghp_{_ALNUM}{{30,}}",
    "gho_": rf"gho_{_ALNUM}{{30,}}",
    "ghu_": rf"ghu_{_ALNUM}{{30,}}",
    "ghs_": rf"ghs_{_ALNUM}{{30,}}",
    "ghr_": rf"ghr_{_ALNUM}{{30,}}",
    "github_pat_": r"github_pat_\w{30,}",
    "glpat-": r"glpat-[\w.-]{20,}",
    "gldt-": r"gldt-[\w-]{20,}",
    "glrt-": r"glrt-[\w.-]{20,}",
    "glcbt-": r"glcbt-[\w-]{20,}",
    "glptt-": r"glptt-[\w-]{20,}",
    "glft-": r"glft-[\w-]{20,}",
    "glsoat-": r"glsoat-[\w-]{20,}",
    "glimt-": r"glimt-[\w-]{20,}",
    "glagent-": r"glagent-[\w-]{40,}",
    "gloas-": r"gloas-[\w-]{40,}",
    "gr1348941": r"GR1348941[\w-]{20,}",
    "akia": r"AKIA[A-Z0-9]{16}",
    "asia": r"ASIA[A-Z0-9]{16}",
    "abia": r"ABIA[A-Z0-9]{16}",
    "acca": r"ACCA[A-Z0-9]{16}",
    "absk": r"ABSK[A-Za-z0-9+/]{90,}={0,2}",
    "aiza": r"AIza[\w-]{35,}",
    "ya29.": r"ya29\.[\w-]{20,}",
    "gocspx-": r"GOCSPX-[\w-]{20,}",
    "1//0": r"1//0[\w-]{30,}",
    "xox": r"xox[abeoprs](?:\.xox[bp])?-[\w-]{10,}",
    "xapp-": r"xapp-\d-[\w-]{20,}",
    "sk_live_": rf"sk_live_{_ALNUM}{{10,}}",
    "sk_test_": rf"sk_test_{_ALNUM}{{10,}}",
    "rk_live_": rf"rk_live_{_ALNUM}{{10,}}",
    "rk_test_": rf"rk_test_{_ALNUM}{{10,}}",
    "sk_prod_": rf"sk_prod_{_ALNUM}{{10,}}",
    "whsec_": r"whsec_[A-Za-z0-9+/]{20,}={0,2}",
    "sg.": r"SG\.[\w-]{16,}\.[\w-]{30,}",
    "hf_": rf"hf_{_ALNUM}{{30,}}",
    "api_org_": rf"api_org_{_ALNUM}{{30,}}",
    "npm_": rf"npm_{_ALNUM}{{30,}}",
    "pypi-": r"pypi-[\w-]{50,}",
    "dop_v1_": r"dop_v1_[a-f0-9]{40,}",
    "doo_v1_": r"doo_v1_[a-f0-9]{40,}",
    "dor_v1_": r"dor_v1_[a-f0-9]{40,}",
    "shpat_": r"shpat_[a-fA-F0-9]{32}",
    "shpca_": r"shpca_[a-fA-F0-9]{32}",
    "shppa_": r"shppa_[a-fA-F0-9]{32}",
    "shpss_": r"shpss_[a-fA-F0-9]{32}",
    "sq0atp-": r"sq0atp-[\w-]{22,}",
    "sq0csp-": r"sq0csp-[\w-]{40,}",
    "eaaa": r"EAAA[\w-]{22,}",
    "eaac": rf"EAAC{_ALNUM}{{90,}}",
    "eaam": rf"EAAM{_ALNUM}{{90,}}",
    "lin_api_": rf"lin_api_{_ALNUM}{{30,}}",
    "ntn_": rf"ntn_{_ALNUM}{{40,}}",
    "secret_": rf"secret_{_ALNUM}{{43}}",
    "pmak-": r"PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}",
    "dapi": r"dapi[a-f0-9]{32}(?:-\d)?",
    "pul-": r"pul-[a-f0-9]{40}",
    "rubygems_": r"rubygems_[a-f0-9]{48}",
    "glsa_": rf"glsa_{_ALNUM}{{32}}_[A-Fa-f0-9]{{8}}",
    "glc_": r"glc_[A-Za-z0-9+/]{32,}={0,3}",
    "hvs.": r"hvs\.[\w-]{24,}",
    "hvb.": r"hvb\.[\w-]{100,}",
    "dckr_pat_": r"dckr_pat_[\w-]{20,}",
    "figd_": r"figd_[\w-]{30,}",
    "r8_": rf"r8_{_ALNUM}{{30,}}",
    "gsk_": rf"gsk_{_ALNUM}{{40,}}",
    "xai-": rf"xai-{_ALNUM}{{40,}}",
    "pplx-": rf"pplx-{_ALNUM}{{40,}}",
    "tvly-": r"tvly-[\w-]{24,}",
    "ltai": rf"LTAI{_ALNUM}{{12,26}}",
    "akid": rf"AKID{_ALNUM}{{32}}",
    "aklt": r"AKLT[\w-]{20,}={0,2}",
    "bce-v3/": r"bce-v3/ALTAK-[\w-]+/[a-f0-9]{40}",
    "hrku-": r"HRKU-[\w-]{36,}",
    "nrak-": r"NRAK-[A-Z0-9]{27}",
    "sntrys_": r"sntrys_[\w+/=-]{40,}",
    "sntryu_": r"sntryu_[a-f0-9]{64}",
    "dp.pt.": rf"dp\.pt\.{_ALNUM}{{40,}}",
    "dt0c01.": rf"dt0c01\.{_ALNUM}{{24}}\.{_ALNUM}{{64}}",
    "sbp_": r"sbp_[a-f0-9]{40}",
    "sb_secret_": r"sb_secret_[\w-]{20,}",
    "atatt3": r"ATATT3[\w=-]{50,}",
    "atctt3": r"ATCTT3[\w=-]{50,}",
    "age-secret-key-1": rf"AGE-SECRET-KEY-1{_ALNUM}{{40,}}",
    "pscale_": r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}",
    "xkeysib-": rf"xkeysib-[a-f0-9]{{64}}-{_ALNUM}{{16}}",
    "rdme_": r"rdme_[a-z0-9]{60,}",
    "ops_eyj": r"ops_eyJ[\w+/=-]{200,}",
    "fo1_": r"fo1_[\w-]{43}",
    "fm2_": r"fm2_[A-Za-z0-9+/]{100,}={0,3}",
    "sgp_": r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}",
    "akcp": r"AKCp[A-Za-z0-9]{60,}",
    "tfp_": r"tfp_[\w.-]{40,}",
    "key-": r"key-[a-f0-9]{32}(?![a-f0-9])",
    "eyj": r"eyJ[\w-]{8,}={0,2}\.[\w-]{8,}={0,2}(?:\.[\w-]*={0,2}){1,3}|eyJrIjoi[A-Za-z0-9+/]{60,}={0,2}",
    "v1.0-": r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    "hooks.slack.com/": r"(?i:hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/+-]{20,}",
    "discord.com/api/webhooks/": r"(?i:discord\.com/api/webhooks/)\d+/[\w-]{30,}",
    "discordapp.com/api/webhooks/": r"(?i:discordapp\.com/api/webhooks/)\d+/[\w-]{30,}",
    "webhook.office.com/": r"(?i:webhook\.office\.com/)[\w/@-]{60,}",
    "open-apis/bot/v2/hook/": r"(?i:open-apis/bot/v2/hook/)[\w-]{30,}",
    "cgi-bin/webhook/send?key=": r"(?i:cgi-bin/webhook/send\?key=)[\w-]{30,}",
    "robot/send?access_token=": r"(?i:robot/send\?access_token=)[0-9a-fA-F]{40,}",
} | {f"sk{c}": rf"SK{c}[0-9a-fA-F]{{31}}(?![0-9a-fA-F])" for c in "0123456789abcdef"}

# Where only the tail of a match is the secret: what leads up to it stays.
_LEADS = re.compile(
    r"(?i)(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d+/|webhook\.office\.com/|"
    r"open-apis/bot/v2/hook/|cgi-bin/webhook/send\?key=|robot/send\?access_token=)"
)

_COMPILED = {start: re.compile(form, re.ASCII) for start, form in _FORMS.items()}
# Another token, on a line of its own.
_KNOWN_START = re.compile("|".join(map(re.escape, _FORMS)), re.IGNORECASE)
# Characters that a broken token goes on in, and how many it has in all where its maker fixed that.
_FIXED = {f"gh{kind}_": 40 for kind in "pousr"} | {"akia": 20, "asia": 20, "aiza": 39, "hf_": 37, "npm_": 40}
# The inside of a base64 text, in which any four letters come up some time.
_BLOB = re.compile("[A-Za-z0-9+/]{24}$")
# Inside a name of words and dashes nothing begins anew: sk-sk-sk-… would be read to its end from each of its parts.
_NOT_INSIDE = re.compile(r"(?<![A-Za-z0-9][-_])$")
_TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9_\-.+/=]+")

# Looked up from something in the middle of the token.
_TELEGRAM = re.compile(r"(?<![0-9])[0-9]{8,10}:AA[\w-]{30,}", re.ASCII)
_AZURE = re.compile(r"(?<![\w~.-])[\w~.]{3}[0-9]Q~[\w~.-]{31,34}", re.ASCII)
_FIREBASE = re.compile(r"(?<![\w-])[\w-]{8,}:APA91b[\w-]{100,}", re.ASCII)
_MAILCHIMP = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])")
_DISCORD = re.compile(r"(?<![\w-])[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}", re.ASCII)
_TERRAFORM = re.compile(r"(?<![\w.-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}", re.ASCII)


def finders() -> dict[str, Finder]:
    """By the lower-case words that the text is searched for."""
    table: dict[str, Finder] = dict.fromkeys(_FORMS, _by_form)
    table |= {
        ":aa": _around(_TELEGRAM, 10, 60),
        "q~": _around(_AZURE, 4, 40),
        ":apa91b": _around(_FIREBASE, 64, 300),
        "discord": _around(_DISCORD, 0, 200),
        ".atlasv1.": _around(_TERRAFORM, 14, 90),
    }
    return table | {f"-us{digit}": _around(_MAILCHIMP, 32, 6) for digit in range(1, 10)}


def _by_form(view: View, start: int, end: int) -> Span | None:
    text = view.text
    if text[start].isalnum() and not (opens(text, start) and _NOT_INSIDE.search(text, max(0, start - 2), start)):
        return None
    if start and text[start - 1] in "+/" and _BLOB.search(text, max(0, start - 40), start):
        return None
    lead = view.low[start:end]
    match = _COMPILED[lead].match(text, start)
    if match is None:
        return _broken(text, start, end, lead)
    tail = _LEADS.match(text, start)
    first, last = tail.end() if tail else start, match.end()
    body = text[first + (0 if tail else len(lead)) : last]
    if not varied(body) or (lead == "sk-" and not _key(body)):
        return None
    if lead not in _FIXED:
        last = continued(text, last, body)
    return Span(first, _trimmed(text, first, last), "token")


def _key(body: str) -> bool:
    """`sk-` is short, and so is many a hyphenated name: some part of it must be random."""
    return any(looks_random(part, 12) for part in re.split("[-_]", body)) or looks_random(body, 32)


def _broken(text: str, start: int, end: int, lead: str) -> Span | None:
    """A token that a line's end cut short: joined with the next line, it has its form and its length."""
    head = _TOKEN_CHARACTERS.match(text, start)
    gap = _WRAP.match(text, head.end()) if head else None
    tail = _TOKEN_CHARACTERS.match(text, gap.end()) if gap else None
    if head is None or gap is None or tail is None or head.end() < end:
        return None
    size = _FIXED.get(lead)
    rest = tail[0] if size is None else tail[0][: size - len(head[0])]
    joined = head[0] + rest
    match = _COMPILED[lead].match(joined)
    if match is None or not varied(joined) or (size is not None and len(rest) < len(tail[0])):
        return None
    if size is None and not looks_random(joined[len(lead) :], 16):
        return None
    return Span(start, _trimmed(text, start, gap.end() + match.end() - len(head[0])), "token")


def continued(text: str, end: int, body: str) -> int:
    """Where a token goes on to, line by line, if it was wrapped at `end`."""
    longest = len(body)
    while longest >= 20 and (gap := _WRAP.match(text, end)):
        tail = _TOKEN_CHARACTERS.match(text, gap.end())
        if tail is None or len(tail[0]) > longest + 200 or not _goes_on(text, tail):
            break
        end = tail.end()
    return end


def _goes_on(text: str, tail: re.Match[str]) -> bool:
    """The rest of its line is empty or closes a quotation, and it is no word."""
    if _KNOWN_START.match(text, tail.start()):
        return False
    rest = text[tail.end() : tail.end() + 3].split("\n", 1)[0].strip("\"'`,;)}。，\r\t ")
    return not rest and looks_random(tail[0], 8)


def _around(form: re.Pattern[str], before: int, after: int) -> Finder:
    def find(view: View, start: int, end: int) -> Span | None:
        match = form.search(view.text, max(0, start - before), end + after)
        if match is None or not opens(view.text, match.start()):
            return None
        return Span(match.start(), _trimmed(view.text, *match.span()), "token")

    return find


def _trimmed(text: str, start: int, end: int) -> int:
    """Without the full stop or dash of the sentence around it."""
    while end > start and text[end - 1] in ".-":
        end -= 1
    return end
