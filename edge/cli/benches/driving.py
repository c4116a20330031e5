"""Talking to the box under test: turns in, questions asked, memory watched."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from edge.cli.benches import machine
from edge.client import AsyncClient
from edge.errors import EdgeError

_WATCH_SECONDS = 0.05


class Memory:
    """Samples the resident memory of a process in a thread; `peak` is the most while the block ran."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = machine.resident(pid)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_SECONDS):
            self.peak = max(self.peak, machine.resident(self._pid))


def turn(text: str, session: str, seq: int) -> dict[str, Any]:
    """One turn as the client takes it."""
    return {"source": "bench", "session": session, "seq": seq, "role": "user", "text": text}


async def ingest(client: AsyncClient, texts: Sequence[str], session: str) -> float:
    """Seconds from the first turn sent to the last that can be found. Raises EdgeError when one cannot."""
    told = [turn(text, session, seq) for seq, text in enumerate(texts)]
    started = time.perf_counter()
    async for result in client.ingest(told, wait="searchable"):
        if result.state.name != "SEARCHABLE":
            raise EdgeError(f"a turn of the bench became {result.state.name}; the figures would mean nothing")
    return time.perf_counter() - started


async def ask(client: AsyncClient, questions: Sequence[str], **options: Any) -> list[float]:
    """Seconds for each question, asked one after another."""
    took = []
    for question in questions:
        started = time.perf_counter()
        await client.recall(question, **options)
        took.append(time.perf_counter() - started)
    return took
