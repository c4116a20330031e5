"""Secrets as their makers make them. All are random; none opens anything."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import random
import string
import textwrap

LETTERS = string.ascii_letters
ALNUM = LETTERS + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"

# First digits of cards that people carry: debit and credit, home and abroad, and their lengths.
_BINS = (
    ("622202", 19), ("622848", 19), ("621700", 19), ("621661", 19), ("622588", 16), ("621483", 16), ("625911", 16),
    ("623094", 19), ("621799", 19), ("622622", 16), ("95588", 19), ("95599", 19), ("601382", 19), ("436742", 16),
    ("453242", 16), ("402658", 16), ("491634", 16), ("411111", 16), ("512345", 16), ("524094", 16), ("555555", 16),
    ("545454", 16), ("222300", 16), ("271234", 16), ("371449", 15), ("340000", 15), ("601100", 16), ("650031", 16),
    ("353011", 16), ("356600", 16), ("362272", 14), ("305693", 14),
)  # fmt: skip
_REGIONS = (
    "110105", "310104", "440305", "330106", "510107", "420111", "610113", "320505", "370202", "500112", "230103",
    "460105", "540102", "650104", "150102", "810000", "830000",
)  # fmt: skip


def pick(r: random.Random, alphabet: str, n: int) -> str:
    return "".join(r.choices(alphabet, k=n))


def mixed(r: random.Random, n: int, alphabet: str = ALNUM) -> str:
    """Random, with a digit, a small and a capital letter in it, as any real key of that length has."""
    while True:
        text = pick(r, alphabet, n)
        if any(c.isdigit() for c in text) and any(c.islower() for c in text):
            return text


def luhn_digit(body: str) -> str:
    total = 0
    for at, digit in enumerate(reversed(body)):
        value = int(digit) * (1 if at % 2 else 2)
        total += value // 10 + value % 10
    return str(-total % 10)


def card(r: random.Random) -> str:
    start, length = r.choice(_BINS)
    body = start + pick(r, string.digits, length - len(start) - 1)
    return body + luhn_digit(body)


def identity(r: random.Random) -> str:
    born = dt.date(1935, 1, 1) + dt.timedelta(days=r.randrange(32_000))
    body = f"{r.choice(_REGIONS)}{born:%Y%m%d}{r.randrange(1000):03d}"
    total = sum(int(d) * pow(2, 17 - at, 11) for at, d in enumerate(body))
    return body + "10X98765432"[total % 11]


_WORDS = (
    "summer", "dragon", "coffee", "monkey", "orange", "tiger", "winter", "pepper", "silver", "happy", "ocean",
    "maple", "rocket", "banana", "purple",
)  # fmt: skip
_PINYIN = (
    "wang", "li", "zhang", "xiaoming", "woaini", "nihao", "beijing", "shanghai", "mima", "laopo", "baobao",
    "zhongguo", "tiantian",
)  # fmt: skip


def password(r: random.Random) -> str:
    """What people choose, and what managers make."""
    word, year = r.choice(_WORDS), str(r.randrange(1970, 2027))
    return r.choice((
        lambda: word.capitalize() + year + r.choice("!@#$%&*"),
        lambda: word + str(r.randrange(10, 9999)),
        lambda: r.choice(_PINYIN) + year,
        lambda: r.choice(_PINYIN).capitalize() + "@" + str(r.randrange(100, 9999)),
        lambda: word.replace("o", "0").replace("e", "3").replace("a", "@").replace("i", "1") + str(r.randrange(10, 99)),
        lambda: "-".join(r.choices(_WORDS, k=4)),
        lambda: mixed(r, r.randrange(8, 21), ALNUM + "!@#$%^*_+-"),
        lambda: mixed(r, 12),
        lambda: "P@ssw0rd" + str(r.randrange(1, 999)),
        lambda: "qwerty" + str(r.randrange(100, 999)),
        lambda: mixed(r, 6) + "-" + mixed(r, 6) + "-" + mixed(r, 6),
        lambda: str(r.randrange(100_000, 99_999_999)),
    ))()  # fmt: skip


def jwt(r: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()

    body = (
        part({"alg": "HS256", "typ": "JWT"}) + "." + part({"sub": pick(r, string.digits, 8), "iat": r.randrange(2**31)})
    )
    mark = hmac.new(r.randbytes(16), body.encode(), hashlib.sha256).digest()
    return body + "." + base64.urlsafe_b64encode(mark).rstrip(b"=").decode()


TOKENS = {
    "openai": lambda r: "sk-" + mixed(r, 20) + "T3BlbkFJ" + mixed(r, 20),
    "openai project": lambda r: "sk-proj-" + mixed(r, 74, URLSAFE) + "T3BlbkFJ" + mixed(r, 74, URLSAFE),
    "anthropic": lambda r: "sk-ant-api03-" + mixed(r, 93, URLSAFE) + "AA",
    "deepseek": lambda r: "sk-" + pick(r, HEX, 32),
    "openrouter": lambda r: "sk-or-v1-" + pick(r, HEX, 64),
    "github": lambda r: r.choice(("ghp_", "gho_", "ghs_", "ghu_", "ghr_")) + mixed(r, 36),
    "github fine": lambda r: "github_pat_" + mixed(r, 22) + "_" + mixed(r, 59),
    "gitlab": lambda r: "glpat-" + mixed(r, 20, URLSAFE),
    "aws": lambda r: r.choice(("AKIA", "ASIA")) + pick(r, string.ascii_uppercase + "234567", 16),
    "slack bot": lambda r: f"xoxb-{r.randrange(10**11, 10**12)}-{r.randrange(10**12, 10**13)}-" + mixed(r, 24),
    "slack user": lambda r: "-".join(("xoxp", *(str(r.randrange(10**11)) for _ in range(3)), pick(r, HEX, 32))),
    "google": lambda r: "AIza" + "Sy" + mixed(r, 33, URLSAFE),
    "google oauth": lambda r: "GOCSPX-" + mixed(r, 28, URLSAFE),
    "stripe": lambda r: r.choice(("sk_live_", "rk_live_", "sk_test_")) + mixed(r, r.choice((24, 99))),
    "telegram": lambda r: f"{r.randrange(10**8, 10**10)}:AA" + mixed(r, 33, URLSAFE),
    "huggingface": lambda r: "hf_" + pick(r, LETTERS, 34),
    "npm": lambda r: "npm_" + mixed(r, 36),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + mixed(r, 140, URLSAFE),
    "sendgrid": lambda r: "SG." + mixed(r, 22, URLSAFE) + "." + mixed(r, 43, URLSAFE),
    "digitalocean": lambda r: "dop_v1_" + pick(r, HEX, 64),
    "shopify": lambda r: "shpat_" + pick(r, HEX, 32),
    "aliyun": lambda r: "LTAI" + mixed(r, 20),
    "tencent": lambda r: "AKID" + mixed(r, 32),
    "groq": lambda r: "gsk_" + mixed(r, 52),
    "docker": lambda r: "dckr_pat_" + mixed(r, 27, URLSAFE),
    "vault": lambda r: "hvs." + mixed(r, 95, URLSAFE),
    "grafana": lambda r: "glsa_" + mixed(r, 32) + "_" + pick(r, HEX, 8),
    "mailchimp": lambda r: pick(r, HEX, 32) + f"-us{r.randrange(1, 22)}",
    "twilio": lambda r: "SK" + pick(r, HEX, 32),
    "linear": lambda r: "lin_api_" + mixed(r, 40),
    "notion": lambda r: "ntn_" + pick(r, string.digits, 11) + mixed(r, 35),
    "databricks": lambda r: "dapi" + pick(r, HEX, 32),
    "jwt": jwt,
}  # fmt: skip


def opaque(r: random.Random) -> str:
    """A key without a prefix; only the words around it tell."""
    return r.choice((
        lambda: pick(r, HEX, 32), lambda: pick(r, HEX, 40), lambda: pick(r, HEX, 64), lambda: mixed(r, 24),
        lambda: mixed(r, 40), lambda: base64.b64encode(r.randbytes(32)).decode(), lambda: mixed(r, 32, URLSAFE),
        lambda: pick(r, HEX, 32) + "." + mixed(r, 16), lambda: "-".join(pick(r, HEX, n) for n in (8, 4, 4, 4, 12)),
    ))()  # fmt: skip


def _pem(name: str, der: bytes, width: int = 64, head: str = "") -> str:
    lines = textwrap.wrap(base64.b64encode(der).decode(), width)
    return "\n".join((f"-----BEGIN {name}-----", *([head, ""] if head else []), *lines, f"-----END {name}-----"))


def _der(r: random.Random, size: int, start: bytes) -> bytes:
    body = start + r.randbytes(size - len(start))
    return (b"\x30\x82" + len(body).to_bytes(2, "big") if size > 255 else b"\x30" + bytes([min(size, 127)])) + body


def private_key(r: random.Random) -> str:
    rsa = bytes.fromhex("020100028201 0100".replace(" ", ""))
    pkcs8 = bytes.fromhex("020100300d06092a864886f70d010101050004820 4a8".replace(" ", ""))
    pbes2 = bytes.fromhex("304e06092a864886f70d01050d3041302906092a")
    kind = r.randrange(8)
    if kind == 0:
        return _pem("RSA PRIVATE KEY", _der(r, r.choice((606, 1190, 2345)), rsa))
    if kind == 1:
        return _pem("PRIVATE KEY", _der(r, r.choice((630, 1214, 2370)), pkcs8))
    if kind == 2:
        return _pem("ENCRYPTED PRIVATE KEY", _der(r, 1310, pbes2))
    if kind == 3:
        return _pem("EC PRIVATE KEY", _der(r, 119, b"\x02\x01\x01\x04\x20"))
    if kind == 4:
        return _pem(
            "PRIVATE KEY", b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20" + r.randbytes(32)
        )
    if kind == 5:
        magic = b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01"
        return _pem("OPENSSH PRIVATE KEY", magic + r.randbytes(r.choice((230, 1600))), 70)
    if kind == 6:
        head = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{pick(r, '0123456789ABCDEF', 32)}"
        return _pem("RSA PRIVATE KEY", r.randbytes(1190), head=head)
    block = _pem("PGP PRIVATE KEY BLOCK", b"\x95" + r.randbytes(900), head="Version: GnuPG v2")
    check = "=" + base64.b64encode(r.randbytes(3)).decode()
    return block.replace("\n-----END", f"\n{check}\n-----END")


def putty(r: random.Random) -> str:
    public, private = (textwrap.wrap(base64.b64encode(r.randbytes(n)).decode(), 64) for n in (279, 590))
    head = ["PuTTY-User-Key-File-2: ssh-rsa", "Encryption: none", "Comment: rsa-key-20240101"]
    lines = [*head, f"Public-Lines: {len(public)}", *public, f"Private-Lines: {len(private)}", *private]
    return "\n".join([*lines, f"Private-MAC: {pick(r, HEX, 40)}"])
