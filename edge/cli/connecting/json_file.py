"""Puts one member into a JSON file with comments and all, or takes it out, and leaves the rest as it is. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import Any

# A string, a comment, or a comma that nothing follows. Strings come first, so that nothing inside of one is a comment.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*")
# The rest of a line that has nothing more.
_BLANK = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_decoder = json.JSONDecoder()


def parse(text: str) -> Any:
    """The value; {} of an empty text. Raises ValueError with the line."""
    plain = _plain(text)
    return json.loads(plain) if plain.strip() else {}


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` at the end of `keys`, objects on the way made where they are missing.

    Raises ValueError where the text is no JSON, or where one of the keys holds something that is no object.
    """
    line_end = "\r\n" if "\r\n" in text else "\n"
    plain = _plain(text)
    if not plain.strip():
        above = text.rstrip()
        # Not behind a comment.
        above += line_end if above.strip("\ufeff") else ""
        return above + _dump(_nested(keys, value), "", "  ").replace("\n", line_end) + line_end
    json.loads(plain)
    step = _step(plain)
    at = _skip(plain, 0)
    for depth, key in enumerate(keys):
        found = _members(plain, at, ".".join(keys[:depth]) or "the whole")
        if key not in found.members:
            margin = step * (depth + 1)
            inner = _dump(_nested(keys[depth + 1 :], value), margin, step)
            said = f"\n{margin}{json.dumps(key, ensure_ascii=False)}: {inner}".replace("\n", line_end)
            return _insert(text, found, said, line_end + step * depth)
        at, end = found.members[key].value, found.members[key].end
    return text[:at] + _dump(value, step * len(keys), step).replace("\n", line_end) + text[end:]


def remove(text: str, keys: Sequence[str]) -> str:
    """The text without what is at the end of `keys`, and without the line it began.

    Raises ValueError where the text is no JSON, KeyError where nothing is there.
    """
    plain = _plain(text)
    json.loads(plain)
    at = _skip(plain, 0)
    for depth, key in enumerate(keys):
        found = _members(plain, at, ".".join(keys[:depth]) or "the whole")
        at = found.members[key].value
    gone = found.members[keys[-1]]
    uncommented = _uncommented(text)
    # Of the last one, that which JSON does not have.
    trailing = uncommented.find(",", gone.end, found.end)
    comma = gone.comma if gone.comma is not None else trailing if trailing >= 0 else None
    end = gone.end if comma is None else comma + 1
    start = len(text[: gone.key].rstrip(" \t"))
    if text[:start].endswith("\n"):
        above = text[:start].rstrip()
        if uncommented[len(above) - 1].isspace() and not _BLANK.match(text, end):
            # What follows must not end up in the comment.
            start, end = gone.key, _skip(text, end)
        else:
            # Where it began a line, the end of the line before; what follows on its last line stays.
            start -= 2 if text[:start].endswith("\r\n") else 1
    if comma is None:
        commas = [one.comma for one in found.members.values() if one.comma is not None and one.comma < gone.key]
        if commas:
            # The last one: the comma before it goes too.
            return text[: max(commas)] + text[max(commas) + 1 : start] + text[end:]
    return text[:start] + text[end:]


@dataclass(frozen=True, slots=True)
class _Member:
    """Where its key and its value begin, where the value ends, and where the comma behind it is, if there is one."""

    key: int
    value: int
    end: int
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Object:
    """Where its brace opens and closes, and its members in their order."""

    start: int
    end: int
    members: dict[str, _Member]


def _members(plain: str, at: int, name: str) -> _Object:
    if plain[at] != "{":
        raise ValueError(f"{name} is not an object")
    members: dict[str, _Member] = {}
    start, at = at, _skip(plain, at + 1)
    while plain[at] != "}":
        begin = at
        key, at = scanstring(plain, at + 1)
        # Behind the colon.
        at = _skip(plain, _skip(plain, at) + 1)
        _, end = _decoder.raw_decode(plain, at)
        after = _skip(plain, end)
        comma = after if plain[after] == "," else None
        members[key] = _Member(begin, at, end, comma)
        at = after if comma is None else _skip(plain, comma + 1)
    return _Object(start, at, members)


def _insert(text: str, found: _Object, said: str, closing: str) -> str:
    """A new last member. What stands between the last one and the brace, a comment or a comma, stays there."""
    if found.members:
        after = max(member.end for member in found.members.values())
        return text[:after] + "," + said + text[after:]
    between = text[found.start + 1 : found.end].rstrip()
    return text[: found.start + 1] + between + said + closing + text[found.end :]


def _step(plain: str) -> str:
    """By how much the file indents; two spaces where it does not say."""
    match = re.search(r"\n([ \t]+)\S", plain)
    return match[1] if match else "  "


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _dump(value: Any, margin: str, step: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=step).replace("\n", "\n" + margin)


def _skip(plain: str, at: int) -> int:
    match = _SPACE.match(plain, at)
    return match.end() if match else at


def _plain(text: str) -> str:
    """The text as JSON, each character where it was: comments, commas at an end and the byte order mark are spaces."""
    without = _LAST_COMMA.sub(lambda match: match[1] or " ", _uncommented(text))
    return without.replace("\ufeff", " ", 1) if without.startswith("\ufeff") else without


def _uncommented(text: str) -> str:
    return _TOKEN.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)


def _blank(comment: str) -> str:
    return "".join(char if char in "\r\n" else " " for char in comment)
