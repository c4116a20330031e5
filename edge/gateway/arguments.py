"""What a model gave a tool, checked: a refusal names the field, the limit and the next step. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from edge.errors import InvalidArgument
from edge.gateway.tools import TAG_BYTES, Argument, Tool

# What arguments that are no object come under.
WHOLE = "arguments"
_ABBREVIATED = 40
_ABSENT = object()
_NOUNS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list of strings",
}


def checked(tool: Tool, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Every argument of the tool, defaults filled in. Raises InvalidArgument."""
    given = given or {}
    known = ", ".join(tool.arguments) or "none"
    for name in given:
        if name == WHOLE:
            raise InvalidArgument(
                f"{WHOLE}: give one JSON object with the arguments of {tool.name} in it: {known}", field=WHOLE
            )
        if name not in tool.arguments:
            short = _short(name)
            raise InvalidArgument(f"{short}: {tool.name} has no such argument; it has {known}", field=short)
    return {name: _value(name, argument, given.get(name, _ABSENT)) for name, argument in tool.arguments.items()}


def _value(name: str, argument: Argument, value: Any) -> Any:
    # A client that fills in every argument says null for what it has nothing to say of. Of a number it may be what
    # became of NaN on the way.
    if value is _ABSENT or (value is None and argument.kind != "number"):
        if argument.default is None:
            raise InvalidArgument(f"{name}: is missing; give {_NOUNS[argument.kind]}", field=name)
        return argument.default
    if not _fits(argument.kind, value):
        raise InvalidArgument(f"{name}: must be {_NOUNS[argument.kind]}, not {_short(value)}", field=name)
    if argument.kind == "integer":
        value = int(value)
    if argument.kind in ("integer", "number"):
        _in_range(name, argument, value)
    elif argument.kind == "string":
        _text(name, argument, value)
    elif argument.kind == "array":
        _strings(name, argument, value)
    return value


def _fits(kind: str, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    # JSON has one kind of number: 5.0 is a whole one.
    return kind == "number" or isinstance(value, int) or value.is_integer()


def _in_range(name: str, argument: Argument, value: float) -> None:
    assert argument.least is not None and argument.most is not None
    # The other way round, so that NaN does not pass.
    if not argument.least <= value <= argument.most or not math.isfinite(value):
        raise InvalidArgument(
            f"{name}: must be {argument.least:,} to {argument.most:,}, not {_short(value)}", field=name
        )


def _text(name: str, argument: Argument, value: str) -> None:
    if argument.choices and value not in argument.choices:
        raise InvalidArgument(f"{name}: must be one of {', '.join(argument.choices)}, not {_short(value)}", field=name)
    if argument.default is None and not value.strip():
        raise InvalidArgument(f"{name}: is empty; say something in it", field=name)
    if argument.most is not None and (size := len(value.encode("utf-8", "replace"))) > argument.most:
        raise InvalidArgument(
            f"{name}: has {size:,} bytes; {argument.most:,} at most: shorten it, or send it in parts", field=name
        )


def _strings(name: str, argument: Argument, value: list[str]) -> None:
    assert argument.most is not None
    if len(value) > argument.most:
        raise InvalidArgument(f"{name}: has {len(value):,} of them; {argument.most:,} at most", field=name)
    for index, item in enumerate(value):
        if (size := len(item.encode("utf-8", "replace"))) > TAG_BYTES:
            raise InvalidArgument(f"{name}[{index}]: has {size:,} bytes; {TAG_BYTES} at most", field=f"{name}[{index}]")


def _short(value: Any) -> str:
    """For a sentence: what a model sent may be long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = "".join(char if char.isprintable() else " " for char in text[: _ABBREVIATED + 1])
    return text if len(text) <= _ABBREVIATED else text[:_ABBREVIATED] + "…"
