"""A caller of the sync client that is interrupted."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, NoReturn

import pytest

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
