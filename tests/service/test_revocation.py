"""A token that is revoked is good for nothing from that moment; what came by it before stays. No secret is written."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_calls import SECONDS, IngestState, message, reason_of, refused, turn
from grpc_status import rpc_status
from lan_box import LanBox, Talk, bearer, bytes_below, lan_box, memory_stub, pair

from edge.v1 import appliance_pb2, appliance_pb2_grpc, memory_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
_names = itertools.count()


@pytest.fixture(scope="module")
def lan(start_lasting_box: BoxFactory) -> LanBox:
    return lan_box(start_lasting_box)


@pytest.fixture(scope="module")
def channel(lan: LanBox) -> Iterator[grpc.Channel]:
    with lan.channel() as connected:
        yield connected


@pytest.fixture
def name() -> str:
    return f"client{next(_names)}"


def ended(call: Any) -> str:
    """The reason that the open call ends with; UNAUTHENTICATED it is."""
    with pytest.raises(grpc.RpcError) as caught:
        for _ in call:
            pass
    assert caught.value.code() is UNAUTHENTICATED, caught.value
    status = rpc_status.from_call(caught.value)
    assert status is not None
    return reason_of(status)


def test_no_call_gets_in_after_it(lan: LanBox, channel: grpc.Channel, name: str) -> None:
    metadata = bearer(lan.token(name))
    status = appliance_pb2_grpc.ApplianceServiceStub(channel).GetStatus
    assert status(appliance_pb2.GetStatusRequest(), metadata=metadata, timeout=SECONDS).status.ready
    lan.revoke(name)
    with refused(UNAUTHENTICATED):
        status(appliance_pb2.GetStatusRequest(), metadata=metadata, timeout=SECONDS)


def test_an_open_ingest_ends_and_what_was_stored_stays(lan: LanBox, channel: grpc.Channel, name: str) -> None:
    with Talk(memory_stub(channel).Ingest, bearer(lan.token(name))) as talk:
        first = talk.ask(message(turn("撤销之前说的", seq=1), ref="before"))
        assert first.results[0].state == IngestState.INGEST_STATE_STORED
        lan.revoke(name)
        # It ends without another message from the client.
        assert ended(talk.call) == "TOKEN_UNKNOWN"
        talk.say(message(turn("撤销之后说的", seq=2), ref="after"))
    assert [memory.text for memory in lan.owner.listed(f"private/{name}")] == ["撤销之前说的"]


def test_an_open_recall_stream_ends(lan: LanBox, channel: grpc.Channel, name: str) -> None:
    with Talk(memory_stub(channel).RecallStream, bearer(lan.token(name))) as talk:
        assert talk.ask(memory_pb2.RecallRequest(query="钥匙")) is not None
        lan.revoke(name)
        assert ended(talk.call) == "TOKEN_UNKNOWN"


@pytest.mark.parametrize("seconds", [1, 3600])
def test_an_open_watch_ends_however_long_it_has_to_wait(
    lan: LanBox, channel: grpc.Channel, name: str, seconds: int
) -> None:
    request = appliance_pb2.WatchStatusRequest(interval=Duration(seconds=seconds))
    stub = appliance_pb2_grpc.ApplianceServiceStub(channel)
    watching = stub.WatchStatus(request, metadata=bearer(lan.token(name)), timeout=SECONDS)
    assert next(watching).status.ready
    lan.revoke(name)
    assert ended(watching) == "TOKEN_UNKNOWN"


def test_streams_of_other_clients_go_on_and_the_ended_ones_are_counted_no_more(
    lan: LanBox, channel: grpc.Channel, name: str
) -> None:
    before = lan.owner.status().streams
    other = f"{name}-other"
    stub = memory_stub(channel)
    with Talk(stub.RecallStream, bearer(lan.token(other))) as kept:
        kept.ask(memory_pb2.RecallRequest(query="一"))
        secret = lan.token(name)
        gone = [Talk(stub.RecallStream, bearer(secret)) for _ in range(20)]
        for talk in gone:
            talk.ask(memory_pb2.RecallRequest(query="二"))
        lan.revoke(name)
        for talk in gone:
            ended(talk.call)
            talk.end()
        assert kept.ask(memory_pb2.RecallRequest(query="三")) is not None
        while lan.owner.status().streams > before + 1:
            pass


def test_a_client_that_pairs_again_ends_what_its_old_token_had_open(start_box: BoxFactory) -> None:
    lan = lan_box(start_box)
    with lan.channel() as channel:
        old = pair(channel, lan.new_code(), "desk", lan.certificate).token
        with Talk(memory_stub(channel).RecallStream, bearer(old)) as talk:
            talk.ask(memory_pb2.RecallRequest(query="钥匙"))
            new = pair(channel, lan.new_code(again="desk"), "desk", lan.certificate).token
            assert ended(talk.call) == "TOKEN_UNKNOWN"
        with Talk(memory_stub(channel).RecallStream, bearer(new)) as talk:
            assert talk.ask(memory_pb2.RecallRequest(query="钥匙")) is not None


def test_a_revoked_token_stays_so_after_kill_nine(start_box: BoxFactory) -> None:
    lan = lan_box(start_box)
    gone, kept = lan.token("gone"), lan.token("kept")
    lan.revoke("gone")
    lan.box.kill()
    lan.box.restart()
    again = LanBox(lan.box)
    with again.channel() as channel:
        status = appliance_pb2_grpc.ApplianceServiceStub(channel).GetStatus
        with refused(UNAUTHENTICATED):
            status(appliance_pb2.GetStatusRequest(), metadata=bearer(gone), timeout=SECONDS)
        assert status(appliance_pb2.GetStatusRequest(), metadata=bearer(kept), timeout=SECONDS).status.ready
    # The certificate is the one that clients remember.
    assert again.certificate == lan.certificate


def attempt(call: Callable[[], object]) -> None:
    """Makes it, whatever comes of it."""
    with contextlib.suppress(grpc.RpcError):
        call()


def test_no_secret_no_code_and_no_text_is_in_a_log_at_any_level_nor_a_secret_on_the_disk(start_box: BoxFactory) -> None:
    lan = lan_box(start_box, environment={"EDGE_LOG": "DEBUG"})
    code, wrong_code, wrong = lan.new_code(), "1234-5678", f"edge_{secrets.token_urlsafe(32)}"
    text, question = "阳台第三个花盆下面有备用钥匙", "备用的钥匙在什么地方呢"
    with lan.channel() as channel, grpc.insecure_channel(lan.plain) as plain:
        attempt(lambda: pair(channel, wrong_code, "desk", lan.certificate))
        paired = pair(channel, code, "desk", lan.certificate).token
        made = lan.token("shelf")
        for connection in (channel, plain):
            for secret in (paired, made, wrong):
                for query in (question, "\0"):
                    request = memory_pb2.RecallRequest(query=query)
                    attempt(lambda: memory_stub(connection).Recall(request, metadata=bearer(secret), timeout=SECONDS))  # noqa: B023  # called at once
                turns = message(turn(text), turn(text, role="\0"))
                attempt(lambda: list(memory_stub(connection).Ingest(iter([turns]), metadata=bearer(secret))))  # noqa: B023  # called at once
    lan.revoke("shelf")
    again = lan.new_code(again="desk")
    assert [memory.text for memory in lan.owner.listed("private/desk")] == [text, text]
    live = bytes_below(lan.box)
    assert lan.box.stop() == 0
    assert "DEBUG" in lan.box.log
    said = [code, wrong_code, again, paired, made, wrong, text, question]
    plain_codes = [one.replace("-", "") for one in (code, wrong_code, again)]
    assert not [one for one in (*said, *plain_codes) if one in lan.box.log]
    stopped = bytes_below(lan.box)
    for held in (live, stopped):
        assert text.encode() in held
        for secret in (paired, made, wrong, code, again, *plain_codes[::2]):
            assert secret.encode() not in held
            assert secret.removeprefix("edge_").encode() not in held
