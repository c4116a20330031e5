"""The MCP server over streams in memory: what it says of itself, in each of the protocol's versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from gateway_in_memory import Gateway
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from edge.errors import Unavailable
from edge.gateway.identity import Identity
from edge.gateway.server import build
from edge.gateway.tools import TOOLS


@pytest.fixture
def gateway(tmp_path) -> Gateway:
    return Gateway(tmp_path / "outbox")


def converse(gateway, version: str, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers, that of `initialize` first."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield

    async def act(calls, writer) -> list[dict[str, Any]]:
        server = build(lambda _: Identity(gateway.box, writer, calls), "1.2.3", lifespan)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](99)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](99)
        running = asyncio.create_task(server.run(from_client, to_client, server.create_initialization_options()))
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "1"}}
        answers = []
        for id, (method, params) in enumerate([("initialize", about), *requests]):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
            answer = (await from_server.receive()).message
            answers.append(answer.model_dump(by_alias=True, exclude_unset=True))
            if not id:
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(done)))
        to_server.close()
        await running
        return answers

    return gateway.run(act)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_versions_of_the_protocol_are_spoken(gateway, version) -> None:
    first, listed, told = converse(
        gateway,
        version,
        ("tools/list", {}),
        ("tools/call", {"name": "memory_write", "arguments": {"content": "钥匙"}}),
    )
    assert first["result"]["protocolVersion"] == version
    assert first["result"]["serverInfo"]["name"] == "edge-memory"
    assert first["result"]["serverInfo"]["version"] == "1.2.3"
    assert "memory_search" in first["result"]["instructions"]
    assert [tool["name"] for tool in listed["result"]["tools"]] == list(TOOLS)
    assert told["result"]["content"][0]["text"].startswith("Remembered: edge://")
    # The source of what it wrote is what the assistant calls itself.
    assert [item.source for item in gateway.box.items.values()] == ["claude-code"]


def test_a_version_that_nobody_knows_gets_the_newest_that_is_spoken(gateway) -> None:
    (first,) = converse(gateway, "1999-01-01")
    assert first["result"]["protocolVersion"] == "2025-11-25"


def test_resources_are_memories_and_places_and_a_missing_one_says_why(gateway) -> None:
    gateway.call("memory_write", content="钥匙")
    (id,) = gateway.box.items
    _, spaces, templates, one, place, missing = converse(
        gateway,
        "2025-06-18",
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": f"edge://public/note/{id}"}),
        ("resources/read", {"uri": "edge://public"}),
        ("resources/read", {"uri": "edge://public/note/none"}),
    )
    assert [found["uri"] for found in spaces["result"]["resources"]] == ["edge://public"]
    assert templates["result"]["resourceTemplates"][0]["uriTemplate"].startswith("edge://")
    for read in (one, place):
        text = read["result"]["contents"][0]["text"]
        assert text.startswith("[相关记忆开始]") and "钥匙" in text
    assert missing["error"]["code"] == -32002
    assert "no such memory" in missing["error"]["message"]


def test_a_session_begins_with_what_is_remembered_of_its_topic(gateway) -> None:
    gateway.call("memory_write", content="钥匙 在阳台")
    _, prompts, bare, told, unknown = converse(
        gateway,
        "2025-06-18",
        ("prompts/list", {}),
        ("prompts/get", {"name": "session_start"}),
        ("prompts/get", {"name": "session_start", "arguments": {"topic": "钥匙"}}),
        ("prompts/get", {"name": "other"}),
    )
    assert [prompt["name"] for prompt in prompts["result"]["prompts"]] == ["session_start"]
    assert "memory_search before you answer" in bare["result"]["messages"][0]["content"]["text"]
    assert "在阳台" in told["result"]["messages"][0]["content"]["text"]
    assert "session_start" in unknown["error"]["message"]


def test_a_box_that_is_away_stops_no_assistant_from_starting(gateway) -> None:
    gateway.box.away = Unavailable("no box answers; start it with `edge serve`")
    _, tools, resources, prompt = converse(
        gateway,
        "2025-06-18",
        ("tools/list", {}),
        ("resources/list", {}),
        ("prompts/get", {"name": "session_start", "arguments": {"topic": "钥匙"}}),
    )
    assert len(tools["result"]["tools"]) == 9
    assert resources["result"]["resources"] == []
    assert "go on without it" in prompt["result"]["messages"][0]["content"]["text"]
