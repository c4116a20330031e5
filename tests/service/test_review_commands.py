"""`edge candidates`, `edge undo` and `edge forget` against a box."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Box, BoxFactory
from test_review import GRACE, box_with

from edge.cli import main
from edge.client import Client

Edge = Callable[..., tuple[int, str, str]]


@pytest.fixture
def house(start_box: BoxFactory, tmp_path: Path) -> Iterator[tuple[Box, Client]]:
    with box_with(start_box, tmp_path / "d", "我家的猫叫豆包", "我喜欢茶\x1b[2J", "我喜欢咖啡") as (box, client, _):
        yield box, client


@pytest.fixture
def edge(house: tuple[Box, Client], capsys: pytest.CaptureFixture[str]) -> Edge:
    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*arguments, "--address", house[0].address])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def ids(out: str) -> list[str]:
    return [memory["id"] for memory in json.loads(out)["candidates"]]


def test_candidates_are_shown_confirmed_rejected_and_taken_back(edge: Edge) -> None:
    status, out, _ = edge("candidates", "list")
    assert status == 0 and len(out.splitlines()) == 3 and "豆包" in out and "\x1b" not in out
    coffee, tea, cat = ids(edge("candidates", "list", "--json")[1])
    assert edge("candidates", "list", "--limit", "1")[2].startswith("and more")

    status, out, _ = edge("candidates", "confirm", cat)
    assert status == 0 and out.startswith("confirmed 1\nto take it back: edge undo ")
    event = out.split()[-1]
    status, _, err = edge("candidates", "reject", cat)
    assert status == 1 and "it is confirmed" in err
    status, out, err = edge("candidates", "reject", cat, tea)
    assert status == 0 and out.startswith("rejected 1\n") and cat in err
    assert edge("candidates", "confirm", "nobody")[0] == 5
    assert edge("candidates", "confirm")[0] == 2 == edge("candidates", "confirm", cat, "--all")[0]

    status, out, _ = edge("undo", "--list")
    assert status == 0 and len(out.splitlines()) == 5
    assert "rejected 1 memory: 我喜欢茶" in out.splitlines()[0] and "\x1b" not in out
    listed = json.loads(edge("undo", "--list", "--json", "--limit", "2")[1])["deeds"]
    assert [deed["why"] for deed in listed] == ["rejected", "confirmed"] and listed[1]["id"] == event

    assert edge("undo", event)[1].startswith("undone: confirmed 1 memory: 我家的猫叫豆包\nto have it again: edge undo ")
    status, _, err = edge("undo", event)
    assert status == 1 and "undone already" in err
    status, out, _ = edge("undo", "--json")
    assert status == 0 and json.loads(out)["undone"]["why"] == "rejected"
    # Where nobody can be asked, all of them need a yes, however they are to be printed.
    for more in ((), ("--json",)):
        status, out, err = edge("candidates", "confirm", "--all", *more)
        assert (status, out) == (2, ""), err
        assert "confirm 3 candidates; say --yes" in err
    assert len(ids(edge("candidates", "list", "--json")[1])) == 3
    status, out, _ = edge("candidates", "confirm", "--all", "--yes", "--json")
    told = json.loads(out)
    assert {memory["id"] for memory in told["memories"]} == {coffee, tea, cat} and len(told["event_ids"]) == 1
    assert "nothing waits" in edge("candidates", "list")[2]
    status, out, _ = edge("candidates", "reject", "--all")
    assert (status, out) == (0, "rejected 0\n")


def test_what_was_remembered_is_undone_by_forgetting_it(edge: Edge, house: tuple[Box, Client], tmp_path: Path) -> None:
    (note,) = house[1].remember("钥匙在花盆下")
    status, out, _ = edge("undo", "--dry-run")
    assert (status, out) == (0, "would undo: handed in a turn from remember: 钥匙在花盆下\n")
    assert house[1].get(note.id)
    status, out, err = edge("undo")
    assert (status, out) == (2, "") and "handed in a turn from remember: 钥匙在花盆下" in err
    assert "for good" in err and "--yes" in err
    assert house[1].get(note.id)
    receipt = tmp_path / "receipt.json"
    status, out, _ = edge("undo", "--yes", "--receipt", str(receipt))
    assert status == 0 and "erased for good; receipt " in out
    assert json.loads(receipt.read_text())["memory_ids"] == [note.id]
    assert edge("get", note.id)[0] == 5
    assert edge("undo", note.id)[0] == 5


def test_a_selection_is_shown_first_and_needs_a_yes(edge: Edge, house: tuple[Box, Client], tmp_path: Path) -> None:
    client = house[1]
    for text in ("钥匙在花盆下", "钥匙有两把"):
        client.remember(text, tags=["keys"])
    client.remember("会议在周五", space="work", kind="plan")

    status, out, err = edge("forget", "--tag", "keys")
    assert status == 2 and out == "" and "花盆" in err and "2 memories of 2 turns" in err and "--yes" in err
    status, out, _ = edge("forget", "--tag", "keys", "--dry-run")
    assert status == 0 and out.startswith("would forget 2 memories")
    status, out, _ = edge("forget", "--tag", "keys", "--yes", "--receipt", str(tmp_path / "r.json"))
    assert status == 0 and out.startswith("forgot 2 memories")
    assert main(["verify", "--erased", str(tmp_path / "r.json"), "--data", str(house[0].data)]) == 0

    assert edge("forget", "edge://work/plan", "--yes")[1].startswith("forgot 1 memory")
    assert "narrows" in edge("forget", "edge://work", "--yes")[2]
    for wrong in (("x", "--tag", "y"), ("--query", "a", "--tag", "y"), (), ("edge://work", "edge://public")):
        status, _, err = edge("forget", *wrong, "--yes")
        assert status == 2 and err.startswith("edge: ids"), wrong
    assert len(list(client.list())) == 3


def test_a_query_forgets_what_bears_on_it_and_shows_it_first(edge: Edge, house: tuple[Box, Client]) -> None:
    client = house[1]
    client.remember("保险柜的密码是零七二四，写在日历背面。")
    status, _, err = edge("forget", "--query", "保险柜的密码是什么")
    assert status == 2 and "零七二四" in err and "--yes" in err
    assert "零七二四" in "".join(memory.text for memory in client.list())
    assert edge("forget", "--query", "保险柜的密码是什么", "--dry-run")[1].startswith("would forget 1 ")
    status, out, _ = edge("forget", "--query", "保险柜的密码是什么", "--yes", "--json")
    assert status == 0 and json.loads(out)["turns"] == 1
    assert len(list(client.list())) == 3
    status, out, err = edge("forget", "--query", "去年冬天在哪里滑雪", "--yes")
    assert (status, out) == (0, "") and "nothing bears" in err


def test_a_forget_with_grace_says_until_when(
    start_box: BoxFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with box_with(start_box, tmp_path / "d", "一", config=GRACE) as (box, client, (id,)):
        assert main(["forget", id, "--address", box.address]) == 0
        out = capsys.readouterr().out
        assert "hidden, and erased for good at " in out
        assert main(["undo", out.split()[-1], "--address", box.address]) == 0
        assert [memory.id for memory in client.list()] == [id]
        assert main(["forget", id, "--now", "--address", box.address]) == 0
        assert "receipt" in capsys.readouterr().out
        assert main(["forget", "--now", "--address", box.address]) == 0
        assert capsys.readouterr().out.startswith("nothing that you may forget was there")


def test_history_is_shown_with_the_memory(
    start_box: BoxFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from edge.appliance import core
    from edge.config import Config
    from edge.embedder.fake import HashEmbedder
    from edge.types import MemoryState

    with box_with(start_box, tmp_path / "d", "我住在上海", "我住在杭州") as (box, _, (old, new)):
        box.stop()
        with core(box.data, Config(), HashEmbedder()) as inner:
            revisions = inner.spaces.open("public").revisions
            revisions.revise(
                lambda queries: [
                    revisions.change(
                        queries.by_ids([old])[old], state=MemoryState.SUPERSEDED, replaced_by=new, valid_until=10**15
                    )
                ],
                "replaced",
                "rule",
            )
        box.start()
        assert main(["get", old, "--address", box.address]) == 0
        out = capsys.readouterr().out
        assert "superseded" in out and f"replaced by {new}" in out and "until 2001-09-09" in out
        assert main(["get", new, "--address", box.address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["replaces"] == [old]
        assert main(["ls", "--address", box.address]) == 0
        listed = capsys.readouterr().out
        assert new in listed and old not in listed
