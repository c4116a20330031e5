"""What holds for every text, and a part of the corpus of benchmarks/redaction.py."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.redact import Redactor
from edge.admission.redact.cards import luhn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from redaction import exact, left_over
from secrets_corpus import innocents, positives
from secrets_corpus.everyday import EVERYDAY

SEED = 20260101
ZH = Redactor()
EN = Redactor("en")
ALL = Redactor("en", ["phone", "address"], {"own": r"own-\d+", "any": "zz."})

PIECES = (
    "密码", "密码是", "password", " is ", ": ", "=", "abc123", "hunter2", "[密码]", "[password]", "[own]",
    "4111 1111 1111 1111", "4111", "1111", "\n", "\n> ", " ", "11010519491231002X", "sk-abcDEF123456abcDEF123456",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7", "://a:", "@host", '"', "'", "“", "”", "token", "，", "。",
    "４１１１", "\u200b", "İ", "own-1", "zza", "eyJ", ".", "-", "\\n", "my ", "的", "卡号", "order ", "\ud800", "😀",
)  # fmt: skip
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@given(texts)
def test_redacting_again_changes_nothing(text: str) -> None:
    for redactor in (ZH, EN, ALL):
        once = redactor.redact(text)
        again = redactor.redact(once.text)
        assert again.text is once.text
        assert not again.counts


@given(texts)
def test_a_text_without_findings_is_the_very_same(text: str) -> None:
    result = ZH.redact(text)
    assert bool(result.counts) == (result.text != text)
    if not result.counts:
        assert result.text is text


@given(
    st.text(
        alphabet=st.characters(
            codec="utf-8", exclude_categories=["Nd", "P", "S", "Cf"], exclude_characters="Pp密口暗MmSs助"
        )
    )
)
def test_words_without_digits_and_names_of_secrets_stay(text: str) -> None:
    assert ZH.redact(text).text is text


@given(st.integers(10**15, 10**19 - 1).map(str).filter(lambda digits: not luhn(digits)))
def test_an_order_number_that_fails_luhn_stays(digits: str) -> None:
    frames = ("{}", "订单{}已发货", "order {} shipped")
    # 18 digits may be an identity number, by their own check.
    assert all("bank_card" not in ZH.redact(frame.format(digits)).counts for frame in frames)


@given(
    st.sampled_from(["4111111111111111", "11010519491231002X"]), st.text(alphabet="0123456789", min_size=1, max_size=12)
)
def test_a_secret_inside_a_longer_number_is_none(secret: str, more: str) -> None:
    longer = more + secret
    found = ZH.redact(longer).counts
    # The longer number may be a card by itself, which its own check digit decides.
    assert not found or (luhn(longer) and longer.isdigit() and len(longer) <= 19)


@pytest.fixture(scope="module")
def part() -> list[object]:
    return list(positives(SEED, 1200))


def test_of_the_corpus_hardly_a_secret_is_missed(part: list[object]) -> None:
    missed = [case for case in part if left_over(case, ZH.redact(case.text).text)]
    assert len(missed) <= len(part) * 0.005, (SEED, [(case.form, case.text[:80]) for case in missed[:5]])


def test_of_the_corpus_hardly_anything_around_a_secret_is_touched(part: list[object]) -> None:
    harmed = [case for case in part if not exact(case, ZH.redact(case.text).text)]
    assert len(harmed) <= len(part) * 0.005, (SEED, [(case.form, case.text[:80]) for case in harmed[:5]])


def test_of_the_corpus_hardly_an_innocent_text_is_hidden() -> None:
    cases = list(innocents(SEED, 3000))
    wrong = [case for case in cases if ZH.redact(case.text).counts]
    assert len(wrong) <= len(cases) * 0.002, (SEED, [(case.kind, case.text[:80]) for case in wrong[:5]])


def test_everyday_talk_stays() -> None:
    for lines in EVERYDAY.values():
        for line in (*lines, "\n".join(lines)):
            assert ZH.redact(line).text is line


def test_threads_do_not_disturb_each_other() -> None:
    cases = [case.text for case in positives(3, 120)] + [case.text for case in innocents(4, 120)]
    random.Random(5).shuffle(cases)
    alone = [ZH.redact(text) for text in cases]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ZH.redact, cases * 3))
    assert together == alone * 3
