"""Raw events: JSON that an agent's program writes for itself, sent as if someone had said it.

Whoever sends whole lines of a session file also sends the sentences in them, so an event is noise only if nothing
in it was said: one block of text among its blocks keeps it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from edge.admission.noise import names
from edge.admission.noise.names import BARE_KEYS, COMMON_KINDS, EVENT_KEYS, KINDS, plain
from edge.admission.noise.wrapped import wrapped

Finding = tuple[str, str]

# Where the kind of an event stands, by the dialects.
_TYPE_KEYS = ("type", "content_type", "object", "event")
# What wraps another event.
_CARRIERS = ("payload", "message", "attachment")
_TEXT_BLOCKS = ("text", "input_text", "output_text")
# All that a call of a tool has; JSON with other keys beside is somebody's data.
_CALL_KEYS = frozenset({"id", "index", "type", "name", "arguments", "input", "parameters", "call_id", "status"})
_DEPTH = 6
# Numbers stay text: nobody reads them here, and Python takes long over long ones.
_READER = json.JSONDecoder(parse_int=str, parse_float=str)
_LONGEST_NAME = 60
# Lines of a stream of server-sent events (WHATWG HTML, 9.2) that carry no data.
_SSE_LINE = re.compile(
    r"(?:event|id|retry): ?[\w.:-]+|: ?(?:ping|keep-?alive|heartbeat)(?: - [\d :.+-]+)?|data: ?\[DONE\]"
)
# What is left of an event that was cut off: its type, if that stands first.
_HEAD = re.compile(r'[{\[]\s*(?:\{\s*)?"(?:type|content_type)"\s*:\s*"([\w.-]{1,60})"')


def event(text: str, role: str) -> Finding | None:
    """The rule and the reason, when the text, stripped, is raw events or one that was cut off, and nobody's sentence
    is in it. `role` is as `plain` writes it. Linear in len(text).
    """
    if text.startswith(("{", "[")):
        return _json(text, role)
    if text.startswith(("event:", "data:", "id:", ":")):
        return _stream(text, role)
    return None


def _json(text: str, role: str) -> Finding | None:
    try:
        return _judge(_READER.decode(text), role, _DEPTH)
    except RecursionError:
        # Nested deeper than any event.
        return None
    except json.JSONDecodeError as error:
        cut_off = error.msg.startswith("Unterminated") or error.pos >= len(text)
    if not cut_off:
        return _every(text.splitlines(), role)
    if (head := _HEAD.match(text)) and (rule := _rule(head[1])):
        return rule, f"it is what is left of an event of the type {plain(head[1])}"
    return None


def _stream(text: str, role: str) -> Finding | None:
    lines = [line.strip() for line in text.splitlines()]
    data = [line.removeprefix("data:") for line in lines if line and not _SSE_LINE.fullmatch(line)]
    carries = any(line.startswith((":", "data: [DONE]")) for line in lines)
    if (data and _every(data, role)) or (not data and carries):
        return names.STREAM, "it is a piece of an event stream"
    return None


def _every(lines: Iterable[str], role: str) -> Finding | None:
    """What the first line is, if each is an event without a sentence."""
    try:
        return _all((_READER.decode(line) for line in lines if line.strip()), role, _DEPTH)
    except (ValueError, RecursionError):
        return None


def _all(values: Iterable[Any], role: str, depth: int) -> Finding | None:
    first: Finding | None = None
    for value in values:
        found = _judge(value, role, depth - 1)
        if found is None:
            return None
        first = first or found
    return first


def _judge(value: Any, role: str, depth: int) -> Finding | None:
    if depth <= 0:
        return None
    if isinstance(value, list):
        return _all(value, role, depth)
    # A queued prompt: what the user typed while the model was busy.
    if not isinstance(value, dict) or (value.get("operation") == "enqueue" and value.get("content")):
        return None
    if found := _named(value):
        return found
    for key in _CARRIERS:
        if isinstance(inner := value.get(key), dict):
            return _judge(inner, role, depth - 1) or _put_in(value)
    if _is_file(value):
        return names.BASE64, "it is a file in base64"
    if _is_call(value, role):
        return names.TOOL, "it is a call of a tool"
    return _content(value, role, depth)


def _named(value: Mapping[str, Any]) -> Finding | None:
    for key in _TYPE_KEYS:
        name = value.get(key)
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            continue
        rule = _rule(name)
        if rule is None and (not EVENT_KEYS.isdisjoint(value) or BARE_KEYS.issuperset(value)):
            rule = COMMON_KINDS.get(plain(name))
        if rule:
            return rule, f"it is an event of the type {plain(name)}"
    name = value.get("role")
    if isinstance(name, str) and "content" in value and (rule := KINDS.get(plain(name))):
        return rule, f"it is a message whose role is {plain(name)}"
    return None


def _rule(name: str) -> str | None:
    """The rule of a type that means an event wherever it stands."""
    name = plain(name)
    rule = None if name in COMMON_KINDS else KINDS.get(name)
    if rule == names.PROMPT:
        return None
    return rule or (names.STREAM if name.endswith(".delta") else None)


def _put_in(value: Mapping[str, Any]) -> Finding | None:
    # Claude Code marks what it says to the model in the user's name.
    marked = value.get("isMeta") is True or value.get("isCompactSummary") is True
    return (names.STRUCTURAL, "a program put it in for the model") if marked else None


def _is_file(value: Mapping[str, Any]) -> bool:
    source, image = value.get("source"), value.get("image_url")
    if isinstance(source, dict) and source.get("type") == "base64":
        return True
    url = image.get("url") if isinstance(image, dict) else image
    return isinstance(url, str) and url.startswith("data:")


def _is_call(value: Mapping[str, Any], role: str) -> bool:
    if value.get("tool_calls") and not value.get("content"):
        return True
    # What a user types may look like a call and be data.
    if role == "user" or not isinstance(value.get("name"), str) or not _CALL_KEYS.issuperset(value):
        return False
    return any(isinstance(value.get(key), (dict, str)) for key in ("arguments", "input", "parameters"))


def _content(value: Mapping[str, Any], role: str, depth: int) -> Finding | None:
    """Of a message or a block of text: noise if its string is, or every one of its blocks."""
    content = value.get("text" if value.get("type") in _TEXT_BLOCKS else "content")
    if isinstance(content, str):
        return wrapped(content.strip())
    return _judge(content, role, depth - 1)
