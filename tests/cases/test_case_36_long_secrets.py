"""Case 36: a 30-line PEM key, a JWT, a secret that straddles a chunk border (BerriAI/litellm#29021,
rohitg00/agentmemory#448).

Redaction reads the whole turn, before it is cut, so a border cannot part a secret.
"""

from __future__ import annotations

import base64
import random
import textwrap
from typing import TYPE_CHECKING

import pytest
from grpc_calls import Wire, turn
from hiding import SPACE, left, recalled, tell

from edge.admission.chunk import LIMIT, chunk
from edge.admission.redact import Redactor
from edge.v1 import memory_pb2

if TYPE_CHECKING:
    from conftest import Box

_BODY = base64.b64encode(
    bytes.fromhex("308204bd020100300d06092a864886f70d0101010500") + random.Random(36).randbytes(1350)
).decode()
PEM = "\n".join(("-----BEGIN PRIVATE KEY-----", *textwrap.wrap(_BODY, 64), "-----END PRIVATE KEY-----"))
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {PEM: "[私钥]", JWT: "[密钥]", "4111 1111 1111 1111": "[银行卡]", "密码是Abc@12345": "密码是[密码]"}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_piece_of_a_turn_holds_a_part_of_the_secret(secret: str) -> None:
    words = "我把备用钥匙放在阳台第三个花盆下面了，记得浇水。" * 30
    lines = [line for line in secret.split("\n") if len(line) > 8]
    for before in range(LIMIT - len(secret) % LIMIT - 20, LIMIT + 20, 7):
        redacted = Redactor().redact(f"{words[:before]}\n{secret}\n{words}").text
        pieces = [redacted[start:end] for start, end in chunk(redacted)]
        assert sum(piece.count(SECRETS[secret]) for piece in pieces) == 1
        assert not any(
            line[at : at + 8] in piece
            for piece in pieces
            for line in lines
            for at in range(0, len(line) - 8, 8)
            if line[at : at + 8] not in SECRETS[secret]
        )
    assert "MIIE" not in Redactor().redact(PEM).text


LINES = PEM.split("\n")
# Any eight characters of it in a row, from each line.
PARTS = [line[at : at + 8] for line in LINES[1:-1] for at in range(0, len(line) - 7, 8)]


def test_no_part_of_them_is_anywhere_in_what_the_box_keeps_says_or_finds(box: Box) -> None:
    words = "我把备用钥匙放在阳台第三个花盆下面了，记得浇水。" * 30
    with Wire(box.address) as wire:
        for secret in SECRETS:
            tell(wire, f"{words[: LIMIT - 5]}\n{secret}\n{words}")
        tell(wire, PEM)
        said = recalled(wire, "MIIE", "私钥", JWT[:36], PEM, "花盆")
        assert "[私钥]" in said
        assert not [part for part in ("MIIE", *PARTS, JWT[:16], JWT[-16:], "Abc@12345") if part in said]
    assert box.stop() == 0
    assert left(box, "MIIE", *PARTS, JWT[:16], JWT[-16:], "Abc@12345", "4111 1111") == []


def test_a_key_that_comes_line_by_line_is_hidden_also_over_a_restart_and_when_lines_come_again(box: Box) -> None:
    def say(wire: Wire, first: int, last: int, *, together: bool, session: str) -> list[memory_pb2.IngestResult]:
        said = [turn(LINES[seq], seq=seq, session=session, space=SPACE) for seq in range(first, last)]
        portions = [said] if together else [[one] for one in said]
        return [result for portion in portions for result in wire.ingest(*portion)[0]]

    end = len(LINES)
    assert end >= 30
    with Wire(box.address) as wire:
        say(wire, 0, end, together=True, session="together")
        say(wire, 0, end, together=False, session="one by one")
        say(wire, 0, 12, together=True, session="restarted")
    box.kill()
    box.start()
    with Wire(box.address) as wire:
        say(wire, 12, end, together=True, session="restarted")
        # What was not acknowledged is sent again, from the middle on.
        for session in ("together", "one by one", "restarted"):
            again = say(wire, 10, 20, together=True, session=session)
            assert {result.state for result in again} == {memory_pb2.INGEST_STATE_DUPLICATE}
        wire.say("MIIE is how many keys begin", space=SPACE)
        assert not [part for part in PARTS if part in recalled(wire, "MIIE", LINES[3], "私钥")]
    assert box.stop() == 0
    assert left(box, *PARTS) == []
