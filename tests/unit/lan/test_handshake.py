"""Both ends of a pairing, and everything that can stand between them."""

from __future__ import annotations

import hashlib
import secrets
import subprocess
import sys
from dataclasses import dataclass

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from edge.errors import EdgeError, FailedPrecondition, InvalidArgument, PermissionDenied
from edge.lan.handshake import (
    ALPHABET,
    ELEMENT_BYTES,
    BoxPairing,
    ClientPairing,
    Granted,
    read_code,
)
from edge.types import check_name, check_space

CODE = "7K2M9QXD"
CERTIFICATE = hashlib.sha256(b"the box's certificate").digest()
GRANTED = Granted("edge_" + "x" * 43, "0123456789abcdef", "书房的盒子")
# Ed25519's order, and encodings of the points of order 1, 2, 4 and 8.
PRIME = 2**255 - 19
SMALL_ORDER = [
    (1).to_bytes(32, "little"),
    (PRIME - 1).to_bytes(32, "little"),
    bytes(32),
    (1 << 255).to_bytes(32, "little"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    # The same again, not in their canonical form.
    (PRIME + 1).to_bytes(32, "little"),
    PRIME.to_bytes(32, "little"),
    (1 | 1 << 255).to_bytes(32, "little"),
    (PRIME + 1 | 1 << 255).to_bytes(32, "little"),
]


@dataclass
class Talk:
    """One pairing, message by message, as both ends would send them."""

    client: ClientPairing
    box: BoxPairing

    def element(self) -> bytes:
        return self.box.start(self.client.start())

    def run(self) -> Granted:
        self.box.check(self.client.confirm(self.element()))
        return self.client.finish(*self.box.grant(GRANTED))


def talk(
    code: str = CODE, *, typed: str = CODE, name: str = "claude", seen: bytes = CERTIFICATE, claimed: str = "claude"
) -> Talk:
    return Talk(ClientPairing(typed, name, seen), BoxPairing(code, claimed, CERTIFICATE))


def test_a_client_with_the_code_gets_what_the_box_grants() -> None:
    assert talk().run() == GRANTED


@pytest.mark.parametrize("typed", ["7k2m-9qxd", " 7K2M 9QXD\n", "７Ｋ２Ｍ９ＱＸＤ", "7k2m–9qxd"])
def test_a_code_may_be_typed_in_many_ways(typed: str) -> None:
    assert talk(typed=typed).run() == GRANTED


def test_letters_that_are_no_symbols_are_read_as_the_digits_they_look_like() -> None:
    assert read_code("oOiIlL00") == "00111100"


@pytest.mark.parametrize("typed", ["", "7K2M9QX", "7K2M9QXDA", "7K2M9QXU", "7K2M9QX门", "7K2M9QX\0", "7" * 100_000])
def test_what_cannot_be_a_code_is_refused_before_an_attempt_is_lost(typed: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ClientPairing(typed, "claude", CERTIFICATE)
    assert caught.value.field == "code"
    assert "7K2M9QX" not in caught.value.message


def test_a_wrong_code_fails_at_the_box_before_the_box_proves_anything() -> None:
    one = talk(typed="7K2M9QXE")
    mac = one.client.confirm(one.element())
    with pytest.raises(PermissionDenied) as caught:
        one.box.check(mac)
    assert caught.value.reason == "PAIRING_FAILED"
    with pytest.raises(FailedPrecondition):
        one.box.grant(GRANTED)


def test_a_client_does_not_believe_a_box_that_lacks_the_code() -> None:
    """A fake box cannot check the mac; it goes on all the same."""
    client = ClientPairing(CODE, "claude", CERTIFICATE)
    fake = BoxPairing("00000000", "claude", CERTIFICATE)
    client.confirm(fake.start(client.start()))
    fake._next = "grant"
    with pytest.raises(PermissionDenied):
        client.finish(*fake.grant(GRANTED))


def test_a_machine_in_the_middle_with_a_certificate_of_its_own_fails_100_of_100_times() -> None:
    """It relays every message as it is: all that differs is the certificate that the client sees."""
    failed = 0
    for _ in range(100):
        one = talk(seen=secrets.token_bytes(32))
        mac = one.client.confirm(one.element())
        with pytest.raises(PermissionDenied):
            one.box.check(mac)
        failed += 1
    assert failed == 100


def test_a_machine_in_the_middle_that_guesses_on_both_sides_fails_on_both() -> None:
    theirs = hashlib.sha256(b"the certificate of the machine in the middle").digest()
    client, box = ClientPairing(CODE, "claude", theirs), BoxPairing(CODE, "claude", CERTIFICATE)
    to_client, to_box = BoxPairing("11111111", "claude", theirs), ClientPairing("11111111", "claude", CERTIFICATE)
    mac = client.confirm(to_client.start(client.start()))
    for guess in (mac, to_box.confirm(box.start(to_box.start()))):
        with pytest.raises(EdgeError):
            box.check(guess)
    to_client._next = "grant"
    with pytest.raises(PermissionDenied):
        client.finish(*to_client.grant(GRANTED))


def test_a_name_that_was_changed_on_the_way_fails() -> None:
    one = talk(claimed="mallory")
    mac = one.client.confirm(one.element())
    with pytest.raises(PermissionDenied):
        one.box.check(mac)


@given(st.sampled_from(["client element", "box element", "client mac", "box mac", "sealed"]), st.data())
def test_a_message_with_any_byte_changed_fails_and_gives_no_token(which: str, data: st.DataObject) -> None:
    def tamper(name: str, message: bytes) -> bytes:
        if name != which:
            return message
        place = data.draw(st.integers(0, len(message) - 1))
        changed = bytearray(message)
        changed[place] ^= data.draw(st.integers(1, 255))
        return bytes(changed)

    one = talk()
    with pytest.raises(PermissionDenied):
        element = one.box.start(tamper("client element", one.client.start()))
        mac = one.client.confirm(tamper("box element", element))
        one.box.check(tamper("client mac", mac))
        proof, sealed = one.box.grant(GRANTED)
        one.client.finish(tamper("box mac", proof), tamper("sealed", sealed))


@given(st.sampled_from(["client element", "box element", "client mac", "box mac", "sealed"]), st.data())
def test_a_message_cut_short_or_made_longer_is_refused(which: str, data: st.DataObject) -> None:
    def resize(name: str, message: bytes) -> bytes:
        if name != which:
            return message
        return data.draw(
            st.one_of(
                st.integers(0, len(message) - 1).map(lambda length: message[:length]),
                st.binary(min_size=1, max_size=64).map(lambda more: message + more),
            )
        )

    one = talk()
    with pytest.raises((InvalidArgument, PermissionDenied)):
        element = one.box.start(resize("client element", one.client.start()))
        mac = one.client.confirm(resize("box element", element))
        one.box.check(resize("client mac", mac))
        proof, sealed = one.box.grant(GRANTED)
        one.client.finish(resize("box mac", proof), resize("sealed", sealed))


@given(st.binary(min_size=ELEMENT_BYTES, max_size=ELEMENT_BYTES))
@example(b"A" + b"\xff" * 32)
@example(b"A" + bytes(32))
def test_any_bytes_for_an_element_end_in_a_refusal_sooner_or_later(element: bytes) -> None:
    box = BoxPairing(CODE, "claude", CERTIFICATE)
    with pytest.raises(PermissionDenied):
        box.start(element)
        box.check(bytes(32))


@pytest.mark.parametrize("point", SMALL_ORDER, ids=lambda point: point.hex()[:8])
def test_an_element_of_small_order_is_refused_by_both_ends(point: bytes) -> None:
    with pytest.raises(PermissionDenied):
        BoxPairing(CODE, "claude", CERTIFICATE).start(b"A" + point)
    client = ClientPairing(CODE, "claude", CERTIFICATE)
    client.start()
    with pytest.raises(PermissionDenied):
        client.confirm(b"B" + point)


def test_an_end_refuses_its_own_element_sent_back() -> None:
    for side in (b"A", b"B"):
        client = ClientPairing(CODE, "claude", CERTIFICATE)
        own = client.start()
        with pytest.raises(PermissionDenied):
            client.confirm(side + own[1:])


def test_the_clients_own_mac_sent_back_proves_nothing() -> None:
    one = talk()
    mac = one.client.confirm(one.element())
    one.box.check(mac)
    _, sealed = one.box.grant(GRANTED)
    with pytest.raises(PermissionDenied):
        one.client.finish(mac, sealed)


def test_a_recorded_pairing_cannot_be_played_to_the_box_again() -> None:
    first = talk()
    element = first.client.start()
    mac = first.client.confirm(first.box.start(element))
    first.box.check(mac)
    again = BoxPairing(CODE, "claude", CERTIFICATE)
    again.start(element)
    with pytest.raises(PermissionDenied):
        again.check(mac)


def test_a_recorded_pairing_cannot_be_played_to_the_client_again() -> None:
    first = talk()
    element = first.element()
    first.box.check(first.client.confirm(element))
    proof, sealed = first.box.grant(GRANTED)
    again = ClientPairing(CODE, "claude", CERTIFICATE)
    again.start()
    again.confirm(element)
    with pytest.raises(PermissionDenied):
        again.finish(proof, sealed)


def test_steps_out_of_their_order_or_twice_are_refused() -> None:
    with pytest.raises(FailedPrecondition):
        talk().client.confirm(bytes(ELEMENT_BYTES))
    with pytest.raises(FailedPrecondition):
        talk().client.finish(bytes(32), b"")
    with pytest.raises(FailedPrecondition):
        talk().box.check(bytes(32))
    with pytest.raises(FailedPrecondition):
        talk().box.grant(GRANTED)
    one = talk()
    element = one.client.start()
    with pytest.raises(FailedPrecondition):
        one.client.start()
    one = talk()
    one.box.start(element)
    with pytest.raises(FailedPrecondition):
        one.box.start(element)


def test_a_wrong_mac_cannot_be_followed_by_another() -> None:
    one = talk()
    mac = one.client.confirm(one.element())
    with pytest.raises(PermissionDenied):
        one.box.check(bytes(32))
    with pytest.raises(FailedPrecondition):
        one.box.check(mac)


@given(st.text(max_size=70))
@example("a" * 63)
@example("a" * 64)
@example("claude\n")
@example("../x")
@example("%2e%2e")
@example("a\0")
def test_a_clients_name_is_what_may_stand_after_private(name: str) -> None:
    def accepted(check: object, value: str) -> bool:
        try:
            return check(value) == value  # type: ignore[operator]  # either of the two checks
        except InvalidArgument:
            return False

    assert accepted(check_name, name) == accepted(check_space, f"private/{name}")


def test_a_box_of_any_name_can_grant() -> None:
    one = talk()
    one.box.check(one.client.confirm(one.element()))
    got = one.client.finish(*one.box.grant(Granted(GRANTED.token, GRANTED.box_id, "😀" * 10_000)))
    assert got.box_name == "😀" * 256


def test_neither_code_nor_token_shows_in_a_repr() -> None:
    one = talk()
    one.run()
    said = repr((one, one.client, one.box, vars(one.client)["_keys"], vars(one.box)["_keys"], GRANTED))
    assert CODE not in said
    assert GRANTED.token not in said
    assert vars(one.client)["_keys"].seal.hex() not in said
    assert repr(vars(one.client)["_keys"].seal) not in said


def test_a_client_loads_neither_database_nor_network_nor_model_for_it() -> None:
    code = "import sys, edge.lan.handshake, edge.lan.tls; print(*{'sqlite3', 'grpc', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@given(st.text(alphabet=ALPHABET, min_size=8, max_size=8), st.text(alphabet=ALPHABET, min_size=8, max_size=8))
@settings(max_examples=20)
def test_two_codes_never_agree(code: str, other: str) -> None:
    assume(code != other)
    one = talk(code, typed=other)
    mac = one.client.confirm(one.element())
    with pytest.raises(PermissionDenied):
        one.box.check(mac)
