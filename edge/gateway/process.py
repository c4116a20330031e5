"""The gateway as a process on stdin and stdout."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from edge import __version__
from edge.gateway.identity import Where
from edge.gateway.server import build
from edge.gateway.stdio import serve


async def run_stdio(where: Where, source: int, sink: int) -> None:
    """Until the client closes its end."""
    log_to_stderr()
    identity = where.identity()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        identity.writer.start()
        try:
            yield
        finally:
            await identity.close()

    await serve(build(lambda _: identity, __version__, lifespan), source, sink)


def log_to_stderr() -> None:
    """The house's own lines as EDGE_LOG says; of the libraries only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("edge mcp: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # What is no level is no reason to refuse an assistant its memory.
    with suppress(ValueError):
        logging.getLogger("edge").setLevel(os.environ.get("EDGE_LOG", "WARNING").upper())


class _Lines(logging.Formatter):
    """A traceback may quote what was said, and a client that goes away is worth none: only for who asks for it."""

    def formatException(self, ei: Any) -> str:  # noqa: N802  # logging's name
        return super().formatException(ei) if os.environ.get("EDGE_DEBUG") == "1" else f"  {ei[0].__name__}"
