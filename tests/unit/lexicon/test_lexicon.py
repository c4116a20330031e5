from __future__ import annotations

import subprocess
import sys
import threading
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.lexicon.runs import fold
from edge.lexicon.words import CharacterLexicon, WordLexicon

LEXICON = WordLexicon()


def found(query: str, text: str) -> bool:
    terms = LEXICON.query_terms(query)
    return bool(terms) and bool(set(terms) & set(LEXICON.index_terms(text)))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("猫", "我家的猫叫豆包"),
        ("豆包", "我家的猫叫豆包"),
        ("itgc", "重跑gen-itgc后50条"),
        ("GEN-ITGC", "重跑gen-itgc后50条"),
        ("50", "重跑gen-itgc后50条"),
        ("suffix", "prefix\0suffix"),
        ("don't", "I don’t know"),
        ("dont", "I don't know"),
        ("pre-edit", "the pre-edit hook"),
        ("preedit", "the pre-edit hook"),
        ("-猫", "我家的猫叫豆包"),
        ("100%", "已完成100％"),
        ("AND", "this and that"),
        ("v1.5", "bge-small-zh-v1.5"),
        ("C++", "用C++写的"),
        ("c#", "I write C# at work"),
        ("gpt4", "GPT-4 is out"),
        ("gpt", "gpt4 is out"),
        ("ＡＢＣ", "abc"),
        ("STRASSE", "straße"),
        ("café", "Cafe\u0301"),
        ("gpj", "安全\u202egpj.exe"),
        ("שלום", "אמרתי שלום לכולם"),
        ("привет", "ПРИВЕТ, мир"),
        ("ひらがな", "これはひらがなです"),
        ("집", "우리 집에서"),
        ("हिन्दी", "मुझे हिन्दी आती है"),
        ("👍", "好的👍🏽"),
        ("🇨🇳", "来自🇨🇳的问候"),
        ("❤", "我❤️你"),
        ("北京大学", "我在北京大学读书"),
    ],
)
def test_a_text_is_found_by_what_it_says(query: str, text: str) -> None:
    assert found(query, text)


@pytest.mark.parametrize(("query", "text"), [("3.14", "314"), ("c++", "c language"), ("🇨🇳", "🇯🇵"), ("狗", "我家的猫")])
def test_what_only_looks_alike_is_not_found(query: str, text: str) -> None:
    assert not found(query, text)


@pytest.mark.parametrize("query", ['"', "*", "(", " ", "\u200b", "。。。", "\0"])
def test_a_query_of_marks_has_no_terms(query: str) -> None:
    assert LEXICON.query_terms(query) == []


def test_a_chinese_query_is_not_swamped_by_its_single_characters() -> None:
    assert LEXICON.query_terms("我家的猫") == ["我家", "家的", "的猫"]


def test_function_words_are_left_out_only_while_others_remain() -> None:
    assert LEXICON.query_terms("what is the password") == ["password"]
    assert LEXICON.query_terms("what is it") == ["what", "is", "it"]
    assert LEXICON.query_terms("的") == ["的"]


def test_terms_are_repeated_as_often_as_they_occur() -> None:
    assert LEXICON.index_terms("猫和猫").count("猫") == 2
    assert LEXICON.index_terms("豆包").count("豆包") == 1


@given(st.text(max_size=80))
def test_terms_hold_only_term_characters(text: str) -> None:
    for lexicon in (LEXICON, CharacterLexicon()):
        for term in (*lexicon.index_terms(text), *lexicon.query_terms(text)):
            assert term
            assert all(unicodedata.category(c)[0] in "LNMS" or unicodedata.category(c) == "Co" for c in term), term


@given(st.text(max_size=80))
def test_every_query_term_of_a_text_is_among_its_index_terms_once(text: str) -> None:
    for lexicon in (LEXICON, CharacterLexicon()):
        terms = lexicon.query_terms(text)
        assert len(terms) == len(set(terms))
        assert set(terms) <= set(lexicon.index_terms(text))


@given(st.text(alphabet="猫狗天地ab1-.' \u200bé", min_size=1, max_size=40))
def test_any_text_with_letters_finds_itself(text: str) -> None:
    assert bool(LEXICON.query_terms(text)) == any(c.isalnum() for c in fold(text))


@given(st.characters(categories=("Lo", "Ll", "Nd")))
def test_a_query_of_one_character_keeps_its_term(char: str) -> None:
    if any(c.isalnum() for c in fold(char)):
        assert LEXICON.query_terms(char)


def test_long_runs_are_cut_and_still_found() -> None:
    assert all(len(term) <= 64 for term in LEXICON.index_terms("a" * 5000 + "." + "天" * 5000))
    assert found("a" * 5000, "a" * 5000)


def test_many_threads_get_the_same_terms() -> None:
    lexicon, results = WordLexicon(), []
    threads = [threading.Thread(target=lambda: results.append(lexicon.index_terms("南京市长江大桥"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(result == results[0] for result in results)


def test_the_dictionary_is_not_loaded_by_the_import() -> None:
    code = "import sys, edge.lexicon.words as w; w.WordLexicon().index_terms('hello'); print('rjieba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
