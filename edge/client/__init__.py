"""The SDK: async, with a thin sync face."""

from edge.client.asynchronous import AsyncClient
from edge.client.finder import discover
from edge.client.messages import Ingested, IngestState
from edge.client.requests import turn
from edge.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "IngestState", "Ingested", "discover", "turn"]
