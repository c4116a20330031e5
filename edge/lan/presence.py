"""The box as the house sees it: its certificate, its pairings, and its name on the network."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from edge.lan.advertise import Advertiser, Published
from edge.lan.pairing import Pairings
from edge.lan.tls import Identity
from edge.lan.tokens import Tokens
from edge.lan.txt import Txt, instance_name
from edge.ports import Clock

API = "v1"


class Presence:
    """One for a box that serves the LAN. `announce` and `close` belong to the event loop that serves."""

    def __init__(
        self,
        identity: Path,
        tokens: Tokens,
        spaces: Callable[[], Collection[str]],
        name: str,
        version: str,
        clock: Clock,
    ) -> None:
        """identity: the directory of the key. spaces: the names of those that there are. name: what the box is called,
        empty for one made of its id.

        Raises what Identity.open raises, InvalidArgument for a version that cannot be published.
        """
        self._identity = Identity.open(identity)
        # As it is published, so that a paired client knows the box by the name that it lists.
        self.name = instance_name(name) if name.strip() else f"edge-memory-{self._identity.id[:4]}"
        self.pairings = Pairings(self._identity, tokens, self.name, clock, spaces)
        self._txt = Txt(self._identity.id, version, API, True, self._identity.id)
        self._advertiser: Advertiser | None = None

    @property
    def certificate(self) -> tuple[bytes, bytes]:
        """(key, certificate), both PEM."""
        return self._identity.key, self._identity.certificate

    def announce(self, port: int) -> None:
        """Publishes the box at this port, from now until `close`; that it fails is never fatal."""
        self._advertiser = Advertiser(self.name, port, self._txt)
        self._advertiser.start()

    def published(self) -> Published | None:
        """What the network is told just now; None before `announce`."""
        return self._advertiser.status() if self._advertiser is not None else None

    async def close(self) -> None:
        """Takes the box off others' lists."""
        if self._advertiser is not None:
            await self._advertiser.stop()
