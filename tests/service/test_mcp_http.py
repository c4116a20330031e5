"""The gateway over streamable HTTP: who may ask, from where, and as whom."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_gateway import COMMAND, call, environment, said

from edge.cli import main
from edge.client import Client

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@contextmanager
def serving(env: dict[str, str], *arguments: str) -> Iterator[str]:
    """The URL of a gateway in a process of its own."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready "), ready
        yield ready.split()[1]
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def ask(url: str, headers: dict[str, str], body: bytes | None = None, method: str = "POST") -> tuple[int, Any, bytes]:
    scheme, host, port = re.fullmatch(r"(https?)://(.+):(\d+)/mcp", url).groups()
    if scheme == "https":
        trusting = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host.strip("[]"), int(port), timeout=30, context=trusting)
    else:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=30)
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request(method, "/mcp", body or json.dumps(HELLO).encode(), {**usual, **headers})
    response = connection.getresponse()
    return response.status, response.headers, response.read()


@pytest.fixture(scope="module")
def on_loopback(shared_box, tmp_path_factory) -> Iterator[str]:
    env = environment(tmp_path_factory.mktemp("http"), EDGE_ADDRESS=shared_box.address)
    with serving(env, "--http", "127.0.0.1:0") as url:
        yield url


async def test_an_assistant_over_http_has_the_same_tools(on_loopback) -> None:
    async with (
        streamable_http_client(on_loopback) as (reading, writing, *_),
        ClientSession(reading, writing) as client,
    ):
        await client.initialize()
        assert len((await client.list_tools()).tools) == 9
        kept = await call(client, "memory_write", content="经过 HTTP 说的话")
        (uri,) = kept.structured_content["uris"]
        assert uri.rpartition("/")[2] in said(await call(client, "memory_search", query="HTTP 说的话"))
        told = await call(client, "memory_write", content="x" * 5_000_000)
        assert told.is_error and told.structured_content["field"] == "content"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:7431"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "127.1"}, 421),
        ({"Host": "2130706433"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": ""}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Host": "localhost:7431"}, 200),
        ({"Origin": "http://localhost:5173"}, 200),
    ],
)
def test_a_page_of_another_site_is_turned_away(on_loopback, headers, status) -> None:
    for method in ("POST", "GET", "DELETE", "OPTIONS") if status != 200 else ("POST",):
        got, answered, _ = ask(on_loopback, headers, method=method)
        assert got == status
        assert not [name for name in answered if name.lower().startswith("access-control-")]


def test_what_is_no_message_gets_a_clean_answer(on_loopback) -> None:
    for body in (b"{", rb'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":"\ud83d"}}', b"x" * (17 << 20)):
        status, _, answer = ask(on_loopback, {}, body)
        assert status in (400, 413)
        assert b"Traceback" not in answer


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_arguments_that_are_no_object_are_refused_in_words(on_loopback, version) -> None:
    params: dict[str, Any] = {"name": "memory_search", "arguments": ["x"]}
    headers = {"MCP-Protocol-Version": version}
    if version == "2025-06-18":
        _, answered, _ = ask(on_loopback, {})
        headers["Mcp-Session-Id"] = answered["Mcp-Session-Id"]
    else:
        said = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "memory_search"}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
    status, _, answer = ask(on_loopback, headers, body)
    assert status == 200, answer
    told = json.loads(re.search(rb"\{.*\}", answer)[0])["result"]
    assert told["isError"] is True and told["structuredContent"]["field"] == "arguments"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--http", "0.0.0.0:0"), "tls-cert"),
        (("--http", "[::]:0"), "tls-cert"),
        (("--http", "nonsense"), "HOST:PORT"),
        (("--http", "127.0.0.1:99999"), "HOST:PORT"),
    ],
)
def test_other_machines_are_not_served_in_the_clear(arguments, word, capsys) -> None:
    assert main(["mcp", *arguments]) == 2
    assert word in capsys.readouterr().err


def test_on_the_network_every_request_needs_a_token_of_the_box_and_has_its_rights(start_box, tmp_path) -> None:
    box = start_box("--lan", "--listen", "127.0.0.1:0")
    with Client.connect(box.unix) as owner:
        reader = owner.create_token("reader", {"private/reader": ["read"]}).secret
    identity = box.data / "identity"
    tls = ("--tls-cert", str(identity / "certificate.pem"), "--tls-key", str(identity / "key.pem"))
    env = environment(tmp_path, EDGE_ADDRESS=box.address)
    with serving(env, "--http", "0.0.0.0:0", *tls) as listening:
        url = listening.replace("0.0.0.0", "127.0.0.1")
        for headers in ({}, {"Authorization": "Bearer probe-7f3a"}, {"Authorization": "Basic eDp5"}):
            status, answered, body = ask(url, headers)
            assert (status, answered["WWW-Authenticate"]) == (401, "Bearer")
            assert b"probe-7f3a" not in body
        good = {"Authorization": f"Bearer {reader}"}
        status, answered, body = ask(url, good)
        assert status == 200, body
        said_ = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
        status, _, body = ask(url, {**good, "Mcp-Session-Id": answered["Mcp-Session-Id"]}, said_)
        names = set(re.findall(r'"name":"(\w+)"', body.decode()))
        assert "memory_search" in names and not names & {"memory_write", "memory_forget", "memory_confirm"}
    # A socket of both families, asked over IPv4.
    with serving(env, "--http", "[::]:0", *tls) as listening:
        for name in ("127.0.0.1", "localhost"):
            status, _, _ = ask(listening.replace("[::]", "127.0.0.1"), {**good, "Host": name})
            assert status == 200
    # Through the socket the box takes everybody for its owner: a token would mean nothing there.
    with serving(environment(tmp_path, EDGE_ADDRESS=box.unix), "--http", "0.0.0.0:0", *tls) as listening:
        status, _, body = ask(listening.replace("0.0.0.0", "127.0.0.1"), good)
        assert status == 401 and b"--address" in body
