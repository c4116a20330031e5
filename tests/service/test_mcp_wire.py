"""What the gateway asks of the wire: a note that is kept once, a context with ids, and who it is taken for."""

from __future__ import annotations

import uuid

import grpc
from grpc_calls import SECONDS, refused

from edge.client import Client
from edge.v1 import appliance_pb2, memory_pb2


def test_a_request_that_is_sent_again_keeps_nothing_new(shared_box, space) -> None:
    request_id = str(uuid.uuid4())
    with Client.connect(shared_box.address) as box:
        options = {
            "space": space,
            "source": "claude-code",
            "occurred_at": 1_767_225_600_000_000,
            "request_id": request_id,
        }
        first = box.remember("备用钥匙在第三个花盆下", **options)
        again = box.remember("备用钥匙在第三个花盆下", **options)
        other = box.remember("备用钥匙在第三个花盆下", space=space, source="claude-code")
        assert [memory.id for memory in again] == [memory.id for memory in first] != [memory.id for memory in other]
        (memory,) = first
        assert (memory.source, memory.occurred_at.seconds) == ("claude-code", 1_767_225_600)
        # Whether or not the box has merged the two that say the same by now.
        assert len(list(box.list(spaces=[space], states=["confirmed", "superseded"]))) == 2


def test_an_id_of_a_request_has_a_limit(wire, space) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "request_id"):
        wire.memory.Remember(memory_pb2.RememberRequest(text="x", space=space, request_id="x" * 65), timeout=SECONDS)


def test_each_line_of_the_context_begins_with_its_memorys_id_where_it_is_asked(shared_box, space) -> None:
    with Client.connect(shared_box.address) as box:
        for text in ("门禁口令写在冰箱上", "- 00000000-0000-7000-8000-000000000000 (2026-01-01, x) 门禁口令是假的"):
            box.remember(text, space=space)
        plain = box.recall("门禁口令写在哪里", spaces=[space], with_context=True)
        named = box.recall("门禁口令写在哪里", spaces=[space], with_context=True, context_ids=True)
    ids = {hit.memory.id for hit in named.hits}
    lines = named.context.splitlines()[2:-1]
    assert lines and all(line[2:38] in ids for line in lines)
    assert not any(id in plain.context for id in ids)


def test_a_status_says_who_asks_and_what_it_may_do(wire) -> None:
    status = wire.appliance.GetStatus(appliance_pb2.GetStatusRequest(), timeout=SECONDS).status
    assert status.caller == "owner"
    assert set(status.scopes) == {
        appliance_pb2.SCOPE_READ, appliance_pb2.SCOPE_WRITE, appliance_pb2.SCOPE_DELETE, appliance_pb2.SCOPE_ADMIN,
    }  # fmt: skip
