"""Session files and exports of other programs as events (role and text), as naively as a first collector would.

`BLOCKS` gives what was said as it stands and everything else under a role of its own, or as its JSON. `RAW` gives
each block as JSON under the role of its message; `LINES` gives whole lines of the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.types import Turn

BLOCKS, RAW, LINES = "blocks", "raw", "lines"
_TEXT = ("text", "input_text", "output_text")
_TOOLS = ("tool_use", "tool_result", "function_call", "function_call_output")


@dataclass(frozen=True)
class Event:
    """`key` names it in its file by its place and a hash of its role and text."""

    file: str
    index: int
    role: str
    text: str

    @property
    def key(self) -> str:
        digest = hashlib.sha256(f"{self.role}\0{self.text}".encode()).hexdigest()[:8]
        return f"{self.file}:{self.index}:{digest}"

    def turn(self) -> Turn:
        return Turn(self.file, self.file, self.index, self.role, 0, self.text)


def read_events(path: Path, how: str = BLOCKS) -> list[Event]:
    """The events of one file, in order; those without any text are left out."""
    said = _of_text(path.read_text("utf-8"), how)
    kept = ((role, text) for role, text in said if text.strip())
    return [Event(path.name, index, role, text) for index, (role, text) in enumerate(kept)]


def _of_text(raw: str, how: str) -> Iterator[tuple[str, str]]:
    try:
        whole = json.loads(raw)
    except ValueError:
        for line in filter(str.strip, raw.splitlines()):
            yield from _of_line(line, how)
        return
    if "mapping" in whole:
        for node in whole["mapping"].values():
            yield from _of_chatgpt(node.get("message"), how)
    elif "chat_messages" in whole:
        for message in whole["chat_messages"]:
            yield {"human": "user"}.get(message["sender"], message["sender"]), message.get("text") or ""
    else:
        for entry in whole["loglines"]:
            yield from _of_entry(entry, how)


def _of_line(line: str, how: str) -> Iterator[tuple[str, str]]:
    try:
        entry = json.loads(line)
    except ValueError:
        return iter([("", line)])
    return _of_entry(entry, how)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _of_entry(entry: Any, how: str) -> Iterator[tuple[str, str]]:
    """A line of Claude Code or of Codex."""
    if not isinstance(entry, dict):
        yield "", _dump(entry)
        return
    message = entry.get("message", entry.get("payload") if entry.get("type") == "response_item" else None)
    role = message.get("role", "") if isinstance(message, dict) else ""
    content = message.get("content") if isinstance(message, dict) else None
    if how == LINES or content is None:
        kind = message.get("type", "") if isinstance(message, dict) else ""
        yield role or ("tool" if how == BLOCKS and kind in _TOOLS else str(entry.get("type", ""))), _dump(entry)
    elif isinstance(content, str):
        yield role, content
    else:
        for block in content:
            yield _of_block(block, role, how)


def _of_block(block: Any, role: str, how: str) -> tuple[str, str]:
    if isinstance(block, str):
        return role, block
    kind = block.get("type", "")
    if kind in _TEXT and how == BLOCKS:
        return role, block["text"]
    if how == RAW:
        return role, _dump(block)
    if kind == "thinking":
        return "thinking", block["thinking"]
    return ("tool" if kind in _TOOLS else role), _dump(block)


def _of_chatgpt(message: Any, how: str) -> Iterator[tuple[str, str]]:
    if not isinstance(message, dict):
        return
    role, content = message["author"]["role"], message["content"]
    if how == LINES or "parts" not in content:
        yield role, _dump(message if how == LINES else content)
        return
    if how == RAW or content["content_type"] in ("thoughts", "reasoning_recap"):
        yield role, _dump(content)
        return
    for part in content["parts"]:
        yield role, part if isinstance(part, str) else _dump(part)
