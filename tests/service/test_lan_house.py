"""A house with a box: found, paired with, moved, impersonated. Real commands on three machines of one LAN."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import netns
import pytest
from house import LAN_HOST, Machine, Program, ended, goes_on, house

from edge.lan.txt import Txt, encode

WITHOUT = netns.missing()
pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT)

Machines = tuple[Machine, Machine, Machine]
# Where the answers of lan_host.py's `shout` lead.
SHOUTED = "10.7.0.200"


@pytest.fixture
def machines(model_directory: Path) -> Iterator[Machines]:
    with house(model_directory) as three:
        yield three


@pytest.fixture
def machines_without_ipv6(model_directory: Path) -> Iterator[Machines]:
    with house(model_directory, ipv6=False) as three:
        yield three


def pair(client: Machine, box: Machine, name: str = "desk") -> None:
    client.edge("pair", box.place, "--code", box.code(), "--name", name)


def shout(machine: Machine, name: str, id_: str, fingerprint: str) -> Program:
    """Answers mDNS in the place of a box, with its name and what it says of itself."""
    machine.ip("addr", "add", f"{SHOUTED}/24", "dev", "eth0")
    txt = encode(Txt(id=id_, version="0.1.0", api="v1", tls=True, fingerprint=fingerprint))
    shouting = machine.start(sys.executable, str(LAN_HOST), "shout", name, txt.hex())
    shouting.wait_for(lambda line: "shouting" in line)
    return shouting


def test_a_box_is_found_paired_with_used_and_lost_by_its_name_alone(machines: Machines) -> None:
    attic, desk, stranger = machines
    box = attic.serve(name="阁楼")
    watcher = desk.start(sys.executable, str(LAN_HOST), "browse")
    watcher.wait_for(lambda line: json.loads(line))

    [found] = desk.finds("阁楼")
    assert found["addresses"][0] == attic.place
    assert (found["tls"], found["paired"], found["problem"]) == (True, False, "")
    code = attic.code()
    assert "edge pair" in stranger.edge("recall", "钥匙", status=3)
    assert "edge pair" in stranger.edge("recall", "钥匙", "--address", attic.place, status=4)
    wrong = desk.edge("pair", attic.place, "--code", "0000-0000", "--name", "desk", status=4)
    assert "look at the code again" in wrong
    assert "edge pair" in desk.edge("recall", "钥匙", status=3)
    assert "as desk" in desk.edge("pair", "--code", code, "--name", "desk")

    desk.edge("remember", "备用钥匙在阳台第三个花盆下面。", "--space", "public")
    line = {"source": "test", "session": "s", "seq": 1, "role": "user", "text": "周三晚上去接她。", "space": "work"}
    assert "1 searchable" in desk.edge("ingest", "-", stdin=json.dumps(line))
    assert "花盆" in desk.edge("recall", "钥匙")
    assert {memory["space"] for memory in desk.json("ls")["memories"]} == {"public", "work"}
    heads, row, *_ = desk.edge("discover").splitlines()
    assert heads.split() == ["name", "address", "version", "paired"]
    assert row.split() == ["阁楼", attic.place, found["version"], "yes"]

    attic.owner("token", "revoke", "desk")
    assert "revoked" in desk.edge("recall", "钥匙", status=4)

    assert box.stop() == 0
    watcher.wait_for(lambda line: json.loads(line) == [])
    assert desk.finds() == []
    for secret in (code, "花盆", "周三"):
        assert secret not in box.log


def test_a_stream_follows_the_box_to_its_new_address_with_every_turn_once(machines_without_ipv6: Machines) -> None:
    attic, desk, _ = machines_without_ipv6
    box = attic.serve()
    pair(desk, attic)
    client = desk.stream()

    attic.move("10.7.0.77")
    goes_on(client, attic.address)

    # The power fails, and it comes back somewhere else.
    box.kill()
    attic.move("10.7.0.78")
    attic.serve()
    goes_on(client, attic.address)

    turns = ended(client)
    assert sorted(event["seq"] for event in attic.log("private/desk")) == list(range(turns))
    assert len(desk.json("ls", "--limit", str(turns + 1))["memories"]) == turns


def test_two_boxes_of_one_name_are_both_listed_and_both_used(machines: Machines) -> None:
    attic, desk, cellar = machines
    attic.serve(name="home")
    cellar.serve(name="home")
    ids = {box["addresses"][0]: box["id"] for box in desk.finds("home", "home (2)")}
    pair(desk, attic)
    desk.edge("pair", ids[cellar.place], "--code", cellar.code(), "--name", "desk")

    asked = desk.edge("ls", "--address", "home", status=2)
    assert all(id_ in asked for id_ in ids.values())
    for machine, text in ((attic, "望远镜在阁楼。"), (cellar, "自行车在地下室。")):
        desk.edge("remember", text, "--address", ids[machine.place])
    for machine, text in ((attic, "望远镜在阁楼。"), (cellar, "自行车在地下室。")):
        listed = desk.json("ls", "--address", ids[machine.place])["memories"]
        assert [memory["text"] for memory in listed] == [text]


def test_a_machine_with_the_boxs_name_id_and_old_address_is_refused_and_the_box_is_found(machines: Machines) -> None:
    attic, desk, liar = machines
    box = attic.serve(name="home")
    pair(desk, attic)
    desk.edge("remember", "备用钥匙在花盆下面。")
    box.stop()
    liar.ip("addr", "add", f"{attic.address}/24", "dev", "eth0")
    attic.move("10.7.0.77")
    impostor = liar.guest("impostor", str(liar.home / "identity"))
    fingerprint = impostor.hear("fingerprint")
    [id_] = {path.stem for path in desk.home.glob("config/edge-memory/boxes/*.json")}
    shout(liar, "home", id_, id_)

    said = desk.edge("recall", "钥匙", status=4)
    assert "not the box that is meant" in said
    assert fingerprint in said

    box = attic.serve(name="home")
    listed = desk.lists(lambda boxes: len(boxes) == 2)
    assert {box["addresses"][0] for box in listed} == {f"{SHOUTED}:7430", attic.place}
    assert "花盆" in desk.edge("recall", "钥匙")
    # Of those that say they are this box, the one that can show its certificate is asked.
    assert "as guest" in desk.edge("pair", "home", "--code", attic.code(), "--name", "guest")
    impostor.kill()
    assert '"called"' not in impostor.log


def test_a_machine_in_the_middle_of_a_pairing_gets_nothing_and_the_box_tells_of_it(machines: Machines) -> None:
    attic, desk, liar = machines
    box = attic.serve(name="home")
    middle = liar.guest("middle", str(liar.home / "identity"), attic.address)
    fingerprint = middle.hear("fingerprint")
    # Under the box's name, and with an id and a fingerprint that are true of the liar.
    shout(liar, "home", fingerprint[:16], fingerprint)
    desk.lists(lambda boxes: len(boxes) == 2)
    code = attic.code()

    said = desk.edge("pair", fingerprint[:16], "--code", code, "--name", "desk", status=4)
    assert "another machine answers in the box's place" in said
    box.wait_for(lambda line: f"a pairing from {liar.address} failed" in line)

    middle.tell("seen")
    seen = bytes.fromhex(middle.hear("seen"))
    assert b"PairingService" in seen
    for secret in (code, code.replace("-", ""), "edge_"):
        assert secret.encode() not in seen
    assert list(desk.home.glob("config/edge-memory/boxes/*.json")) == []
    assert "no client has a token yet" in attic.owner("token", "list")
    # It cost one of the code's attempts, and the code is still good for whoever reaches the box itself.
    assert "as desk" in desk.edge("pair", attic.place, "--code", code, "--name", "desk")
