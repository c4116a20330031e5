"""A caller of the sync client that is interrupted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from typing import Any, NoReturn

import pytest

from edge.client import Client, synchronous
from edge.client.synchronous import run


def test_an_interrupted_call_has_ended_before_its_caller_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, steps = threading.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("ended")

    def interrupted(*_: Any) -> NoReturn:
        assert begun.wait(30)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(work())
    assert steps == ["ended"]


def test_a_series_that_is_interrupted_where_its_call_goes_on_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, steps = threading.Event(), []

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            begun.set()
            await asyncio.Event().wait()
        finally:
            # Not at once, as a call that is given up is not.
            await asyncio.sleep(0)
            steps.append("ended")

    def interrupted(work: Coroutine[Any, Any, Any]) -> NoReturn:
        asyncio.run_coroutine_threadsafe(work, synchronous._shared_loop())
        assert begun.wait(30)
        monkeypatch.undo()
        raise KeyboardInterrupt

    series = Client("127.0.0.1:1")._each(endless())
    assert next(series) == 1
    monkeypatch.setattr(synchronous, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(series)
    assert steps == ["ended"]


def test_a_series_that_was_read_in_part_may_outlive_its_client() -> None:
    steps = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            steps.append("ended")

    with Client("127.0.0.1:1") as client:
        series = client._each(endless())
        assert next(series) == 1
    series.close()
    assert steps == ["ended"]
