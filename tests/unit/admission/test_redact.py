"""What is hidden, what is kept, and what the text around a secret looks like afterwards."""

from __future__ import annotations

import pytest

from edge.admission.redact import Redactor, SecretClass
from edge.errors import InvalidArgument

ZH = Redactor()
EN = Redactor("en")

CARDS = (
    "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "4111.1111.1111.1111",
    "4111\u00a01111\u00a01111\u00a01111", "４１１１１１１１１１１１１１１１",
    "４１１１　１１１１　１１１１　１１１１", "4111–1111–1111–1111", "4111\u200b1111\u200b1111\u200b1111",
    "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "41111111 11111111", "4111 1111\n1111 1111", "378282246310005",
    "3782 822463 10005", "6228480402564890018", "622202 0000000000000", "6222 0200 0000 0000 000", "5555555555554444",
    "6011111111111117", "3530111333300000", "30569309025904",
)  # fmt: skip

IDENTITIES = (
    "11010519491231002X", "11010519491231002x", "11010519491231002Ｘ", "１１０１０５１９４９１２３１００２Ｘ",
    "110105 19491231 002X", "110105-19491231-002X", "1101 0519 4912 3100 2X", "110105\n19491231002X",
    "110105\u200d19491231002X",
)  # fmt: skip

TOKENS = (
    "sk-abcDEF123456abcDEF123456", "sk-proj-abcDEF123456_abcDEF123456-ghiJKL789",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345", "AKIAIOSFODNN7EXAMPLE", "glpat-ABCDEFGHIJ1234567890",
    "xoxb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx", "AIzaSyDdI0hCZtE6vySjMm-WEfRq3CPzqKqqsHI",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "npm_abcdefghij0123456789ABCDEFGHIJ012345",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "0123456789abcdef0123456789abcdef-us12", "ghp_0123456789abcdef\u200bghijABCDEFGHIJ012345",
    "ghp_0123456789abcdefgh\nijABCDEFGHIJ012345",
)  # fmt: skip


@pytest.mark.parametrize(
    "frame", ["{}", "卡号{}元", "请转到{}。", "card {}, exp 12/27", '"card": "{}"', "（{}）", "1) {}\n2) none"]
)
@pytest.mark.parametrize("card", CARDS)
def test_a_card_goes_and_its_sentence_stays(card: str, frame: str) -> None:
    result = ZH.redact(frame.replace("{}", card))
    assert result.text == frame.replace("{}", "[银行卡]")
    assert result.counts == {"bank_card": 1}


@pytest.mark.parametrize("frame", ["{}", "身份证{}号", "我的身份证号是{}，谢谢", "id {};", "姓名李雷,{}\n"])
@pytest.mark.parametrize("number", IDENTITIES)
def test_an_identity_number_goes_and_its_sentence_stays(number: str, frame: str) -> None:
    result = EN.redact(frame.replace("{}", number))
    assert result.text == frame.replace("{}", "[identity number]")
    assert result.counts == {"identity": 1}


@pytest.mark.parametrize(
    ("token", "frame"),
    [
        (token, frame)
        for token in TOKENS
        for frame in (
            "{}",
            "密钥{}别泄露",
            "KEY={}",
            '"k": "{}"',
            "https://x.org/?key={}&q=1",
            "first\\n{}\\nlast",
            "({}), ok",
        )
        # One that was wrapped ends its line.
        if "\n" not in token or frame.endswith(("{}", "别泄露"))
    ],
)
def test_a_token_goes_and_its_sentence_stays(token: str, frame: str) -> None:
    result = ZH.redact(frame.replace("{}", token))
    assert result.text == frame.replace("{}", "[密钥]")
    assert result.counts == {"token": 1}


KEPT = (
    "550e8400-e29b-41d4-a716-446655440000", "41111111-1111-1111-1111-111111111111",
    "9fceb02d0ae598e95dc970b74767f19372d61af8", "commit 9fceb02",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "订单号2024010522001400000000000001",
    "order 202401054111111111111111", "订单号4111111111111111", "994111111111111111", "4111111111111111234",
    "SF4111111111111111", "INV_4111111111111111", "1234-4111111111111111-99", "4111-1111-1111-1111-1111",
    "4111 1111 1111 1111 1111", "4111111111111111f3a", "0.4111111111111111", "412.6479903772728", "SF1234567890123",
    "1700000000", "1700000000123", "1700000000123456", "1700000000123456789", "2024-01-05T12:00:00.123456Z",
    "20240105120000123456", "v3.12.4-rc.1", "978-7-111-12345-6", "6901234567892", "4006381333931",
    "IMEI 356938035643809", "8986012345678901234", "手机 13800138000", "+62 812 3456 7890", "13800138000 13900139000",
    "192.168.1.1:8080", "身份证后六位002X", "尾号1111的卡", "**** **** **** 1111", "110105491231002",
    "7192 6596 3102 4298\n4831 4989 9321 9816", "x = [4111, 1111, 1111, 1111]", "双色球 03 08 15 22 27 31 + 09",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 anna@laptop", "http://localhost:8080/users/@me",
    "mailto:anna@example.org", "risk-based-authentication-2024", "task-12345678901234567890", "asia pacific",
    "eyJ is how they begin", "sk-learn", "hf_model_name", "key-value-store",
)  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert ZH.redact(text).text is text
    assert not ZH.redact(text).counts


def test_two_secrets_in_one_sentence_are_counted_apart() -> None:
    result = ZH.redact("卡号6228480402564890018，密码是wang1990，身份证11010519491231002X")
    assert result.text == "卡号[银行卡]，密码是[密码]，身份证[身份证号]"
    assert result.counts == {"bank_card": 1, "credential": 1, "identity": 1}


def test_two_cards_in_a_row_are_both_seen() -> None:
    for joint in (" ", "\n", ",", "；", " 和 "):
        two = f"4111 1111 1111 1111{joint}5555 5555 5555 4444"
        assert EN.redact(two).text == f"[bank card]{joint}[bank card]"


def test_what_is_written_beside_a_card_stays() -> None:
    assert EN.redact("4111 1111 1111 1111 12/27 123").text == "[bank card] 12/27 123"
    assert EN.redact("4111111111111111 13800138000").text == "[bank card] 13800138000"


def test_full_width_text_around_a_secret_stays_full_width() -> None:
    text = "ＡＢＣ，卡号：４１１１１１１１１１１１１１１１！１２３。\u200b\u3000末尾"
    assert ZH.redact(text).text == "ＡＢＣ，卡号：[银行卡]！１２３。\u200b\u3000末尾"


def test_a_secret_that_two_rules_see_is_one_secret() -> None:
    result = EN.redact("password: sk-abcDEF123456abcDEF123456")
    assert (result.text, result.counts) == ("password: [API key]", {"token": 1})


def test_old_numbers_count_only_after_a_word_that_names_them() -> None:
    assert ZH.redact("身份证110105491231002").counts == {"identity": 1}
    assert not ZH.redact("110105491231002").counts
    assert EN.redact("card 4222222222222").counts == {"bank_card": 1}
    assert not EN.redact("4222222222222").counts


def test_half_a_surrogate_pair_does_no_harm() -> None:
    text = "\ud83d 密码是abc123 \udc00"
    assert ZH.redact(text).text == "\ud83d 密码是[密码] \udc00"


def test_capital_letters_that_grow_in_small_ones_shift_nothing() -> None:
    assert EN.redact("İİİ password: hunter2 İ").text == "İİİ password: [password] İ"


def test_phones_and_addresses_are_hidden_only_when_asked_for() -> None:
    text = "打13800138000，或到北京市海淀区中关村大街27号1201室，or 221 Baker Street, or +44 20 7946 0958"
    assert ZH.redact(text).text is text
    both = Redactor("zh", optional=["phone", "address"]).redact(text)
    assert both.counts == {"phone": 2, "address": 2}
    assert both.text == "打[电话]，或到[地址]，or [地址], or [电话]"


def test_an_unknown_language_or_class_is_named() -> None:
    with pytest.raises(InvalidArgument, match="zh or en") as language:
        Redactor("fr")
    assert language.value.field == "recall.language"
    with pytest.raises(InvalidArgument, match=r"'email'.*phone, address") as optional:
        Redactor(optional=["email"])
    assert optional.value.field == "admission.optional"


def test_the_classes_are_named_as_they_are_counted() -> None:
    assert {member.value for member in SecretClass} == {
        "credential", "token", "bank_card", "identity", "private_key", "phone", "address", "custom",
    }  # fmt: skip
