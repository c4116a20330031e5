from __future__ import annotations

import subprocess
import sys
import threading
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.lexicon.runs import fold, runs
from edge.lexicon.stems import stem
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
        ("painted", "She was painting the fence"),
        ("paintings", "she paints"),
        ("families", "our family"),
        ("臺灣", "我在台湾"),
        ("台湾", "我在臺灣"),
        ("里面", "在盒子裏面"),
        ("裡", "在盒子里"),
        ("發展", "头发和发展"),
        ("iPhone15", "买了iphone15"),
        ("𠮷野家", "在𠮷野家吃饭"),
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


def test_pairs_inside_a_word_and_words_that_are_their_stem_count_double() -> None:
    assert Counter(LEXICON.query_terms("豆腐电影")) == Counter(
        ["豆腐", "豆腐", "腐电", "电影", "电影", "豆", "腐", "电", "影"]
    )
    assert LEXICON.query_terms("password painted") == ["password", "painted", "paint", "password"]


def test_of_terms_that_count_double_all_stand_once_before_any_second() -> None:
    terms = LEXICON.query_terms("我家的猫叫豆包 password 科幻电影")
    distinct = len(set(terms))
    assert len(set(terms[:distinct])) == distinct < len(terms)


def test_function_words_are_left_out_only_while_others_remain() -> None:
    assert set(LEXICON.query_terms("what is the password")) == {"password"}
    assert set(LEXICON.query_terms("what is it")) == {"what", "is", "it"}
    assert LEXICON.query_terms("的") == ["的"]
    assert "什么" not in LEXICON.query_terms("电影叫什么名字")
    assert "什么" in LEXICON.query_terms("什么") and LEXICON.query_terms("为什么")


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
def test_every_query_term_of_a_text_is_among_its_index_terms(text: str) -> None:
    for lexicon in (LEXICON, CharacterLexicon()):
        terms = lexicon.query_terms(text)
        assert max(Counter(terms).values(), default=0) <= 2
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


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, edge.lexicon.words as w; names = ('rjieba', 'opencc', 'Stemmer')\n"
        "print([name in sys.modules for name in names]); lexicon = w.WordLexicon(['gpt'])\n"
        "lexicon.index_terms('12 ab'); print([name in sys.modules for name in names])\n"
        "lexicon.index_terms('我家的猫 painted'); print([name in sys.modules for name in names])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[:3] == [
        "[False, False, False]",
        "[False, False, False]",
        # The dictionary is for queries.
        "[False, True, True]",
    ]


HAN = [
    chr(c) for a, b in ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x323B0)) for c in range(a, b)
]


def test_folding_a_folded_character_changes_nothing() -> None:
    folded = fold("\n".join(HAN))
    assert fold(folded) == folded


def test_a_character_folds_alike_wherever_it_stands() -> None:
    assert "".join(fold(char) for char in HAN) == fold("".join(HAN))


@given(st.text(max_size=80))
def test_folding_twice_is_folding_once(text: str) -> None:
    # But for the spaces set around symbols, which are no part of any run.
    assert fold(fold(text)).split() == fold(text).split()
    assert list(runs(fold(text))) == list(runs(text))


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("我在臺灣的時候寫過一個軟體", "我在台湾的时候写过一个软体"),
        ("頭髮乾了就出發", "头发干了就出发"),
        ("裏面的鐘錶", "里面的钟表"),
        ("這裡有什麼麵包？", "这里有什么面包？"),
    ],
)
def test_traditional_and_simplified_writing_have_equal_terms(traditional: str, simplified: str) -> None:
    assert LEXICON.index_terms(traditional) == LEXICON.index_terms(simplified)
    assert LEXICON.query_terms(traditional) == LEXICON.query_terms(simplified)


@given(
    st.lists(
        st.sampled_from(["painting", "Dogs", "v1.5", "我家的貓", "豆包", "裏面", " ", "，", "gen-itgc"]), max_size=12
    )
)
def test_terms_depend_on_the_text_alone(parts: list[str]) -> None:
    text = "".join(parts)
    again = WordLexicon()
    assert LEXICON.index_terms(text) == again.index_terms(text)
    assert LEXICON.query_terms(text) == again.query_terms(text)


def test_numbers_codes_and_names_with_digits_have_no_stem() -> None:
    assert set(LEXICON.index_terms("iPhone15s")) == {"iphone15s", "iphone", "iphon", "15"}
    assert stem("itgc") == "itgc"
    assert [stem(word) for word in ("15s", "as", "naïves", "v1")] == ["15s", "as", "naïves", "v1"]


def test_a_name_is_a_word_of_what_is_stored_after_and_of_queries() -> None:
    lexicon = WordLexicon(["門禁口令"])
    assert "门禁口令" in lexicon.index_terms("新的门禁口令是蓝色大象")
    assert lexicon.query_terms("门禁口令").count("门禁口令") == 2
    lexicon.add_terms(["豆包", "蓝色大象AI", "", "x", "猫"])
    assert Counter(lexicon.query_terms("猫叫豆包"))["豆包"] == 2
    assert "蓝色大象" in lexicon.index_terms("蓝色大象AI")


def test_a_name_inside_another_is_found_too() -> None:
    terms = WordLexicon(["清华大学", "清华大学附中"]).index_terms("在清华大学附中读书")
    assert {"清华大学", "清华大学附中"} <= set(terms)


@given(
    st.text(alphabet="豆包门禁口令猫 a", max_size=20),
    st.lists(st.text(alphabet="豆包门禁口令", max_size=5), max_size=4),
)
def test_what_was_stored_before_a_name_was_known_is_still_found_by_it(text: str, names: list[str]) -> None:
    before = set(WordLexicon().index_terms(text))
    after = WordLexicon(names)
    for name in names:
        if name and name in text:
            assert set(after.query_terms(name)) & before


def test_names_may_be_added_while_others_look_for_them() -> None:
    lexicon = WordLexicon()
    adding = [
        threading.Thread(target=lambda i=i: lexicon.add_terms(f"豆包{chr(0x4E00 + j)}{i}号" for j in range(200)))
        for i in "甲乙丙丁"
    ]
    for thread in adding:
        thread.start()
    for _ in range(200):
        lexicon.index_terms("豆包一甲号和豆包丁丙号")
    for thread in adding:
        thread.join()
    assert all(f"豆包一{i}号" in lexicon.index_terms(f"豆包一{i}号") for i in "甲乙丙丁")


@pytest.mark.parametrize(
    ("query", "text", "least", "most"),
    [
        ("我家的猫", "我家的猫叫豆包", 0.8, 1.0),
        ("我家的猫", "今天下雨", 0.0, 0.0),
        ("painted v1.5", "She was painting with V1.5", 0.3, 1.0),
        ("臺灣", "台湾", 1.0, 1.0),
        ("猫", "", 0.0, 0.0),
        ("what is the", "what is the matter", 0.0, 0.0),
    ],
)
def test_the_share_of_a_query_that_a_text_has(query: str, text: str, least: float, most: float) -> None:
    assert least <= LEXICON.share(LEXICON.query_terms(query), text) <= most
    assert LEXICON.share([], text) == 0.0
