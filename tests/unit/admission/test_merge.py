from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.merge import CHANGE_MARGIN, MERGE_AT, Relation, merge_at, merged_access, merged_weight, relate

HERE = Path(__file__).parent
ZH, EN = MERGE_AT
NEAR = 0.999


class Pair(NamedTuple):
    older: str
    newer: str
    # By model.
    cosines: dict[str, float]

    @property
    def model(self) -> str:
        return ZH if re.search("[\u3400-\u9fff]", self.older + self.newer) else EN

    @property
    def above(self) -> bool:
        return self.cosines[self.model] >= merge_at(self.model)


def table(name: str, part: int = 0) -> list[Pair]:
    """The pairs of a file; of one with a line "# apart" or "# kept back", those before it or those after it."""
    lines = re.split("# (?:apart|kept back)\n", (HERE / f"merge_{name}.txt").read_text("utf-8"))[part].splitlines()
    rows = [line.split(" | ") for line in lines if line[:1] != "#"]
    return [
        Pair(older, newer, dict(zip((ZH, EN), map(float, near.split()), strict=True))) for near, older, newer in rows
    ]


def ids(pair: Pair) -> str:
    return f"{pair.older} | {pair.newer}"


NEAR_MISSES = table("near_misses")
PARAPHRASES = table("paraphrases")
FRESH_NEAR_MISSES = table("fresh_near_misses") + table("fresh_near_misses", 1)
FRESH, KEPT_BACK = table("fresh_paraphrases"), table("fresh_paraphrases", 1)
CHANGES, NO_CHANGES = table("changes"), table("changes", 1)


def relation(older: str, newer: str, cosine: float = NEAR, **more: bool) -> Relation:
    return relate(older, newer, cosine, merge_at(ZH), **more)


def test_a_near_miss_is_never_merged_however_near_its_vectors() -> None:
    both = [
        (pair, (older, newer)) for pair in NEAR_MISSES + FRESH_NEAR_MISSES for older, newer in (pair[:2], pair[1::-1])
    ]
    assert not [ids(pair) for pair, texts in both if relation(*texts) is Relation.SAME]


def test_there_are_hundreds_of_near_misses_and_most_are_as_near_as_paraphrases() -> None:
    both = NEAR_MISSES + FRESH_NEAR_MISSES
    assert len({(pair.older, pair.newer) for pair in both}) >= 1200
    assert sum(pair.above for pair in both) >= 500


@pytest.mark.parametrize("model", [ZH, EN])
def test_nine_of_ten_paraphrases_that_are_near_enough_are_merged(model: str) -> None:
    above = [pair for pair in PARAPHRASES if pair.model == model and pair.above]
    merged = [pair for pair in above if relate(*pair[:2], pair.cosines[model], merge_at(model)) is Relation.SAME]
    assert len(above) >= 120
    assert len(merged) >= 0.9 * len(above)


@pytest.mark.parametrize(("model", "share"), [(ZH, 0.5), (EN, 0.6)])
def test_of_paraphrases_that_no_rule_was_made_for_more_than_half_are_merged(model: str, share: float) -> None:
    """A floor for what benchmarks/merging.py measures, lest the rules come to fit their own examples alone."""
    above = [pair for pair in KEPT_BACK if pair.model == model and pair.above]
    merged = [pair for pair in above if relate(*pair[:2], pair.cosines[model], merge_at(model)) is Relation.SAME]
    assert len(above) >= 35
    assert len(merged) >= share * len(above)


def test_english_is_merged_as_well_where_only_the_chinese_model_runs() -> None:
    above = [pair for pair in PARAPHRASES if pair.model == EN and pair.cosines[ZH] >= merge_at(ZH)]
    merged = [pair for pair in above if relate(*pair[:2], pair.cosines[ZH], merge_at(ZH)) is Relation.SAME]
    assert len(merged) >= 0.9 * len(above) > 80


def test_a_paraphrase_is_no_contradiction_and_says_the_same_both_ways() -> None:
    both = PARAPHRASES + FRESH + KEPT_BACK
    there = {ids(pair): relation(pair.older, pair.newer) for pair in both}
    back = {ids(pair): relation(pair.newer, pair.older) for pair in both}
    assert there == back
    assert not [pair for pair, found in there.items() if found is Relation.CONTRADICTS]


@pytest.mark.parametrize("pair", CHANGES, ids=ids)
def test_what_changed_takes_the_place_of_what_was(pair: Pair) -> None:
    assert relation(pair.older, pair.newer) is Relation.CONTRADICTS


@pytest.mark.parametrize("pair", NO_CHANGES, ids=ids)
def test_what_may_both_be_so_stands_apart(pair: Pair) -> None:
    assert relation(pair.older, pair.newer) is Relation.APART


def test_most_changes_are_near_enough_to_be_looked_at() -> None:
    near = [pair.cosines[pair.model] >= merge_at(pair.model) - CHANGE_MARGIN for pair in CHANGES]
    assert sum(near) >= 0.9 * len(near)


@pytest.mark.parametrize("cosine", [0.9099, 0.5, 0.0, -1.0, math.nan])
def test_the_same_words_are_not_merged_when_their_vectors_are_not_near(cosine: float) -> None:
    assert relate("我住在上海", "我住上海", cosine, 0.91) is Relation.APART


@pytest.mark.parametrize("cosine", [0.6, 0.0, math.nan])
def test_what_is_far_away_is_no_contradiction(cosine: float) -> None:
    assert relate("我住在上海", "我搬到杭州了", cosine, 0.91) is Relation.APART


@pytest.mark.parametrize(
    "text", ["明天下午三点开会", "下周五交报告", "今年去日本", "the dentist is tomorrow", "we leave next week"]
)
def test_a_day_that_is_counted_from_today_is_another_day_tomorrow(text: str) -> None:
    assert relation(text, text) is Relation.SAME
    assert relation(text, text, same_day=False) is Relation.APART


@pytest.mark.parametrize("text", ["我对花生过敏", "每周五下午三点开会", "合同2026年3月1日到期", "I live in Boston"])
def test_what_counts_from_nothing_is_the_same_on_any_day(text: str) -> None:
    assert relation(text, text, same_day=False) is Relation.SAME


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("不，要咖啡", "不要咖啡"),
        ("No, more sugar", "No more sugar"),
        ("我喜欢咖啡", "我喜欢咖啡？"),
        ("你喜欢咖啡", "你喜欢咖啡吗"),
        ("听《我不喜欢你》", "听《我讨厌你》"),
        ("运行 `make test`", "运行 `make test -k`"),
        ("“甲”住0号", "“甲”住“甲”号"),
        ("来了~5个", "来了5个"),
        ("体温-5度", "体温5度"),
        ("", "我住在上海"),
    ],
)
def test_marks_that_change_the_meaning_keep_apart(older: str, newer: str) -> None:
    assert relation(older, newer) is Relation.APART


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("我家的猫叫“豆包”", "我家的猫叫豆包"),
        ("我體重六十公斤。", "我体重６０公斤"),
        ("密码是\u200bSunny2024", "密码是Sunny2024！"),
        ("I’m  vegetarian", "I'm vegetarian."),
        ("我叫张伟。", "我叫张伟"),
    ],
)
def test_how_it_is_written_is_no_difference(older: str, newer: str) -> None:
    assert relation(older, newer) is Relation.SAME


def test_a_text_that_is_no_sentence_is_the_same_only_as_itself() -> None:
    long = "我住在上海，" * 200
    assert relation(long, f" {long}") is Relation.SAME
    assert relation(long, long.replace("住在", "住")) is Relation.APART


@given(st.text(max_size=80))
def test_a_text_says_what_it_says(text: str) -> None:
    assert relation(text, text) is Relation.SAME


SENTENCES = st.sampled_from([pair.older for pair in PARAPHRASES + FRESH + KEPT_BACK])


@given(st.one_of(SENTENCES, st.text(max_size=60)), st.one_of(SENTENCES, st.text(max_size=60)))
def test_it_never_raises_and_same_is_the_same_both_ways(older: str, newer: str) -> None:
    assert (relation(older, newer) is Relation.SAME) == (relation(newer, older) is Relation.SAME)


@given(SENTENCES, st.data())
def test_another_digit_is_never_the_same(sentence: str, data: st.DataObject) -> None:
    places = [at for at, char in enumerate(sentence) if char in "0123456789"]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([char for char in "123456789" if char != sentence[at]]))
    assert relation(sentence, sentence[:at] + digit + sentence[at + 1 :]) is not Relation.SAME


@given(SENTENCES, st.sampled_from(["不", "没", "别", "not ", "never "]), st.data())
def test_another_not_is_never_the_same(sentence: str, word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sentence)))
    if word.isascii() != sentence.isascii() or (word.isascii() and sentence[at - 1 : at] != " "):
        return
    assert relation(sentence, sentence[:at] + word + sentence[at:]) is not Relation.SAME


def test_every_model_has_a_threshold_and_a_variant_has_its_models() -> None:
    assert merge_at("bge-small-zh-v1.5-q") == 0.91
    assert merge_at("bge-small-zh-v1.5-q-tuned") == 0.91
    assert merge_at("bge-m3") == 0.93


def test_what_was_merged_has_the_greater_weight_and_all_recalls() -> None:
    assert merged_weight(1.0, 5.0) == merged_weight(5.0, 1.0) == 5.0
    assert merged_weight(9.0, 40.0) == 10.0
    assert merged_access((3, 1000), (2, 900)) == (5, 1000)
