"""Damage in the middle of a database shows when it is read: the way out that is named must lead out."""

from __future__ import annotations

import os

from grpc_calls import turn

from edge.client import Client
from edge.errors import DataLoss

PAGE = 4096


def test_a_database_damaged_in_its_middle_is_made_anew_from_the_log(box) -> None:
    with Client(box.address) as client:
        said = [turn(f"第{seq}条记忆 number {seq}", seq=seq, session="s") for seq in range(300)]
        assert len(list(client.ingest(said, wait="searchable"))) == 300
    assert box.stop() == 0
    database = box.data / "spaces" / "public" / "memory.sqlite"
    with database.open("r+b") as file:
        file.seek(20 * PAGE)
        file.write(os.urandom(30 * PAGE))
    box.start()
    with Client(box.address) as client:
        try:
            whole = sum(1 for _ in client.list())
        except DataLoss as error:
            assert "edge rebuild --from-log" in error.message
            whole = 0
        if whole != 300:
            client.rebuild("log")
        assert sum(1 for _ in client.list()) == 300
        assert "number 123" in client.recall("number 123", top_k=1).hits[0].memory.text
