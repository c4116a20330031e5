"""Puts one table into a TOML file, and leaves its comments and order as they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

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
    after = tomlkit.dumps(document)
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
