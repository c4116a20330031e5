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


MODERN = "2026-07-28"
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN]


def converse(gateway, version: str, *requests: Any, heard: list[str] | None = None) -> list[dict[str, Any]]:
    """The answers, that of `initialize` first where there is one. A request is (method, params), or something to do
    between two of them; `heard` gets the methods of notifications.
    """

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield

    async def act(calls, writer) -> list[dict[str, Any]]:
        server = build(lambda _: Identity(gateway.box, writer, calls), "1.2.3", lifespan)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](99)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](99)
        running = asyncio.create_task(server.run(from_client, to_client, server.create_initialization_options()))
        info = {"name": "claude-code", "version": "1"}
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        # Instead of a handshake, every request says who it is from.
        said = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": info}
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
        answers = []
        for id, request in enumerate([*([] if version == MODERN else [("initialize", about)]), *requests]):
            if callable(request):
                request()
                continue
            method, params = request
            if version == MODERN:
                params = {**params, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
            while True:
                answer = (await from_server.receive()).message.model_dump(by_alias=True, exclude_unset=True)
                if "id" in answer:
                    break
                if heard is not None:
                    heard.append(answer["method"])
            answers.append(answer)
            if method == "initialize":
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(done)))
        to_server.close()
        await running
        return answers

    return gateway.run(act)


@pytest.mark.parametrize("version", VERSIONS[:-1])
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("given", [[], ["query"], "query", 5, True, {"arguments": {"query": "x"}}])
def test_arguments_that_are_no_object_are_refused_in_words_that_a_model_reads(gateway, version, given) -> None:
    *_, told = converse(gateway, version, ("tools/call", {"name": "memory_search", "arguments": given}))
    assert told["result"]["isError"] is True
    text = told["result"]["content"][0]["text"]
    assert text.startswith("arguments: ") and "query, top_k" in text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_without_the_name_of_a_tool_is_told_which_there_are(gateway, version) -> None:
    for params in ({}, {"name": None}, {"name": 5, "arguments": {}}, {"name": ""}, {"name": ["memory_list"]}):
        *_, told = converse(gateway, version, ("tools/call", params))
        assert told["result"]["isError"] is True
        assert told["result"]["content"][0]["text"].startswith("name: ")
        assert "memory_search" in told["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_arguments_are_as_good_as_empty_ones(gateway, version) -> None:
    for params in ({"name": "memory_list"}, {"name": "memory_list", "arguments": None}):
        *_, told = converse(gateway, version, ("tools/call", params))
        assert not told["result"].get("isError")


LIST, SEARCH = ("tools/list", {}), ("tools/call", {"name": "memory_list", "arguments": {}})
CHANGED = "notifications/tools/list_changed"


def test_an_assistant_that_listed_while_the_box_was_away_is_told_when_it_may_do_less(gateway) -> None:
    heard: list[str] = []
    gateway.box.scopes = frozenset({"read"})
    gateway.box.away = Unavailable("no box answers; start it with `edge serve`")

    def back() -> None:
        assert heard == []
        gateway.box.away = None

    first, before, *_, after = converse(gateway, "2025-06-18", LIST, SEARCH, back, SEARCH, SEARCH, LIST, heard=heard)
    assert first["result"]["capabilities"]["tools"]["listChanged"] is True
    # Once, and not again with every call.
    assert heard == [CHANGED]
    assert len(before["result"]["tools"]) == len(TOOLS)
    assert {tool["name"] for tool in after["result"]["tools"]} == {
        n for n, tool in TOOLS.items() if tool.scope == "read"
    }


def test_an_assistant_is_told_when_a_box_that_comes_back_lets_it_do_more(gateway) -> None:
    heard: list[str] = []
    gateway.box.scopes = frozenset({"read"})

    def gone() -> None:
        gateway.box.away = Unavailable("no box answers; start it with `edge serve`")

    def back() -> None:
        gateway.box.away, gateway.box.scopes = None, frozenset({"read", "write"})

    converse(gateway, "2025-06-18", LIST, SEARCH, gone, SEARCH, back, SEARCH, heard=heard)
    assert heard == [CHANGED]


def test_a_tool_that_may_be_used_meanwhile_works_and_is_told_of(gateway) -> None:
    heard: list[str] = []
    gateway.box.scopes = frozenset({"read"})

    def more() -> None:
        gateway.box.scopes = frozenset({"read", "write"})

    write = ("tools/call", {"name": "memory_write", "arguments": {"content": "x"}})
    *_, told = converse(gateway, "2025-06-18", LIST, more, write, heard=heard)
    assert told["result"]["isError"] is False
    assert heard == [CHANGED]


def test_nobody_is_told_of_a_list_that_stayed_as_it_is_nor_in_a_protocol_without_that_word(gateway) -> None:
    heard: list[str] = []

    def gone() -> None:
        gateway.box.away = Unavailable("no box answers; start it with `edge serve`")

    def back() -> None:
        gateway.box.away = None

    converse(gateway, "2025-06-18", LIST, gone, SEARCH, back, SEARCH, heard=heard)
    gateway.box.scopes = frozenset({"read"})
    gone()
    converse(gateway, MODERN, LIST, back, SEARCH, SEARCH, heard=heard)
    (about,) = converse(gateway, MODERN, ("server/discover", {}))
    assert not about["result"]["capabilities"]["tools"].get("listChanged")
    assert heard == []
