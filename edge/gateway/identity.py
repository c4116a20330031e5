"""Whom the box takes the gateway for: its own token, or the one that an HTTP request came with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from edge.gateway.box import Box
from edge.gateway.calls import Calls
from edge.gateway.outbox import Outbox
from edge.gateway.real import RealBox
from edge.gateway.writing import Writer

_SAY = ("EDGE_ADDRESS", "EDGE_DATA", "EDGE_TOKEN", "EDGE_TLS_FINGERPRINT")


@dataclass(frozen=True, slots=True)
class Identity:
    box: Box
    writer: Writer
    calls: Calls

    async def close(self) -> None:
        await self.writer.close()
        await self.box.close()


@dataclass(frozen=True, slots=True)
class Where:
    """Which box is meant, as for every command. `redact` hides secrets in what has to wait on this machine."""

    redact: Callable[[str], str]
    address: str | None = None
    data: Path | None = None
    tls_fingerprint: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def identity(self, token: str | None = None) -> Identity:
        """Of a token; of the gateway's own (EDGE_TOKEN, or the pairing's) for None. Inside the event loop."""
        box = RealBox(self.address, token=token, data=self.data, tls_fingerprint=self.tls_fingerprint)
        writer = Writer(box, Outbox(self.outbox(token), self.redact))
        return Identity(box, writer, Calls(box, writer))

    def outbox(self, token: str | None = None) -> Path:
        """A folder for each box and token, so that no note goes to another's space."""
        said = [str(self.address), str(self.data), str(token), *(self.environ.get(name, "") for name in _SAY)]
        name = hashlib.sha256("\0".join(said).encode("utf-8", "replace")).hexdigest()[:16]
        return Path(platformdirs.user_state_dir("edge-memory", appauthor=False)) / "outbox" / name
