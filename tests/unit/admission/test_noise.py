from __future__ import annotations

import base64
import json
import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.admission.noise import RULES, judge
from edge.types import NOTE_KIND, MemoryState, Turn


def turn(text: str, role: str = "user", attributes: object = None, **more: object) -> Turn:
    raw = b"" if attributes is None else msgpack.packb(attributes)
    return Turn("source", "session", 0, role, 0, text, attributes=raw, **more)  # type: ignore[arg-type]  # kind, state


def rule(text: str, role: str = "user", attributes: object = None, keep: tuple[str, ...] = ()) -> str | None:
    found = judge(turn(text, role, attributes), keep)
    return found and found.rule


def each(joined: str) -> list[str]:
    return joined.split("|")


# 5,000 characters: more than one would keep as a key.
ENCODED = base64.b64encode(random.Random(7).randbytes(3750)).decode()


@pytest.mark.parametrize(
    "text",
    each(
        "你好|你好！|您好呀～|在吗？|在吗在吗|好的|好的，谢谢！|好的好的|谢谢你|謝謝|嗯|嗯嗯嗯|哈哈哈哈哈哈|哈哈，好的|收到|早上好！|晚安😴|拜拜"
        "|hi|Hello!|ok|OK.|okkkk|ok，谢谢|ok好的|Thanks.|Thank you so much!|hi there|good morning|you’re welcome"
        "|haha ok|不用谢！|ＯＫ|你好👋|  你好\n|好的~~~"
    ),
)
@pytest.mark.parametrize("role", ["user", "assistant", ""])
def test_a_greeting_thanks_or_assent_alone_is_noise(text: str, role: str) -> None:
    assert rule(text, role) == "greeting"


@pytest.mark.parametrize(
    "text",
    [
        *each(
            "是的，选B|是的|不是|不要|不|对|可以|行|改成 3000|42|3.14|B|b|豆包|猫|张伟|小明|Roger|Ty|K|2026-01-06"
            "|下周二|三点|13:30|好的，明天去|你好，我叫李小雨，幸会幸会。|谢谢，不过我对花生过敏|在吗？帮我订个位"
            "|晚安，明天六点叫我|不错|厉害|继续|你好吗啡|好人|好汉歌|好多|嗯哼公司|谢谢花|哈尔滨|哈利波特|高兴|ok5|yes|no|sure|never"
            "|hi-fi|go on|Thanks Harriet"
        ),
        "https://example.com/a",
        "13800138000",
        "我家的猫叫豆包",
        "重跑gen-itgc后50条",
        "安全\u202egpj.exe",
        "\x1b[2J已清空",
        "שלום לכולם",
        "это важно",
        "a" * 1_000_000,
        "床前明月光疑是地上霜" * 82 + "门禁口令是蓝色大象",
        "门禁口令是蓝色大象",
        "prefix\0suffix",
        "6a1f2b3c4d5e6f708192a3b4c5d6e7f80912a3b4",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGqkU0mFm1vC5iUe9kZ3o8yXrQ2nT4wLhB6dPzJxRtEy me@home",
        f"这是我的头像 data:image/png;base64,{ENCODED}",
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
@pytest.mark.parametrize("role", ["user", "assistant", ""])
def test_what_may_answer_a_question_or_tells_something_is_kept(text: str, role: str) -> None:
    assert rule(text, role) is None


@pytest.mark.parametrize("text", ["。。。", "？？", "...", "👍", "😂😂😂", "!!!", "-----", "🎂 🎉", "~", "—"])
def test_marks_and_emoji_alone_are_too_short(text: str) -> None:
    assert rule(text) == "too_short"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("tool", "tool_dump"),
        ("function", "tool_dump"),
        ("Tool-Result", "tool_dump"),
        ("thinking", "reasoning"),
        ("reasoning", "reasoning"),
        ("system", "system_prompt"),
        ("developer", "system_prompt"),
        ("file-history-snapshot", "structural"),
        ("progress", "structural"),
        ("user", None),
        ("assistant", None),
        ("", None),
        ("Rosalind", None),
        ("门铃", None),
    ],
)
def test_a_role_that_no_speaker_has_is_noise(role: str, expected: str | None) -> None:
    assert rule("我把备用钥匙放在阳台第三个花盆下面。", role) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"type": "thinking"}, "reasoning"),
        ({"content_type": "thoughts"}, "reasoning"),
        ({"type": "tool_result", "id": 1}, "tool_dump"),
        ({"type": "text"}, None),
        ({"type": "system"}, None),
        ({"type": "summary"}, None),
        ({"type": ["thinking"]}, None),
        ({"type": {"a": b"\xff"}}, None),
        ({"mood": "type"}, None),
        ({}, None),
    ],
)
def test_attributes_may_name_the_kind_of_a_block(attributes: object, expected: str | None) -> None:
    assert rule("先想想这件事。", "assistant", attributes) == expected


@pytest.mark.parametrize(
    "raw", [b"\xddtype\x7f", b"\x81\xa4type", b"type", b"\x81\x90\xa4type", b"\xc1type", b"\xa4type"]
)
def test_attributes_that_are_broken_say_nothing(raw: bytes) -> None:
    assert judge(Turn("s", "s", 0, "user", 0, "你好，我叫李小雨", attributes=raw)) is None


DIFF = "diff --git a/a.py b/a.py\nindex 1a2b..3c4d\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n y = 3\n"
TRACE = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\nKeyError: '门'\n"
JAVA = "java.lang.IllegalStateException: closed\n\tat a.B.c(B.java:3)\nCaused by: java.io.IOException\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DIFF, "tool_dump"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch", "tool_dump"),
        (TRACE, "tool_dump"),
        (JAVA, "tool_dump"),
        ("     1→import os\n     2→\n     3→print(1)\n", "tool_dump"),
        ('<tool_call>{"name": "ls"}</tool_call>', "tool_dump"),
        ("<function_calls>\n<invoke/>\n</function_calls>", "tool_dump"),
        ("<think>\n先看看日历。\n</think>", "reasoning"),
        ("<permissions instructions>Read only.</permissions instructions>", "structural"),
        ("<system-reminder>a</system-reminder>\n\n<system-reminder>b</system-reminder>", "structural"),
        (ENCODED, "base64"),
        ("\n".join(ENCODED[at : at + 76] for at in range(0, len(ENCODED), 76)), "base64"),
        (f"data:image/png;base64,{ENCODED}", "base64"),
        (f"![image](data:image/jpeg;base64,{ENCODED})", "base64"),
        (random.Random(7).randbytes(600).hex(), "base64"),
        (random.Random(7).randbytes(600).decode("utf-8", "replace"), "binary"),
        ("\x00\x01\x02\x03" * 50, "binary"),
        ('{"type": "heartbeat", "seq": 7}', "structural"),
        ('{"type": "ping"}', "structural"),
        ('{"type": "tool_result", "tool_use_id": "t", "content": "cut off', "tool_dump"),
        ('{"role": "tool", "tool_call_id": "c", "content": "晴，18 度"}', "tool_dump"),
        ('{"role": "assistant", "content": null, "tool_calls": [{"id": "c"}]}', "tool_dump"),
        ('{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}', "base64"),
    ],
    ids=lambda value: value and value[:24].encode("unicode_escape").decode(),
)
def test_what_has_no_word_of_anybody_is_noise_in_whatever_role(text: str, expected: str) -> None:
    assert rule(text, "user") == expected
    assert rule(text, "assistant") == expected


@pytest.mark.parametrize(
    "text",
    [
        f"{DIFF}\n这样改对吗？",
        f"这个报错怎么办？\n{TRACE}",
        f"{TRACE}怎么办",
        "<think>先看看。</think>今天下午三点有会。",
        "<think>一直没有结束的话",
        "<system-reminder>是什么意思？",
        "<b>粗体</b>",
        "1\t牛奶\n2\t鸡蛋\n3\t面包",
        "1. 牛奶\n2. 鸡蛋\n3. 面包",
        "- 牛奶\n- 鸡蛋\n+ 面包",
        '{"name": "张伟", "电话": "13800138000"}',
        '{"name": "张伟", "parameters": {"身高": 180}}',
        '{"type": "summary", "summary": "我们决定搬到苏州"}',
        '{"type": "heartbeat", "bpm": 72}',
        '{"role": "user", "content": "我们决定搬到苏州"}',
        '[{"role": "system", "content": "You are kind."}, {"role": "user", "content": "我们决定搬到苏州"}]',
        '{"operation": "enqueue", "type": "queue-operation", "content": "先别删那个分支"}',
        '{"type": "tool_use"} 这一行是什么意思？',
        "data: 我的生日是五月四号",
        "event: 周六聚餐",
        "id: 42",
        "data: {今晚八点}",
        ": ping 一下服务器",
        "[待办] 交电费",
        "{花括号}里的话",
    ],
)
def test_one_word_of_somebody_beside_it_keeps_it(text: str) -> None:
    assert rule(text) is None


@pytest.mark.parametrize("text", ["你好", "👍", ENCODED, '{"type": "ping"}'])
def test_what_is_remembered_explicitly_is_never_noise(text: str) -> None:
    assert judge(turn(text, "tool", kind=NOTE_KIND)) is None
    assert judge(turn(text, "tool", kind="recipe", state=MemoryState.CONFIRMED)) is None
    assert judge(turn(text, "tool")) is not None


def test_a_rule_that_is_off_leaves_the_others_on() -> None:
    assert rule("你好", keep=("greeting",)) is None
    assert rule(ENCODED, "tool", keep=("tool_dump",)) == "base64"
    assert rule("晴，18 度", "tool", keep=("tool_dump",)) is None
    assert rule("先想想。", "thinking", {"type": "tool_use"}, keep=("reasoning",)) == "tool_dump"
    assert rule("你好", "tool", keep=tuple(RULES)) is None


def test_a_reason_is_a_sentence_and_repeats_nothing_of_the_text() -> None:
    found = judge(turn("<think>\n保险箱的密码是海豚\n</think>", "assistant"))
    assert found is not None
    assert found.reason == "it is nothing but what stands between <think> and </think>"
    assert all(sentence.endswith(".") for sentence in RULES.values())


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" + "1" * 100_000 + "]", '{"type":"tool_use"' * 9]
)
def test_json_that_no_reader_can_finish_is_judged_by_what_can_be_read(text: str) -> None:
    assert rule(text, keep=tuple(RULES)) is None
    judge(turn(text))


WHO = st.sampled_from(["我", "妈妈", "小王", "我们", "他的老师", "楼下的邻居"])
WHEN = st.sampled_from(["昨天", "下周二", "今年春天", "每天早上", "刚才", "三月五号"])
DOES = st.sampled_from(["决定搬到", "喜欢去", "把钥匙放在", "看见了", "预约了", "不想再吃", "记得打开", "推荐过"])
WHAT = st.sampled_from(["苏州园林", "楼下的花店", "阳台的花盆", "那家火锅店", "牙科诊所", "新买的空调"])
OPENER = st.sampled_from(["", "你好，", "好的，", "哈哈，", "谢谢！", "嗯嗯，", "ok，"])
END = st.sampled_from(["", "。", "！", "吧？", "～😀", "……"])


@given(OPENER, WHEN, WHO, DOES, WHAT, END, st.sampled_from(["user", "assistant", "", "妈妈"]))
def test_a_sentence_of_chinese_is_never_noise(
    opener: str, when: str, who: str, does: str, what: str, end: str, role: str
) -> None:
    assert rule(opener + when + who + does + what + end, role) is None


FRAGMENTS = st.sampled_from(
    [
        *each(
            '你好|ok|<think>|</think>|{|}|[|"type":|"tool_use"|data:|\n|\0|\x1b|😀|\ud83d|1→|@@ -1|diff --git |+| at '
        ),
        *("Traceback (most recent call last):\n", "AAAA" * 40, "\ufffd" * 9, "<command-args>", "9" * 20),
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(FRAGMENTS, max_size=30).map("".join))


@given(
    TEXTS, st.one_of(st.sampled_from(["user", "assistant", "tool", ""]), st.text(max_size=20)), st.binary(max_size=40)
)
def test_any_text_is_judged_and_always_alike(text: str, role: str, attributes: bytes) -> None:
    asked = Turn("s", "s", 0, role, 0, text, attributes=attributes + b"type")
    found = judge(asked)
    assert judge(asked) == found
    assert found is None or found.rule in RULES
    assert judge(asked, RULES) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "message", "payload", "content", "role", "source", "text", "name", "input", "image_url"]
            ),
            inner | st.sampled_from(["tool_use", "text", "system", "user", "base64"]),
            max_size=5,
        )
    ),
)


@given(JSON, st.sampled_from(["user", "assistant"]))
def test_any_json_is_judged(value: object, role: str) -> None:
    found = judge(turn(json.dumps(value), role))
    assert found is None or found.rule in RULES
