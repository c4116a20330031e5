"""A gateway as an assistant starts it, and the SDK's own client at its other end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

_T = TypeVar("_T")

COMMAND = [sys.executable, "-m", "edge.cli", "mcp"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of the tester's own, and a place for what waits."""
    kept = {name: value for name, value in os.environ.items() if name == "EDGE_MODELS" or not name.startswith("EDGE_")}
    return {**kept, "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config"), **more}


@asynccontextmanager
async def session(env: Mapping[str, str]) -> AsyncIterator[ClientSession]:
    """Over stdio, initialised."""
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(env))
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
        await client.initialize()
        yield client


async def call(client: ClientSession, name: str, **given: Any) -> CallToolResult:
    result = await client.call_tool(name, given)
    assert isinstance(result, CallToolResult)
    return result


def said(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


class Assistant:
    """A session for several tests, on a thread of its own: `do` runs a coroutine of it to its end."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready: Future[ClientSession] = Future()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._live(env),), daemon=True)
        self._thread.start()
        self.client = self._ready.result(60)

    async def _live(self, env: Mapping[str, str]) -> None:
        try:
            async with session(env) as client:
                self._ready.set_result(client)
                await self._over.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def do(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def call(self, name: str, **given: Any) -> CallToolResult:
        return self.do(call(self.client, name, **given))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)


class Raw:
    """The same without any client: lines in, lines out, and what was said besides."""

    def __init__(self, env: Mapping[str, str], command: list[str] | None = None, stdout: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            command or COMMAND, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env=dict(env)
        )

    def send(self, *lines: str | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            self.process.stdin.write(text.encode("utf-8", "surrogatepass") + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def greet(self, version: str = "2025-06-18") -> dict[str, Any]:
        """The handshake; what the server answered."""
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
        answer = self.read()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def finish(self, seconds: float = 30.0) -> tuple[list[dict[str, Any]], str]:
        """Ends its input: all that it still said on stdout, and on stderr. Whatever is no JSON there raises."""
        out, err = self.process.communicate(timeout=seconds)
        return [json.loads(line) for line in out.splitlines()], err.decode()


@contextmanager
def raw(env: Mapping[str, str], command: list[str] | None = None, stdout: int = subprocess.PIPE) -> Iterator[Raw]:
    gateway = Raw(env, command, stdout)
    try:
        yield gateway
    finally:
        gateway.process.kill()
        gateway.process.communicate()


def tool_call(id: Any, name: str, **given: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": given}}
