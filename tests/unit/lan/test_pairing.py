"""Which code is good, and for how long, how often and for whom."""

from __future__ import annotations

import hashlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from edge.errors import EdgeError, Exhausted, FailedPrecondition, InvalidArgument, PermissionDenied
from edge.lan.grants import client_grants
from edge.lan.handshake import ALPHABET, ClientPairing, Granted, read_code
from edge.lan.pairing import Attempt, Codes
from edge.lan.tokens import Tokens

CERTIFICATE = hashlib.sha256(b"the box's certificate").digest()
TOKEN = "edge_" + "t" * 43


class Clock:
    """Stands still until a test moves it; the wall clock by itself."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.wall = 0

    def now(self) -> int:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds


class Box:
    """Issues tokens and remembers for whom."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.codes = Codes(self.clock)
        self.issued: list[tuple[str, bool]] = []

    def issue(self, name: str, again: bool) -> Granted:
        self.issued.append((name, again))
        return Granted(TOKEN, "0123456789abcdef", "box")

    def attempt(self, address: str = "192.0.2.7") -> Attempt:
        return Attempt(self.codes, CERTIFICATE, address, self.issue)

    def pair(self, code: str, name: str = "claude", address: str = "192.0.2.7") -> Granted:
        client, attempt = ClientPairing(code, name, CERTIFICATE), self.attempt(address)
        mac = client.confirm(attempt.start(name, client.start()))
        return client.finish(*attempt.confirm(mac))

    def wrong(self, code: str) -> str:
        first = code[0]
        return ("0" if first != "0" else "1") + code[1:]


@pytest.fixture
def box() -> Box:
    return Box()


def test_a_code_is_eight_symbols_that_cannot_be_mistaken(box: Box) -> None:
    code = box.codes.show()
    assert len(code) == 9 and code[4] == "-"
    assert set(read_code(code)) <= set(ALPHABET)
    assert not set("ILOU") & set(ALPHABET)
    assert len({box.codes.show() for _ in range(100)}) == 100


def test_whoever_has_the_code_gets_a_token_in_the_name_it_gave(box: Box) -> None:
    assert box.pair(box.codes.show()).token == TOKEN
    assert box.issued == [("claude", False)]


def test_a_code_is_good_once(box: Box) -> None:
    code = box.codes.show()
    box.pair(code)
    with pytest.raises(FailedPrecondition, match="edge pair --show"):
        box.pair(code, "other")
    assert len(box.issued) == 1
    assert box.codes.left() is None


def test_without_a_code_nothing_begins(box: Box) -> None:
    with pytest.raises(FailedPrecondition) as caught:
        box.pair("00000000")
    assert caught.value.reason == "NO_PAIRING_OPEN"


def test_a_wrong_code_costs_an_attempt_and_five_end_the_code(box: Box) -> None:
    code = box.codes.show()
    for used in range(1, 6):
        with pytest.raises(PermissionDenied):
            box.pair(box.wrong(code), address=f"192.0.2.{used}")
        left = box.codes.left()
        assert (left.attempts if left else 0) == 5 - used
    with pytest.raises(FailedPrecondition):
        box.pair(code)
    assert box.issued == []


def test_attempts_that_never_answer_count_as_well(box: Box) -> None:
    code = box.codes.show()
    for number in range(5):
        box.attempt(f"192.0.2.{number}").start("claude", ClientPairing(code, "claude", CERTIFICATE).start())
    with pytest.raises(FailedPrecondition):
        box.pair(code, address="192.0.2.99")


def test_attempts_side_by_side_count_each(box: Box) -> None:
    code = box.codes.show()
    ready = threading.Barrier(12)

    def begin(number: int) -> bool:
        ready.wait()
        try:
            box.codes.begin(f"192.0.2.{number}")
        except EdgeError:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(begin, range(12))) == 5
    with pytest.raises(FailedPrecondition):
        box.pair(code, address="198.51.100.1")


def test_of_two_right_answers_side_by_side_one_gets_the_token(box: Box) -> None:
    code = box.codes.show()
    pairs = [(ClientPairing(code, name, CERTIFICATE), box.attempt(), name) for name in ("first", "second")]
    macs = [client.confirm(attempt.start(name, client.start())) for client, attempt, name in pairs]
    pairs[0][1].confirm(macs[0])
    with pytest.raises(PermissionDenied) as caught:
        pairs[1][1].confirm(macs[1])
    assert caught.value.reason == "CODE_ENDED"
    assert box.issued == [("first", False)]


def test_a_code_lives_ten_minutes(box: Box) -> None:
    code = box.codes.show()
    box.clock.seconds += 599.9
    assert box.codes.left() is not None
    box.clock.seconds += 0.1
    assert box.codes.left() is None
    with pytest.raises(FailedPrecondition):
        box.pair(code)


def test_setting_the_wall_clock_changes_nothing(box: Box) -> None:
    code = box.codes.show()
    box.clock.wall += 10**15
    box.pair(code)
    code = box.codes.show()
    box.clock.wall -= 10**15
    box.pair(code)


@pytest.mark.parametrize("how", ["time", "a new code", "the owner"])
def test_an_attempt_that_began_in_time_fails_when_its_code_has_ended_meanwhile(box: Box, how: str) -> None:
    client, attempt = ClientPairing(box.codes.show(), "claude", CERTIFICATE), box.attempt()
    # The code is in the client; as the box showed it does not matter any more.
    element = attempt.start("claude", client.start())
    mac = client.confirm(element)
    if how == "time":
        box.clock.seconds += 600
    elif how == "a new code":
        box.codes.show()
    else:
        box.codes.end()
    with pytest.raises(PermissionDenied) as caught:
        attempt.confirm(mac)
    assert caught.value.reason == "CODE_ENDED"
    assert box.issued == []


def test_when_the_token_cannot_be_made_the_code_stays_good(box: Box) -> None:
    def taken(name: str, again: bool) -> Granted:
        raise FailedPrecondition("name: in use", field="name", reason="NAME_TAKEN")

    code = box.codes.show()
    client, attempt = ClientPairing(code, "claude", CERTIFICATE), Attempt(box.codes, CERTIFICATE, "192.0.2.7", taken)
    mac = client.confirm(attempt.start("claude", client.start()))
    with pytest.raises(FailedPrecondition):
        attempt.confirm(mac)
    box.pair(code, "claude-2")
    assert box.issued == [("claude-2", False)]


def test_a_name_is_kept_for_its_client_until_the_owner_lets_it_pair_again(box: Box, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "box.sqlite", box.clock)

    def issue(name: str, again: bool) -> Granted:
        return Granted(tokens.create(name, client_grants(name), replace=again)[1], "0123456789abcdef", "box")

    box.issue = issue  # type: ignore[method-assign]  # the real tokens, for once
    first = box.pair(box.codes.show()).token
    code = box.codes.show()
    with pytest.raises(FailedPrecondition) as caught:
        box.pair(code, address="192.0.2.8")
    assert caught.value.reason == "NAME_TAKEN"
    other = box.pair(code, "claude-2", "192.0.2.8").token
    second = box.pair(box.codes.show(again="claude"), address="192.0.2.9").token
    names = [caller and caller.name for caller in map(tokens.authenticate, (first, other, second))]
    assert names == [None, "claude-2", "claude"]
    tokens.close()


def test_only_a_code_for_a_client_to_pair_again_replaces_its_token(box: Box) -> None:
    box.pair(box.codes.show(again="claude"), "claude")
    box.pair(box.codes.show(again="claude"), "other")
    assert box.issued == [("claude", True), ("other", False)]
    with pytest.raises(InvalidArgument):
        box.codes.show(again="../x")


@pytest.mark.parametrize("name", ["", "../x", "%2e%2e", "a\0", "a" * 300, "private/x", "Claude", "-", "书房", "a\n"])
def test_a_bad_name_is_refused_and_costs_no_attempt(box: Box, name: str) -> None:
    box.codes.show()
    with pytest.raises(InvalidArgument) as caught:
        box.attempt().start(name, bytes(33))
    assert caught.value.field == "name"
    assert box.codes.left() is not None and box.codes.left().attempts == 5  # type: ignore[union-attr]  # just checked


@pytest.mark.parametrize("size", [0, 32, 34, 1_000_000])
def test_an_element_of_another_length_is_refused_and_costs_no_attempt(box: Box, size: int) -> None:
    box.codes.show()
    with pytest.raises(InvalidArgument):
        box.attempt().start("claude", bytes(size))
    left = box.codes.left()
    assert left is not None and left.attempts == 5


def test_an_element_of_small_order_costs_an_attempt(box: Box) -> None:
    box.codes.show()
    with pytest.raises(PermissionDenied):
        box.attempt().start("claude", b"A" + bytes(32))
    left = box.codes.left()
    assert left is not None and left.attempts == 4


def test_one_address_has_three_attempts_a_minute(box: Box) -> None:
    code = box.codes.show()
    for _ in range(3):
        with pytest.raises(PermissionDenied):
            box.pair(box.wrong(code))
        box.clock.seconds += 1
    with pytest.raises(Exhausted) as caught:
        box.pair(code)
    assert caught.value.retry_after == pytest.approx(57)
    box.pair(code, address="192.0.2.8")
    box.clock.seconds += 57
    box.pair(box.codes.show())


def test_all_addresses_together_have_ten_attempts_a_minute(box: Box) -> None:
    for number in range(10):
        if number % 5 == 0:
            code = box.codes.show()
        box.codes.begin(f"192.0.2.{number}")
    code = box.codes.show()
    with pytest.raises(Exhausted):
        box.pair(code, address="198.51.100.1")
    box.clock.seconds += 60
    box.pair(code, address="198.51.100.1")


@pytest.mark.parametrize(
    "addresses",
    [
        ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::3", "2001:db8::4"],
        ["192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7"],
        ["fe80::1%eth0", "fe80::1%wlan0", "fe80::2", "fe80::3"],
        ["unknown"] * 4,
    ],
)
def test_addresses_that_one_host_may_have_count_as_one(box: Box, addresses: list[str]) -> None:
    box.codes.show()
    for address in addresses[:3]:
        box.codes.begin(address)
    with pytest.raises(Exhausted):
        box.codes.begin(addresses[3])


def test_messages_out_of_their_order_are_refused(box: Box) -> None:
    code = box.codes.show()
    with pytest.raises(FailedPrecondition):
        box.attempt().confirm(bytes(32))
    client, attempt = ClientPairing(code, "claude", CERTIFICATE), box.attempt()
    element = client.start()
    mac = client.confirm(attempt.start("claude", element))
    with pytest.raises(FailedPrecondition):
        attempt.start("claude", element)
    attempt.confirm(mac)
    with pytest.raises(FailedPrecondition):
        attempt.confirm(mac)
    assert len(box.issued) == 1


def test_neither_code_nor_token_is_logged_or_shown(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code = box.codes.show()
    attempt = box.attempt()
    attempt.start("claude", ClientPairing(code, "claude", CERTIFICATE).start())
    shown = repr(vars(attempt)) + repr(vars(box.codes))
    with pytest.raises(PermissionDenied) as caught:
        box.pair(box.wrong(code))
    shown += caught.value.message + repr(box.pair(code)) + caplog.text
    assert "claude paired" in caplog.text and "wrong code" in caplog.text
    for secret in (code, read_code(code), box.wrong(code), TOKEN):
        assert secret not in shown
