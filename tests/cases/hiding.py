"""A secret told to a box in every way there is, and the search for it in all that the box has written."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgpack
from grpc_calls import SECONDS, Wire, turn

from edge.v1 import memory_pb2, working_pb2

if TYPE_CHECKING:
    from conftest import Box

SPACE = "work"


def tell(wire: Wire, text: str) -> list[str]:
    """The text goes in as a turn with a tag and attributes, as a note and as state; the ids of its memories."""
    tags = [text] if len(text) <= 40 and text.isprintable() else []
    said = turn(text, space=SPACE, tags=tags, attributes=msgpack.packb({"said": [text]}))
    _, (result,) = wire.ingest(said)
    assert result.state == memory_pb2.INGEST_STATE_SEARCHABLE
    noted = wire.memory.Remember(memory_pb2.RememberRequest(text=text, space=SPACE), timeout=SECONDS)
    for key, value in (("text", {"text": text}), ("map", {"msgpack": msgpack.packb({"said": [text]})})):
        request = working_pb2.PutStateRequest(space=SPACE, key=key, **value)
        wire.working.PutState(request, timeout=SECONDS)
    return [*result.memory_ids, *(memory.id for memory in noted.memories)]


def recalled(wire: Wire, *queries: str) -> str:
    """All that the box gives back for these questions."""
    return "\n".join(text for query in queries for text in wire.texts(query, SPACE, top_k=200))


def left(box: Box, *secrets: str) -> list[tuple[str, str]]:
    """Where the stopped box still has one of these: a file of its data directory, or what it said."""
    assert not box.running
    return [(name, secret) for name, content in _written(box) for secret in secrets if secret.encode() in content]


def _written(box: Box) -> Iterator[tuple[str, bytes]]:
    databases = [path for path in sorted(box.data.rglob("*.sqlite")) if path.is_file()]
    assert any(path.name == "memory.sqlite" for path in databases)
    for path in databases:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = [path for path in sorted(box.data.rglob("*")) if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in files)
    for path in files:
        yield str(path.relative_to(box.data)), path.read_bytes()
    yield "what it said", box.log.encode()
