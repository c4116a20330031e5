"""Noise in files of other programs: synthetic events in their real formats, and real files where they are at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from session_files import BLOCKS, LINES, RAW, Event, read_events

from edge.admission.noise import judge

# A folder of session files in folders claude_code, codex, chatgpt and claude_ai. They are not part of this project.
FOLDER = os.environ.get("EDGE_SESSION_FILES", "")
LABELS = Path(__file__).with_name("noise_labels.txt")
real = pytest.mark.skipif(not FOLDER, reason="EDGE_SESSION_FILES names no folder of session files")


def claude(kind: str, content: object, **more: object) -> dict[str, object]:
    """A line of Claude Code."""
    message = {"role": kind, "content": content}
    return {"parentUuid": None, "sessionId": "s", "type": kind, "message": message, "uuid": "u", **more}


def codex(payload: dict[str, object]) -> dict[str, object]:
    return {"timestamp": "2026-01-06T09:15:59Z", "type": "response_item", "payload": payload}


def said(text: str, role: str = "user") -> dict[str, object]:
    block = "input_text" if role == "user" else "output_text"
    return codex({"type": "message", "role": role, "content": [{"type": block, "text": text}]})


def tool(name: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}


def result(content: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def thinking(words: str) -> dict[str, object]:
    return {"type": "thinking", "thinking": words, "signature": "EoQICkYICxgC"}


CLAUDE_SAID = [
    claude("user", "把登录页的超时改成 3000 毫秒"),
    claude("user", [text("帮我看看这个报错：TypeError: x is not a function")]),
    claude("user", "fix the underscore path normalization bug"),
    claude("user", "it worked!"),
    claude("user", "不要"),
    claude("user", "是的，选B"),
    claude("user", "42"),
    claude("user", "yes"),
    claude("assistant", [text("我先读一下配置文件。")]),
    claude("assistant", [text("Let me verify the fix:")]),
    claude("assistant", [text("## Done\n\n| Column | Value |\n|---|---|\n| a | 1 |\n\n```python\nprint(1)\n```")]),
    claude("user", "<system-reminder>Todo list is empty.</system-reminder>\n我们改用 PostgreSQL 吧"),
    claude("user", "<command-name>/review</command-name><command-args>看一下登录那段代码</command-args>"),
    claude("user", "[Request interrupted by user] 先别删那个分支"),
    claude("user", [text('这个 JSON 为什么不合法：{"type": "tool_use"')]),
    claude("user", "<div>这段 HTML 怎么居中</div>"),
]
CLAUDE_NOISE = [
    {"type": "summary", "summary": "Fixing the login page", "leafUuid": "u"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
    {"type": "system", "subtype": "stop_hook_summary", "hookCount": 1, "uuid": "u", "sessionId": "s"},
    {"type": "system", "subtype": "init", "cwd": "/repo", "session_id": "s", "tools": ["Bash"]},
    {"type": "progress", "toolUseID": "toolu_1", "data": {"type": "bash_progress", "output": "building"}},
    {"type": "queue-operation", "operation": "dequeue", "sessionId": "s"},
    {"type": "attachment", "attachment": {"type": "hook_success", "content": "ok"}, "uuid": "u"},
    claude("assistant", [thinking("The user wants me to change the timeout. Let me look for it.")]),
    claude("assistant", [thinking("先想想要改哪里。"), tool("Grep", pattern="timeout")]),
    claude("assistant", [{"type": "redacted_thinking", "data": "EmwKAhgB"}]),
    claude("assistant", [tool("Bash", command="git status", description="Show status")]),
    claude("assistant", [tool("Edit", file_path="/repo/a.py", old_string="1", new_string="2")]),
    claude("assistant", [tool("TodoWrite", todos=[{"content": "改超时", "status": "pending"}])]),
    claude("user", [result("File written successfully")]),
    claude("user", [result([text("我看完了整个仓库，结构如下。")])]),
    claude("user", [result("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'")]),
    claude("user", [result("diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new")]),
    claude("user", [result([{"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}}])]),
    claude("user", [{"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}}]),
    claude("user", [text("[Request interrupted by user]")]),
    claude("user", [text("[Request interrupted by user for tool use]")]),
    claude("user", "<command-name>/clear</command-name>\n<command-args></command-args>"),
    claude("user", "<command-name>/model</command-name><command-args>opus</command-args>"),
    claude("user", "<local-command-stdout>Set model to opus</local-command-stdout>"),
    claude("user", "<bash-input>ls</bash-input>"),
    claude("user", "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>"),
    claude("user", "<system-reminder>\nThe file a.py was changed by a linter.\n</system-reminder>"),
    claude("user", "<local-command-caveat>Caveat: the messages below</local-command-caveat>"),
    claude("user", "Contents of CLAUDE.md", isMeta=True),
    claude("user", "This session is a summary of an earlier one.", isCompactSummary=True),
    claude("user", "This session is being continued from a previous conversation that ran out of context. Summary: a"),
    claude("assistant", [text("No response requested.")]),
]  # fmt: skip
CODEX_SAID = [
    said("Check git status, then read README."),
    said("以后提交信息都用中文写"),
    said("Working tree is clean.", "assistant"),
    said("改好了，测试全部通过。", "assistant"),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "List the files."}},
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "There are two files."}},
]
CODEX_NOISE = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/repo", "instructions": "Use tools."}},
    {"type": "turn_context", "payload": {"cwd": "/repo", "model": "gpt-5"}},
    {"type": "compacted", "payload": {"message": "Conversation compacted"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {"total": 120}}},
    {"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "**Checking status**"}},
    {"type": "event_msg", "payload": {"type": "agent_message_delta", "delta": "Work"}},
    {"type": "event_msg", "payload": {"type": "exec_command_end", "stdout": "clean", "exit_code": 0}},
    codex({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first"}]}),
    codex({"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "ls"}', "call_id": "c"}),
    codex({"type": "function_call_output", "call_id": "c", "output": "file1.txt\nfile2.txt"}),
    codex({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c"}),
    codex({"type": "custom_tool_call_output", "call_id": "c", "output": "Done"}),
    codex({"type": "web_search_call", "status": "completed", "action": {"query": "timeouts"}}),
    codex({"type": "ghost_snapshot", "ghost_commit": {"id": "abc"}}),
    said("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"),
    said("<user_instructions>\nUse tabs.\n</user_instructions>"),
    codex({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox is on."}]}),
    said("<permissions instructions>\nRead only.\n</permissions instructions>"),
]  # fmt: skip
STREAM = [
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"你"}}',
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"好"}}',
    'data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"he"}}]}',
    'data: {"object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]',
    "data: [DONE]",
    ": keep-alive",
    ": ping - 2026-01-06 09:15:59.9",
    '{"type":"response.output_text.delta","delta":"你"}',
    '{"type":"message_start","message":{"role":"assistant","content":[]}}',
    '{"type":"stream_event","event":{"type":"message_stop"},"session_id":"s"}',
]


def event(words: str, role: str = "user") -> Event:
    return Event("synthetic", 0, role, words)


def events_of(folder: Path, lines: list[dict[str, object]], how: str) -> list[Event]:
    path = folder / "session.jsonl"
    # More than one line, so that it is read as lines.
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in [*lines, *lines]), "utf-8")
    return read_events(path, how)


@pytest.mark.parametrize("how", [BLOCKS, RAW, LINES])
@pytest.mark.parametrize("lines", [CLAUDE_SAID, CODEX_SAID], ids=["claude_code", "codex"])
def test_what_was_said_is_kept_however_it_is_sent(tmp_path: Path, lines: list[dict[str, object]], how: str) -> None:
    events = events_of(tmp_path, lines, how)
    assert len(events) >= 2 * len(lines)
    assert [(e.text, judge(e.turn())) for e in events if judge(e.turn())] == []


@pytest.mark.parametrize("how", [RAW, LINES])
@pytest.mark.parametrize("lines", [CLAUDE_NOISE, CODEX_NOISE], ids=["claude_code", "codex"])
def test_what_nobody_said_is_noise_however_it_is_sent(tmp_path: Path, lines: list[dict[str, object]], how: str) -> None:
    events = events_of(tmp_path, lines, how)
    assert len(events) >= 2 * len(lines)
    # Whoever leaves the line away leaves its marks away.
    marked = ("Contents of CLAUDE.md", "This session is a summary of an earlier one.", "Sandbox is on.")
    assert [e.text for e in events if not judge(e.turn()) and e.text not in marked] == []


@pytest.mark.parametrize("lines", [CLAUDE_NOISE, CODEX_NOISE], ids=["claude_code", "codex"])
def test_what_nobody_said_is_noise_by_its_blocks_too(tmp_path: Path, lines: list[dict[str, object]]) -> None:
    marked = ("Contents of CLAUDE.md", "This session is a summary of an earlier one.")
    assert [e.text for e in events_of(tmp_path, lines, BLOCKS) if not judge(e.turn()) and e.text not in marked] == []


@pytest.mark.parametrize("words", STREAM)
@pytest.mark.parametrize("role", ["", "assistant", "user"])
def test_pieces_of_a_stream_are_noise(words: str, role: str) -> None:
    found = judge(event(words, role).turn())
    assert found is not None
    assert found.rule == "stream_fragment"


def test_a_conversation_exported_from_chatgpt_keeps_its_sentences(tmp_path: Path) -> None:
    def node(role: str, kind: str, *parts: object) -> dict[str, object]:
        return {"message": {"author": {"role": role}, "content": {"content_type": kind, "parts": parts}}}

    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://1"}
    nodes = [
        {"message": None},
        node("system", "text", "You are ChatGPT."),
        node("user", "multimodal_text", "这张图里是什么花？", image),
        node("assistant", "thoughts", "A red flower."),
        node("tool", "execution_output", "rose 0.98"),
        node("assistant", "text", "这是一朵月季。"),
    ]
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps({"mapping": dict(enumerate(nodes))}), "utf-8")
    kept = [e.text for e in read_events(path) if judge(e.turn()) is None]
    assert kept == ["这张图里是什么花？", "这是一朵月季。"]


def test_a_conversation_exported_from_claude_keeps_its_sentences(tmp_path: Path) -> None:
    messages = [
        {"sender": "human", "text": "下周三去苏州"},
        {"sender": "assistant", "text": "好的，记下了：下周三去苏州。"},
    ]
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps({"chat_messages": messages}), "utf-8")
    assert [judge(e.turn()) for e in read_events(path)] == [None, None]


def files() -> Iterator[Path]:
    return (path for path in sorted(Path(FOLDER).glob("*/*")) if path.suffix in (".json", ".jsonl"))


def labelled() -> list[tuple[Event, str]]:
    labels = dict(line.rsplit(" ", 1) for line in LABELS.read_text("utf-8").splitlines() if line[0] != "#")
    events = {f"{path.parent.name}/{e.key}": e for path in files() for e in read_events(path)}
    return [(events[key], label) for key, label in labels.items() if key in events]


@real
def test_of_the_labelled_events_no_sentence_is_lost_and_the_noise_goes() -> None:
    sample = labelled()
    assert len(sample) >= 150
    assert [event.key for event, label in sample if label == "said" and judge(event.turn())] == []
    noise = [judge(event.turn()) is not None for event, label in sample if label == "noise"]
    assert sum(noise) >= 0.98 * len(noise)


@real
@pytest.mark.parametrize("how", [BLOCKS, RAW, LINES])
def test_four_fifths_of_a_real_agent_session_are_dropped(how: str) -> None:
    events = read_events(Path(FOLDER) / "claude_code" / "cctrace_real_session.jsonl", how)
    assert sum(judge(e.turn()) is not None for e in events) >= 0.8 * len(events)
