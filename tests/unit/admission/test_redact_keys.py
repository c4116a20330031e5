"""Private keys: whole, cut off, quoted, escaped, and line by line as turns of their own."""

from __future__ import annotations

import base64
import json
import random
import textwrap

import pytest

from edge.admission.redact import Redactor, SessionRedactor

ZH = Redactor()
_R = random.Random(36)


def pem(name: str, start: bytes, size: int = 1190, width: int = 64) -> str:
    body = base64.b64encode(start + _R.randbytes(size)).decode()
    return "\n".join((f"-----BEGIN {name}-----", *textwrap.wrap(body, width), f"-----END {name}-----"))


RSA = pem("RSA PRIVATE KEY", bytes.fromhex("308204a30201000282010100"))
KEYS = {
    "rsa": RSA,
    "pkcs8": pem("PRIVATE KEY", bytes.fromhex("308204bd020100300d06092a864886f70d0101010500")),
    "encrypted": pem("ENCRYPTED PRIVATE KEY", bytes.fromhex("3082051c304e06092a864886f70d01050d3041")),
    "ec": pem("EC PRIVATE KEY", bytes.fromhex("30770201010420"), 112),
    "ed25519": pem("PRIVATE KEY", bytes.fromhex("302e020100300506032b657004220420"), 32),
    "openssh": pem("OPENSSH PRIVATE KEY", b"openssh-key-v1\0", 380, 70),
    "pgp": pem("PGP PRIVATE KEY BLOCK", b"\x95", 900).replace("BLOCK-----\n", "BLOCK-----\nVersion: GnuPG v2\n\n", 1),
}
PUBLIC = {
    "certificate": pem("CERTIFICATE", bytes.fromhex("3082035d30820245a003020102"), 850),
    "public": pem("PUBLIC KEY", bytes.fromhex("30820122300d06092a864886f70d0101010500"), 280),
    "image": "\n".join(textwrap.wrap(base64.b64encode(b"\x89PNG\r\n\x1a\n" + _R.randbytes(900)).decode(), 64)),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("frame", ["{}", "这是我的私钥：\n{}\n别外传", "here:\n\n{}\nthanks", "```\n{}\n```"])
def test_a_whole_key_goes_and_its_text_stays(kind: str, frame: str) -> None:
    result = ZH.redact(frame.replace("{}", KEYS[kind]))
    assert result.text == frame.replace("{}", "[私钥]")
    assert result.counts == {"private_key": 1}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_goes_however_it_was_pasted(kind: str) -> None:
    key = KEYS[kind]
    lines = key.split("\n")
    for form in (
        "\r\n".join(lines),
        "\n> ".join(lines),
        "\n    ".join(lines),
        "\\n".join(lines),
        " ".join(lines),
        "\\r\\n".join(lines),
    ):
        assert ZH.redact(f"a {form} z").text == "a [私钥] z"
    stored = json.dumps({"type": "service_account", "private_key": key + "\n", "client_id": "1"})
    assert json.loads(ZH.redact(stored).text) == {
        "type": "service_account",
        "private_key": "[私钥]\n",
        "client_id": "1",
    }


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_was_cut_off_leaves_nothing(kind: str) -> None:
    lines = KEYS[kind].split("\n")
    without_end = "\n".join(lines[:-1])
    assert ZH.redact(f"key\n{without_end}\n好了").text == "key\n[私钥]\n好了"
    half = "\n".join(lines[: len(lines) // 2 + 1])
    assert ZH.redact(f"key\n{half}\n好了").text == "key\n[私钥]\n好了"
    without_begin = "\n".join(line for line in lines[1:] if line and ":" not in line)
    assert ZH.redact(f"key\n{without_begin}\nbye").text == "key\n[私钥]\nbye"


@pytest.mark.parametrize("kind", ["rsa", "pkcs8", "encrypted", "ec", "ed25519", "openssh"])
def test_a_key_without_its_first_and_last_line_is_known_by_how_it_begins(kind: str) -> None:
    body = "\n".join(KEYS[kind].split("\n")[1:-1])
    assert "[私钥]" in ZH.redact(f"key\n{body}\n").text
    assert body.split("\n")[0] not in ZH.redact(f"key\n{body}\n").text


@pytest.mark.parametrize("kind", PUBLIC)
def test_what_anybody_may_see_stays(kind: str) -> None:
    text = f"look:\n{PUBLIC[kind]}\n"
    assert ZH.redact(text).text is text


def test_talk_about_keys_stays() -> None:
    text = "The file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, as you know."
    assert ZH.redact(text).text is text


def test_a_certificate_between_two_keys_stays() -> None:
    text = f"{RSA}\n{PUBLIC['certificate']}\n{KEYS['ec']}"
    assert ZH.redact(text).text == f"[私钥]\n{PUBLIC['certificate']}\n[私钥]"


def test_a_putty_file_goes() -> None:
    body = textwrap.fill(base64.b64encode(_R.randbytes(590)).decode(), 64)
    head = "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: k\nPrivate-Lines: 13"
    text = f"{head}\n{body}\nPrivate-MAC: {'ab' * 20}\nbye"
    assert ZH.redact(text).text == "[私钥]\nbye"


def test_the_words_of_a_wallet_go() -> None:
    words = "abandon ability able about above absent absorb abstract absurd abuse access accident"
    assert ZH.redact(f"助记词：{words}。").text == "助记词：[私钥]。"
    assert not ZH.redact(
        "mnemonic devices help me to remember the names of all of these people very well indeed"
    ).counts


def test_a_key_in_thirty_turns_is_hidden_until_its_end() -> None:
    session = SessionRedactor(ZH)
    lines = RSA.split("\n")
    told = [
        session.redact(line) for line in ["here it comes", *lines, "thanks", "9fceb02d0ae598e95dc970b74767f19372d61af8"]
    ]
    assert [result.text for result in told] == [
        "here it comes", lines[0], *["[私钥]"] * (len(lines) - 1), "thanks", "9fceb02d0ae598e95dc970b74767f19372d61af8",
    ]  # fmt: skip
    assert not any(line in result.text for line in lines[1:] for result in told)


def test_a_key_in_two_turns_is_hidden_in_both() -> None:
    session = SessionRedactor(ZH)
    half = len(RSA) // 2
    first, second = session.redact("my key:\n" + RSA[:half]), session.redact(RSA[half:] + "\nmy password is hunter2")
    assert (first.text, second.text) == ("my key:\n[私钥]", "[私钥]\nmy password is [密码]")
    assert second.counts == {"private_key": 1, "credential": 1}


def test_base64_that_follows_no_key_stays() -> None:
    session = SessionRedactor(ZH)
    line = PUBLIC["image"].split("\n")[1]
    for text in ("hello", line, f"{RSA}\n", line):
        session.redact(text)
    assert session.redact(line).text is line
