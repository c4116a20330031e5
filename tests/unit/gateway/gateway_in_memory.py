"""The tools over a box in memory, and an outbox in the test's own folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from edge.gateway.calls import Calls, Result
from edge.gateway.fake import FakeBox
from edge.gateway.outbox import Outbox
from edge.gateway.writing import Writer

_T = TypeVar("_T")


class Gateway:
    """`call` runs one tool to its end, in a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.box = FakeBox()
        self.folder = folder
        self.outbox = Outbox(folder, lambda text: text.replace("hunter2", "[密码]"))

    def run(self, act: Callable[[Calls, Writer], Awaitable[_T]]) -> _T:
        async def main() -> _T:
            writer = Writer(self.box, self.outbox)
            return await act(Calls(self.box, writer), writer)

        return asyncio.run(main())

    def call(self, name: str, **given: Any) -> Result:
        return self.run(lambda calls, _: calls.call(name, given, "claude-code"))

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*")) if self.folder.exists() else []
