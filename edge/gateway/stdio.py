"""MCP over the process's own stdin and stdout, of which nothing else gets hold.

Whatever a library prints, or a child process inherits, goes to stderr: stdout is JSON-RPC alone (cases 40). A line that
is no message is answered as such, and what was asked before the input ended is answered before the gateway ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import select
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

# A content that is too long is refused with its limit; what is longer than this is not even read.
LINE_BYTES = 16 * 1024 * 1024
_CHUNK = 64 * 1024
# Seconds in which what was asked is still answered when the input has ended.
_LAST_ANSWERS = 20.0
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


async def serve(server: Server[Any], source: int, sink: int) -> None:
    """Until the file descriptor `source` ends, or nobody reads `sink` any more."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    wire = _Wire(to_server, to_client.clone())
    async with anyio.create_task_group() as group:
        group.start_soon(wire.write, from_server, sink)
        wire.read(source)
        await server.run(from_client, to_client, server.create_initialization_options())
        group.cancel_scope.cancel()


class _Wire:
    """`asked` holds the ids of requests that are not answered yet."""

    def __init__(
        self,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        to_client: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        self._to_server = to_server
        self._to_client = to_client
        self._asked: list[types.RequestId] = []
        self._answered = asyncio.Event()

    def read(self, source: int) -> None:
        """In a thread of its own that nobody waits for: a read cannot be cancelled, and files cannot be polled."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                for line in lines(lambda: _read(source)):
                    asyncio.run_coroutine_threadsafe(self._take(line), loop).result()
                asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            except (RuntimeError, CancelledError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                # The gateway stops, or has stopped.
                return

        threading.Thread(target=run, name="stdin", daemon=True).start()

    async def _take(self, line: bytes | None) -> None:
        if line is None:
            await self._complain(None, -32600, f"a message has more than {LINE_BYTES} bytes; send less at once")
            return
        text = line.decode("utf-8", "replace")
        if not text.strip():
            return
        if _SURROGATE.search(text):
            text = _paired(text)
        try:
            message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            await self._complain(*_fault(text))
            return
        if isinstance(message, types.JSONRPCRequest):
            self._asked.append(message.id)
        elif isinstance(message, types.JSONRPCNotification):
            # With an id of a kind that none may have, it is a request whose sender waits.
            if "id" in json.loads(text):
                await self._complain(*_fault(text))
                return
            if message.method == "notifications/cancelled":
                self._settle((message.params or {}).get("requestId"))
        await self._to_server.send(SessionMessage(message))

    async def _complain(self, id: types.RequestId | None, code: int, message: str) -> None:
        error = types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))
        await self._to_client.send(SessionMessage(error))

    async def _end(self) -> None:
        with anyio.move_on_after(_LAST_ANSWERS):
            while self._asked:
                self._answered.clear()
                await self._answered.wait()
        self._to_client.close()
        self._to_server.close()

    def _settle(self, id: Any) -> None:
        if id in self._asked:
            self._asked.remove(id)
            self._answered.set()

    async def write(self, messages: MemoryObjectReceiveStream[SessionMessage], sink: int) -> None:
        """Raises nothing when nobody reads: the server is stopped then, as by an ended input."""
        async with messages:
            async for one in messages:
                line = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                try:
                    await _apart(functools.partial(_write_all, sink, line))
                except OSError:
                    self._to_server.close()
                    return
                if isinstance(one.message, (types.JSONRPCResponse, types.JSONRPCError)):
                    self._settle(one.message.id)


def lines(read: Callable[[], bytes]) -> Iterator[bytes | None]:
    """Line by line without their ends, the last one too where it has none; None for one longer than LINE_BYTES, of
    which no more is held than that.
    """
    rest, skipping = b"", False
    while chunk := read():
        *whole, rest_of_chunk = chunk.split(b"\n")
        for part in whole:
            line, rest = rest + part, b""
            yield None if skipping or len(line) > LINE_BYTES else line
            skipping = False
        rest += rest_of_chunk
        if len(rest) > LINE_BYTES:
            rest, skipping = b"", True
    if rest or skipping:
        yield None if skipping else rest


def _paired(text: str) -> str:
    """The message with escapes of half a character as U+FFFD (cases 3); as it is where it is no JSON."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _fault(text: str) -> tuple[types.RequestId | None, int, str]:
    """The id, code and words of what is wrong with a line (JSON-RPC 2.0, section 5.1)."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None, -32700, "this line is not JSON; send one message a line"
    id = value.get("id") if isinstance(value, dict) else None
    known = id if isinstance(id, (int, str)) and not isinstance(id, bool) else None
    return known, -32600, "this is not a JSON-RPC 2.0 message"


async def _apart(act: Callable[[], None]) -> None:
    """In a thread that the process does not wait for when it ends: nobody may ever read what it writes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: OSError | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)

    def run() -> None:
        failed = None
        try:
            act()
        except OSError as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, failed)

    threading.Thread(target=run, name="stdout", daemon=True).start()
    await done


def _read(source: int) -> bytes:
    """What is there, and waits for it; nothing where the input ended or broke."""
    try:
        # Whoever started us may have made it non-blocking for itself.
        select.select([source], [], [])
        return os.read(source, _CHUNK)
    except OSError:
        return b""


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        select.select([], [sink], [])
        view = view[os.write(sink, view) :]
