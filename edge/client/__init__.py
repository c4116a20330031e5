"""The SDK: async, with a thin sync face."""

from edge.client.asynchronous import AsyncClient
from edge.client.finder import discover
from edge.client.messages import Ingested, IngestState, Remembered
from edge.client.requests import turn
from edge.client.reviewing import Reviewed
from edge.client.synchronous import Client
from edge.client.working import State

__all__ = ["AsyncClient", "Client", "IngestState", "Ingested", "Remembered", "Reviewed", "State", "discover", "turn"]
