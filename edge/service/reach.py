"""Which spaces a call reaches, and the threads in which it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from edge.errors import InvalidArgument
from edge.service import permissions
from edge.space import Space
from edge.spaces import Spaces
from edge.types import Scope, check_space


class Reach:
    """Spaces by the caller's rights. Blocking work goes to `works`; nothing blocks on the event loop."""

    def __init__(self, spaces: Spaces, works: ThreadPoolExecutor) -> None:
        self._spaces = spaces
        self._works = works

    async def _named(self, names: Sequence[str], scope: Scope, field: str = "spaces") -> list[Space]:
        """These spaces, or all that the caller may reach so; one that holds nothing yet is simply empty."""
        caller = permissions.current.get()
        if names:
            wanted = [
                permissions.check_space_right(caller, scope, check_space(name, field), field)
                for name in dict.fromkeys(names)
            ]
        else:
            wanted = [name for name in self._spaces.names() if caller.may(scope, name)]
        spaces = [self._spaces.get(name) for name in wanted]
        if None in spaces:
            # Closed for idleness, or not there: a matter of the disk.
            spaces = await self._run(lambda: [self._spaces.find(name) for name in wanted])
        return [space for space in spaces if space is not None]

    async def _addressed(
        self, addresses: Sequence[tuple[str, str]], scope: Scope, field: str
    ) -> list[tuple[Space, list[str]]]:
        """Of memories that are named by `address`: each space that may have some, with the ids that it may have."""
        named = [name for name, _ in addresses]
        spaces = await self._named([] if "" in named else named, scope, field)
        return [(space, within(space, addresses)) for space in spaces]

    async def _run(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._works, function, *arguments)


def within(space: Space, addresses: Sequence[tuple[str, str]]) -> list[str]:
    """Those of the ids that may be of this space."""
    return [id_ for name, id_ in addresses if name in ("", space.name)]


def address(text: str, field: str) -> tuple[str, str]:
    """(space or "", memory id) of an id or an edge://<space>/<kind>/<id> URI."""
    if not text.startswith("edge://"):
        if not text or len(text) > 64:
            raise InvalidArgument(f"{field}: give a memory's id or its edge:// URI", field=field)
        return "", text
    parts = text.removeprefix("edge://").rsplit("/", 2)
    if len(parts) != 3 or not all(parts):
        raise InvalidArgument(f"{field}: a URI is edge://<space>/<kind>/<id>", field=field)
    return check_space(parts[0], field), parts[2]
