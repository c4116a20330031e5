"""`edge bench mcp`: what the tools add to the recall under them, how soon they answer, and what they cost a model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from edge.cli.benches import corpus, driving, machine
from edge.cli.benches.result import Ratio, Result, median
from edge.cli.demo.box import running
from edge.client import AsyncClient
from edge.config import DEFAULT_MODEL, models_directory

Say = Callable[[str], None]

_SEED = 20260708
_GATEWAY = [sys.executable, "-m", "edge.cli", "mcp"]
# What an MCP server of this SDK has to import in any case.
_SERVER = [sys.executable, "-c", "import mcp.server.lowlevel; print(flush=True)"]
_QUESTIONS, _FEW = 300, 30
_ROUNDS = 7
_LINE_BYTES = 1 << 24
_ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _ABOUT}


def run(memories: int, say: Say) -> Result:
    """Some 40 seconds on two cores. Raises what the box and its client raise."""
    about = machine.describe()
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
        env = {**os.environ, "XDG_STATE_HOME": str(Path(folder) / "state")}
        with running(Path(folder) / "data") as box:
            env["EDGE_ADDRESS"] = box.address
            say(f"Asking of {memories:,} memories, in turns over MCP and over gRPC …")
            over_mcp, over_grpc, listed, found = asyncio.run(_compare(env, box.address, memories))
            say("Starting gateways, and importing what each needs …")
            hello = json.dumps(_HELLO).encode() + b"\n"
            rounds = [(_first_line(_GATEWAY, env, hello), _first_line(_SERVER, env)) for _ in range(_ROUNDS)]
            firsts, imports = zip(*rounds, strict=True)
    count = _tokens()
    added = (median(over_mcp) - median(over_grpc)) * 1000
    first = (min(firsts) - min(imports)) * 1000
    tools, three = count(json.dumps(listed, ensure_ascii=False)), count(found["content"][0]["text"])
    as_json = count(json.dumps(found["structuredContent"], ensure_ascii=False))
    return Result(
        "mcp",
        [
            Ratio("mcp_added_p50_ms", added, 5, False, "the same recall over gRPC"),
            Ratio("mcp_first_answer_ms", first, 150, False, "importing the SDK's server module alone"),
            Ratio("mcp_tools_tokens", tools, 1200, False, "the list of tools, by the default model's tokenizer"),
            Ratio("mcp_three_memories_tokens", max(three, as_json), 400, False, "text or JSON, whichever is more"),
        ],
        {
            "p50_ms": {"mcp": median(over_mcp) * 1000, "grpc": median(over_grpc) * 1000},
            "first_answer_ms": min(firsts) * 1000,
            "import_ms": min(imports) * 1000,
            "tokens": {"tools": tools, "text": three, "json": as_json},
        },
        about,
    )


async def _compare(
    env: Mapping[str, str], address: str, memories: int
) -> tuple[list[float], list[float], list[Any], dict[str, Any]]:
    """Seconds of each question, both ways; the tools, and an answer of three memories."""
    texts = corpus.turns(memories, _SEED, 10, 60)
    questions = corpus.questions(_QUESTIONS + _FEW, _SEED + 1)
    async with AsyncClient.connect(address) as client:
        await driving.ingest(client, texts, "bench-mcp")
        async with _gateway(env) as ask:
            listed = (await ask("tools/list", {}))["tools"]
            over_mcp, over_grpc = [], []
            for question in questions:
                started = time.perf_counter()
                await ask("tools/call", {"name": "memory_search", "arguments": {"query": question}})
                between = time.perf_counter()
                await client.recall(question, level="abstract", with_context=True, context_ids=True, only_relevant=True)
                over_grpc.append(time.perf_counter() - between)
                over_mcp.append(between - started)
            three = {"query": texts[0], "top_k": 3}
            found = await ask("tools/call", {"name": "memory_search", "arguments": three})
    return over_mcp[_FEW:], over_grpc[_FEW:], listed, found


@asynccontextmanager
async def _gateway(env: Mapping[str, str]) -> AsyncIterator[Callable[[str, dict[str, Any]], Any]]:
    """One over stdio, and how to ask it: a method and its parameters, for the result."""
    process = await asyncio.create_subprocess_exec(
        *_GATEWAY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), limit=_LINE_BYTES
    )
    assert process.stdin is not None and process.stdout is not None
    sink, source = process.stdin, process.stdout

    async def ask(method: str, params: dict[str, Any]) -> Any:
        sink.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        return json.loads(await source.readline())["result"]

    try:
        await ask("initialize", _ABOUT)
        sink.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        yield ask
    finally:
        sink.close()
        with contextlib.suppress(ProcessLookupError):
            await process.wait()


def _first_line(command: list[str], env: Mapping[str, str], said: bytes = b"") -> float:
    """Seconds from starting it to its first line, without what it takes to end."""
    started = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  # our own interpreter
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env)
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(said)
        process.stdin.flush()
        process.stdout.readline()
        took = time.perf_counter() - started
        process.stdin.close()
    return took


def _tokens() -> Callable[[str], int]:
    tokenizer = Tokenizer.from_file(str(models_directory() / DEFAULT_MODEL / "tokenizer.json"))
    tokenizer.no_truncation()
    # Latin letters are lower-cased before the model sees them.
    return lambda text: len(tokenizer.encode(text.lower(), add_special_tokens=False).ids)
