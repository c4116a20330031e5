from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.chunk import LIMIT, chunk
from edge.admission.visible import has_visible


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in chunk(text)]


CRUMBS = st.sampled_from(
    [
        "天",
        "地玄黄",
        "。",
        "！",
        "，",
        ". ",
        "3.14",
        "a",
        "word ",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "\u200b",
        "\0",
        "👨‍👩‍👧",
        "e\u0301",
        "”",
        "?x=1;y",
    ]
)


@given(
    st.lists(st.tuples(CRUMBS, st.integers(1, 150)), max_size=12).map(lambda parts: "".join(p * n for p, n in parts))
)
def test_pieces_are_in_order_disjoint_small_visible_and_leave_out_only_what_cannot_be_seen(text: str) -> None:
    at = 0
    for start, end in chunk(text):
        assert at <= start < end <= start + LIMIT
        assert not has_visible(text, at, start)
        assert has_visible(text, start, end)
        at = end
    assert not has_visible(text, at)


@given(st.text(alphabet="天地。， \n", max_size=2000))
def test_between_pieces_of_ordinary_text_lies_only_white_space(text: str) -> None:
    at = 0
    for start, end in [*chunk(text), (len(text), len(text))]:
        assert not text[at:start].strip()
        at = end


def test_a_short_text_is_one_piece_to_the_byte() -> None:
    assert pieces("  两行\n\n文字\0 ") == ["  两行\n\n文字\0 "]


def test_the_tail_of_a_long_run_without_marks_is_whole() -> None:
    draw = random.Random(2)
    text = "".join(draw.choice("天地玄黄宇宙洪荒日月盈昃辰宿列张") for _ in range(824)) + "门禁口令是蓝色大象"
    assert len(text) == 833
    parts = pieces(text)
    assert [len(part) for part in parts] == [278, 278, 277]
    assert "门禁口令是蓝色大象" in parts[-1]


def test_paragraphs_stay_whole_and_apart() -> None:
    one, two = "第一段说的是猫。" * 20, "第二段说的是狗。" * 20
    assert pieces(f"{one}\n\n{two}") == [one, two]
    assert pieces(f"{one}\n{two}") == [one, two]


def test_a_list_of_short_lines_travels_together() -> None:
    lines = [f"- 第{n}件事要记得做" for n in range(60)]
    parts = pieces("\n".join(lines))
    assert all(len(part) >= 100 for part in parts)
    assert [line for part in parts for line in part.split("\n")] == lines


def test_a_heading_goes_with_what_it_heads() -> None:
    body = "这一段说的是安装的步骤。" * 20
    assert pieces(f"前文在此。{body}\n\n# 安装\n\n{body}")[-1].startswith("# 安装")


def test_sentences_are_cut_at_their_ends_and_no_crumb_is_left() -> None:
    parts = pieces("今天天气很好我们去公园散步了。" * 20 + "好。")
    assert all(part.endswith("。") for part in parts)
    assert all(len(part) > 60 for part in parts)


def test_numbers_and_addresses_are_not_sentence_ends() -> None:
    text = "版本是3.14的发布见https://example.org/a.b?c=d;e" + "好" * 240 + "。" + "然后" * 60 + "。"
    assert "3.14的发布见https://example.org/a.b?c=d;e" in pieces(text)[0]


def test_closing_quotes_stay_with_their_sentence() -> None:
    text = "他说：“我们明天一起去看海吧。”" * 30
    assert all(part.endswith("”") for part in pieces(text))


@pytest.mark.parametrize("cluster", ["👨‍👩‍👧‍👦", "e\u0301\u0323", "👍🏽", "❤️", "🇨🇳"])
def test_a_hard_cut_parts_no_character(cluster: str) -> None:
    for shift in range(len(cluster)):
        parts = pieces("x" * shift + cluster * 200)
        assert all(not part.replace(cluster, "").strip("x") for part in parts)


@pytest.mark.parametrize(
    "text",
    ["a" * 2**20, "\n" * 2**20, "。" * 2**20, "." * 2**20 + "a", "a。" * 2**17, "a\n\n" * 2**16, "\u0301" * 2**18],
)
def test_a_mebibyte_of_anything_is_cut(text: str) -> None:
    assert all(end - start <= LIMIT for start, end in chunk(text))


def test_nothing_visible_is_no_piece() -> None:
    assert chunk("") == chunk(" \n" * 1000) == chunk("\u200b" * 1000) == []


@pytest.mark.parametrize("gap", ["\n\n", "\r\n\r\n", "\n \t\n", "\u2029\u2029"])
def test_a_blank_line_of_any_kind_parts_paragraphs(gap: str) -> None:
    one, two = "第一段说的是猫。" * 12, "第二段说的是狗。" * 14
    three = "第三段说的是鱼。" * 16
    assert pieces(gap.join((one, two, three))) == [one, two, three]
