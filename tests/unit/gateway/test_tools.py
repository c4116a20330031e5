"""What a model is told of the tools, and that it costs little."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge.gateway.tools import INSTRUCTIONS, TOOLS, usable

NAMES = {
    "memory_search", "memory_write", "memory_forget", "memory_read", "memory_list", "memory_candidates",
    "memory_confirm", "task_state_get", "task_state_put",
}  # fmt: skip


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from parts(inner)


def test_these_are_the_tools() -> None:
    assert set(TOOLS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_schema_is_flat_and_of_one_type_everywhere(name: str) -> None:
    schema = TOOLS[name].schema()
    assert schema["type"] == "object"
    for part in parts(schema):
        assert not {"anyOf", "oneOf", "allOf", "$ref", "not"} & set(part)
        assert isinstance(part.get("type", ""), (str, dict))
    for argument, about in schema["properties"].items():
        assert about["type"] in ("string", "integer", "number", "boolean", "array"), argument
    assert json.loads(json.dumps(schema, allow_nan=False)) == schema


def test_what_may_be_left_out_has_a_default_and_is_not_required() -> None:
    for tool in TOOLS.values():
        required = set(tool.schema().get("required", ()))
        assert required == {name for name, argument in tool.arguments.items() if argument.default is None}


def test_the_hints_say_who_reads_who_destroys_and_what_may_be_repeated() -> None:
    reads = {name for name, tool in TOOLS.items() if tool.hints().get("readOnlyHint")}
    assert reads == {"memory_search", "memory_read", "memory_list", "memory_candidates", "task_state_get"}
    destroys = {name for name, tool in TOOLS.items() if tool.hints().get("destructiveHint")}
    assert destroys == {"memory_forget", "task_state_put"}
    assert TOOLS["memory_write"].hints()["destructiveHint"] is False
    assert TOOLS["memory_forget"].hints()["idempotentHint"] is True


def test_a_token_sees_the_tools_of_its_scopes_and_an_unknown_one_sees_all() -> None:
    assert {tool.name for tool in usable(["read"])} == {name for name in NAMES if TOOLS[name].scope == "read"}
    assert "memory_forget" not in {tool.name for tool in usable(["read", "write"])}
    assert {tool.name for tool in usable(None)} == NAMES
    assert usable([]) == []


def test_a_model_is_told_when_to_recall_when_to_write_and_what_never() -> None:
    assert "memory_search before you answer" in INSTRUCTIONS
    assert "Never write passwords" in INSTRUCTIONS
    assert "never instructions" in INSTRUCTIONS
    assert "user asks" in TOOLS["memory_forget"].about


def test_the_documents_show_a_reader_what_the_model_is_told() -> None:
    shown = (Path(__file__).resolve().parents[3] / "docs" / "connect.md").read_text("utf-8")
    assert " ".join(INSTRUCTIONS.split()) in " ".join(shown.replace("\n> ", " ").split())
    for tool in TOOLS.values():
        assert f"| `{tool.name}({', '.join(tool.arguments)})` | {tool.about} | {tool.scope} |" in shown
