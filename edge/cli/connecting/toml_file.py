"""Puts one table into a TOML file, or takes it out, and leaves its comments and order as they are. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, InlineTable, Table, Whitespace

_MARK = "\ufeff"


def parse(text: str) -> Any:
    """The value. Raises ValueError with the line."""
    return _document(text).unwrap()


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with `value` at the end of `keys`, tables on the way made where they are missing.

    Raises ValueError where it is no TOML, or where one of the keys holds something that is no table.
    """
    document = _document(text)
    place: Any = document
    *path, name = keys
    for depth, key in enumerate(path):
        if key not in place:
            place[key] = tomlkit.table(is_super_table=True)
        place = place[key]
        if not hasattr(place, "keys"):
            raise ValueError(f"{'.'.join(path[: depth + 1])} is not a table")
    place[name] = _table(value, inline=isinstance(place, InlineTable)) if isinstance(value, dict) else value
    return _written(tomlkit.dumps(document), text)


def remove(text: str, keys: Sequence[str]) -> str:
    """The text without what is at the end of `keys`. Raises ValueError where it is no TOML, KeyError where nothing is
    there.
    """
    document = _document(text)
    before = tomlkit.dumps(document)
    place: Any = document
    for key in keys[:-1]:
        place = place[key]
    _drop_comments_behind(place[keys[-1]])
    without = tomlkit.dumps(document)
    start = len(os.path.commonprefix((before, without)))  # noqa: RUF071  # of characters, no paths
    comments = before[start : start + len(before) - len(without)].lstrip()
    del place[keys[-1]]
    after = tomlkit.dumps(document)
    end = len(after) - (len(without) - start)
    return _written(after[:end] + comments + after[end:], text)


def _drop_comments_behind(table: Any) -> None:
    """To tomlkit they are the table's, and to who wrote them mostly of the next one."""
    if not isinstance(table, Table):
        return
    body = table.value.body
    while body and isinstance(body[-1][1], (Comment, Whitespace)):
        body.pop()
    if body:
        _drop_comments_behind(body[-1][1])


def _written(after: str, text: str) -> str:
    """With the mark and the line ends of what it was read from."""
    if "\r\n" in text:
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    return (_MARK if text.startswith(_MARK) else "") + after


def _table(value: dict[str, Any], *, inline: bool) -> Any:
    table: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for key, item in value.items():
        table[key] = item
    return table


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text.removeprefix(_MARK))
    except TOMLKitError as error:
        raise ValueError(str(error)) from None
