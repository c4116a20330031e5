"""Pairing over the network: what a code gives, what it costs to be wrong, and what a machine in the middle learns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_calls import SECONDS, Wire, reason_of, refused
from grpc_status import rpc_status
from lan_box import LanBox, Pairer, Talk, bearer, lan_box, memory_stub, pair

from edge.lan.handshake import ELEMENT_BYTES, MAC_BYTES, ClientPairing
from edge.lan.tls import fingerprint
from edge.v1 import appliance_pb2, appliance_pb2_grpc, memory_pb2, pairing_pb2, pairing_pb2_grpc

if TYPE_CHECKING:
    from conftest import BoxFactory

CODE = grpc.StatusCode
WRONG = "0000-0000"


@pytest.fixture
def lan(start_box: BoxFactory) -> LanBox:
    """A box of the test's own: attempts to pair are few in a minute."""
    return lan_box(start_box)


@pytest.fixture
def channel(lan: LanBox) -> Iterator[grpc.Channel]:
    with lan.channel() as connected:
        yield connected


@pytest.fixture(scope="module")
def lasting(start_lasting_box: BoxFactory) -> LanBox:
    """For what costs no attempt."""
    return lan_box(start_lasting_box)


def refusal(channel: grpc.Channel, *requests: pairing_pb2.PairRequest) -> tuple[grpc.StatusCode, str]:
    """(code, reason) that these messages are turned away with."""
    with pytest.raises(grpc.RpcError) as caught:
        list(pairing_pb2_grpc.PairingServiceStub(channel).Pair(iter(requests), timeout=SECONDS))
    status = rpc_status.from_call(caught.value)
    assert status is not None, caught.value
    return caught.value.code(), reason_of(status)


def failure(lan: LanBox, channel: grpc.Channel, code: str, name: str = "desk") -> tuple[grpc.StatusCode, str]:
    """As refusal, of a whole pairing."""
    with pytest.raises(grpc.RpcError) as caught:
        pair(channel, code, name, lan.certificate)
    status = rpc_status.from_call(caught.value)
    assert status is not None, caught.value
    return caught.value.code(), reason_of(status)


def start(name: str = "desk", element: bytes = b"A" * ELEMENT_BYTES) -> pairing_pb2.PairRequest:
    return pairing_pb2.PairRequest(start=pairing_pb2.PairStart(name=name, element=element))


def confirm(mac: bytes = b"m" * MAC_BYTES) -> pairing_pb2.PairRequest:
    return pairing_pb2.PairRequest(confirm=pairing_pb2.PairConfirm(mac=mac))


def test_a_code_gives_one_client_a_token_for_what_is_shared_and_a_space_of_its_own(
    lan: LanBox, channel: grpc.Channel
) -> None:
    code = lan.new_code()
    granted = pair(channel, code, "desk", lan.certificate)
    assert granted.box_id == fingerprint(lan.certificate).hex()[:16]
    remembered = memory_stub(channel).Remember(
        memory_pb2.RememberRequest(text="书房的灯坏了"), metadata=bearer(granted.token), timeout=SECONDS
    )
    assert remembered.memories[0].space == "private/desk"
    tokens = lan.owner.appliance.ListTokens(appliance_pb2.ListTokensRequest(), timeout=SECONDS).tokens
    assert [(token.name, bool(token.last_used_at.seconds)) for token in tokens] == [("desk", True)]
    # The code is used up.
    assert failure(lan, channel, code, "shelf") == (CODE.FAILED_PRECONDITION, "NO_PAIRING_OPEN")
    assert granted.token not in lan.box.log and code not in lan.box.log


def test_five_wrong_codes_end_the_right_one_and_three_a_minute_are_taken_from_one_address(lan: LanBox) -> None:
    right = lan.new_code()
    with lan.channel() as four, lan.channel(address=f"[::1]:{lan.port}") as six:
        for _ in range(3):
            assert failure(lan, four, WRONG) == (CODE.PERMISSION_DENIED, "PAIRING_FAILED")
        assert failure(lan, four, right) == (CODE.RESOURCE_EXHAUSTED, "PAIRING_TOO_OFTEN")
        for _ in range(2):
            assert failure(lan, six, WRONG) == (CODE.PERMISSION_DENIED, "PAIRING_FAILED")
        assert failure(lan, six, right) == (CODE.FAILED_PRECONDITION, "NO_PAIRING_OPEN")
    assert not lan.owner.appliance.ListTokens(appliance_pb2.ListTokensRequest(), timeout=SECONDS).tokens


def test_an_attempt_that_is_given_up_counts_too(lan: LanBox, channel: grpc.Channel) -> None:
    code = lan.new_code()
    for _ in range(3):
        pairer = Pairer(channel, code, "desk", fingerprint(lan.certificate))
        with pairer.talk:
            pairer.start()
    assert failure(lan, channel, code) == (CODE.RESOURCE_EXHAUSTED, "PAIRING_TOO_OFTEN")


def test_the_messages_of_a_pairing_are_worth_nothing_a_second_time(lan: LanBox, channel: grpc.Channel) -> None:
    code, digest = lan.new_code(), fingerprint(lan.certificate)
    ours = ClientPairing(code, "desk", digest)
    first = start("desk", ours.start())
    with Talk(pairing_pb2_grpc.PairingServiceStub(channel).Pair) as talk:
        second = confirm(ours.confirm(talk.ask(first).element.element))
        grant = talk.ask(second).grant
        # Nothing follows a grant, whatever is sent.
        talk.say(second)
        assert list(talk.call) == []
    assert ours.finish(grant.mac, grant.sealed).token
    assert refusal(channel, first, second) == (CODE.FAILED_PRECONDITION, "NO_PAIRING_OPEN")
    lan.new_code(again="desk")
    assert refusal(channel, first, second) == (CODE.PERMISSION_DENIED, "PAIRING_FAILED")


def test_a_private_space_that_is_there_already_is_not_given_to_a_newcomer(lan: LanBox, channel: grpc.Channel) -> None:
    name = appliance_pb2.CreateSpaceRequest(name="private/diary")
    lan.owner.appliance.CreateSpace(name, timeout=SECONDS)
    code = lan.new_code()
    assert failure(lan, channel, code, "diary") == (CODE.FAILED_PRECONDITION, "NAME_TAKEN")


def test_a_name_belongs_to_whoever_had_it_first_until_the_owner_lets_it_pair_again(
    lan: LanBox, channel: grpc.Channel
) -> None:
    first = pair(channel, lan.new_code(), "desk", lan.certificate).token
    with lan.channel(address=f"[::1]:{lan.port}") as other:
        # A living token's name, and a revoked one's: its private space is still there.
        assert failure(lan, other, lan.new_code()) == (CODE.FAILED_PRECONDITION, "NAME_TAKEN")
        lan.revoke("desk")
        assert failure(lan, other, lan.new_code()) == (CODE.FAILED_PRECONDITION, "NAME_TAKEN")
        second = pair(other, lan.new_code(again="desk"), "desk", lan.certificate).token
    third = pair(channel, lan.new_code(again="desk"), "desk", lan.certificate).token
    status = appliance_pb2_grpc.ApplianceServiceStub(channel).GetStatus
    for secret in (first, second):
        with refused(CODE.UNAUTHENTICATED):
            status(appliance_pb2.GetStatusRequest(), metadata=bearer(secret), timeout=SECONDS)
    assert status(appliance_pb2.GetStatusRequest(), metadata=bearer(third), timeout=SECONDS).status.ready


@pytest.mark.parametrize("name", ["", "../x", "%2e%2e", "a\0b", "a" * 300, "A", "a/b", " desk", "书房", "-a"])
def test_a_name_that_could_be_no_space_s_is_refused_before_it_costs_an_attempt(lasting: LanBox, name: str) -> None:
    with lasting.channel() as channel:
        assert refusal(channel, start(name)) == (CODE.INVALID_ARGUMENT, "INVALID_FIELD")


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (pairing_pb2.PairRequest(),),
        (confirm(),),
        (start(element=b""),),
        (start(element=b"A"),),
        (start(element=b"A" * 100_000),),
    ],
)
def test_messages_out_of_order_or_shape_are_the_caller_s_fault(
    lasting: LanBox, messages: tuple[pairing_pb2.PairRequest, ...]
) -> None:
    # Among them what the owner asks a new code by: off the socket it gives none.
    with lasting.channel() as channel:
        assert refusal(channel, *messages) == (CODE.INVALID_ARGUMENT, "INVALID_FIELD")


def test_elements_that_no_client_would_send_fail_as_a_wrong_code_does(lan: LanBox, channel: grpc.Channel) -> None:
    lan.new_code()
    # The neutral element, and a point of order two: with either, what both ends agree on would be known to all.
    for point in ((1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little"), os.urandom(32)):
        assert refusal(channel, start(element=b"A" + point), confirm()) == (CODE.PERMISSION_DENIED, "PAIRING_FAILED")


def test_a_confirmation_without_a_start_after_it_ends_the_attempt(lan: LanBox, channel: grpc.Channel) -> None:
    code = lan.new_code()
    ours = ClientPairing(code, "desk", fingerprint(lan.certificate))
    first = start("desk", ours.start())
    assert refusal(channel, first, first)[0] is CODE.INVALID_ARGUMENT
    assert refusal(channel, first, confirm(b"short"))[0] is CODE.INVALID_ARGUMENT
    assert refusal(channel, first)[0] is CODE.INVALID_ARGUMENT


def test_without_tls_there_is_no_certificate_to_pair_by_and_no_attempt_is_lost(lan: LanBox) -> None:
    code = lan.new_code()
    with grpc.insecure_channel(lan.plain) as plain, lan.channel() as channel:
        for _ in range(4):
            assert failure(lan, plain, code) == (CODE.FAILED_PRECONDITION, "NO_CERTIFICATE")
        assert pair(channel, code, "desk", lan.certificate).token


def test_a_box_that_serves_no_other_machine_has_nothing_to_pair_with(wire: Wire) -> None:
    assert refusal(wire.channel, start()) == (CODE.FAILED_PRECONDITION, "NOT_ON_THE_LAN")


def test_who_opens_pairings_and_says_nothing_holds_up_neither_others_nor_the_owner(
    lan: LanBox, channel: grpc.Channel
) -> None:
    silent = [Talk(pairing_pb2_grpc.PairingServiceStub(channel).Pair) for _ in range(2)]
    while lan.owner.status().streams < 2:
        pass
    code = lan.new_code()
    with lan.channel() as same, lan.channel(address=f"[::1]:{lan.port}") as other:
        assert failure(lan, same, code) == (CODE.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert lan.owner.recall("还在吗") is not None
        assert pair(other, code, "desk", lan.certificate).token
        for talk in silent:
            with refused(CODE.DEADLINE_EXCEEDED):
                next(talk.call)
            talk.end()
        assert pair(same, lan.new_code(), "phone", lan.certificate).token


def rubbish(lasting: LanBox, raw: bytes) -> Any:
    with lasting.channel() as channel:
        return next(channel.stream_stream("/edge.v1.PairingService/Pair")(iter([raw]), timeout=SECONDS))


@pytest.mark.parametrize(
    "raw", [b"\xff", b"\x0a\x04\x0a\x02\xff\xfe", b"\x0a" + b"\xff" * 9 + b"\x01", b"\x12\x02\x0a\x00" * 16]
)
def test_bytes_that_are_no_message_are_the_caller_s_fault(lasting: LanBox, raw: bytes) -> None:
    with refused(CODE.INVALID_ARGUMENT):
        rubbish(lasting, raw)
