"""`edge archive` and what it does on the wire: away, shown where one asks for it, back, and undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Box, BoxFactory

from edge.appliance import core
from edge.cli import main
from edge.client import Client
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.errors import InvalidArgument, NotFound
from edge.types import DAY, Turn
from edge.upkeep.erased import prove
from edge.upkeep.fading import Fading

Edge = Callable[..., tuple[int, str, str]]
TEXTS = ("猫叫豆包", "备用钥匙在花盆下面", "雨伞在门后")
UNKNOWN = "0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c"


@pytest.fixture
def client(box: Box) -> Iterator[Client]:
    with Client(box.address) as connected:
        yield connected


@pytest.fixture
def ids(client: Client) -> list[str]:
    return [memory.id for text in TEXTS for memory in client.remember(text)]


@pytest.fixture
def edge(box: Box, capsys: pytest.CaptureFixture[str]) -> Edge:
    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*arguments, "--address", box.address])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def at_hand(client: Client) -> set[str]:
    return {memory.id for memory in client.list()}


def test_what_is_archived_by_hand_is_found_where_one_asks_for_it_and_comes_back(client: Client, ids: list[str]) -> None:
    cat, key, umbrella = ids
    moved = client.archive([cat, client.get(key).uri, cat])
    assert {memory.id for memory in moved.memories} == {cat, key}
    assert all(memory.archived for memory in moved.memories) and len(moved.event_ids) == 1
    assert at_hand(client) == {umbrella} and {memory.id for memory in client.list(include_archived=True)} == set(ids)
    assert cat not in [hit.memory.id for hit in client.recall("猫叫什么", depth="shallow").hits]
    assert cat in [hit.memory.id for hit in client.recall("猫叫什么", depth="shallow", include_archived=True).hits]

    assert client.archive(cat).passed_over == [cat]
    back = client.archive([cat, umbrella, UNKNOWN], restore=True)
    assert [memory.id for memory in back.memories] == [cat] and back.passed_over == [umbrella, UNKNOWN]
    assert at_hand(client) == {cat, umbrella}
    client.undo(back.event_ids[0])
    assert at_hand(client) == {umbrella}
    client.undo(moved.event_ids[0])
    assert at_hand(client) == {cat, umbrella, key}


def test_a_thousand_of_which_none_is_here_hides_nothing_of_what_was_done_with_another(
    client: Client, ids: list[str]
) -> None:
    unknown = [f"0197c5f0-2b7a-7c3e-9d52-{number:012x}" for number in range(1500)]
    moved = client.archive([ids[0], *unknown])
    assert [memory.id for memory in moved.memories] == ids[:1] and moved.passed_over == unknown
    client.undo(moved.event_ids[0])
    assert at_hand(client) == set(ids)
    with pytest.raises(NotFound):
        client.archive(unknown)


def test_views_made_anew_from_the_log_have_the_same_in_the_archive(start_box: BoxFactory, tmp_path: Path) -> None:
    def seen(client: Client) -> tuple[object, ...]:
        states = {memory.id: (memory.archived, memory.state) for memory in client.list(include_archived=True)}
        return states, [(deed.id, deed.why, deed.description) for deed in client.deeds()]

    data = tmp_path / "d"
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", data=data)
    with Client(box.address) as client:
        ids = [memory.id for text in TEXTS for memory in client.remember(text)]
        client.archive(ids[:2])
        back = client.archive(ids[:1], restore=True)
        client.archive(ids[1:])
        before = seen(client)
    box.stop()
    assert main(["rebuild", "--from-log", "--data", str(data)]) == 0
    assert main(["verify", "--data", str(data)]) == 0
    box.start()
    with Client(box.address) as client:
        assert seen(client) == before and at_hand(client) == set(ids[:1])
        client.undo(back.event_ids[0])
        assert at_hand(client) == set()


def test_the_deed_is_the_caller_s_last_and_is_undone_first(client: Client, ids: list[str]) -> None:
    client.archive(ids[0])
    (deed,) = client.deeds(limit=1)
    assert (deed.why, deed.by, deed.description) == ("archived", "owner", "archived 1 memory")
    assert client.undo().undone.id == deed.id and at_hand(client) == set(ids)


def test_what_cannot_be_meant_is_refused(client: Client, ids: list[str]) -> None:
    with pytest.raises(NotFound) as unknown:
        client.archive([UNKNOWN])
    assert unknown.value.field == "ids"
    for wrong in ([""], ["edge://public/note"], ["x" * 65]):
        with pytest.raises(InvalidArgument) as refused:
            client.archive(wrong)
        assert refused.value.field == "ids[0]"
    assert client.archive([]).memories == [] and at_hand(client) == set(ids)


def test_the_command_says_what_it_did_and_how_to_take_it_back(edge: Edge, client: Client, ids: list[str]) -> None:
    cat, key, _ = ids
    status, out, err = edge("archive", cat, key)
    assert (status, err) == (0, "") and out.startswith("archived 2\nto take it back: edge undo ")
    event = out.split()[-1]
    assert "豆包" not in edge("ls")[1] and "(archived)  猫叫豆包" in edge("ls", "--archived")[1]
    assert "豆包" not in edge("recall", "猫叫什么", "--shallow")[1]
    assert "(archived)" in edge("recall", "猫叫什么", "--shallow", "--archived")[1]
    status, out, err = edge("archive", cat)
    assert (status, out) == (0, "archived 0\n") and "archived already" in err and cat in err
    status, out, _ = edge("archive", "--restore", cat, "--json")
    told = json.loads(out)
    assert status == 0 and [memory["id"] for memory in told["memories"]] == [cat] and len(told["event_ids"]) == 1
    assert edge("archive", UNKNOWN)[0] == 5 and edge("archive")[0] == 2
    status, out, _ = edge("undo", event)
    assert status == 0 and out.startswith("undone: archived 2 memories")
    assert at_hand(client) == set(ids)


def cooled(data: Path, *texts: str) -> list[str]:
    """The ids of what a stopped box has moved to its cold file."""
    with core(data, Config(), HashEmbedder()) as box:
        space = box.spaces.open("public")
        turns = [Turn("t", "s", at, "user", 1_767_225_600_000_000, text) for at, text in enumerate(texts)]
        stored = space.ingest.store(turns).result(30)
        stored.searchable.result(30)
        Fading(box.spaces, Config().decay, box.clock).sweep(space, box.clock.now() + 400 * DAY, cold=True)
        return [result.memory_ids[0] for result in stored.results]


def test_what_is_in_the_cold_file_is_said_to_be_there(start_box: BoxFactory, tmp_path: Path) -> None:
    (id,) = cooled(tmp_path / "d", "去年的合同在书房的抽屉")
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", data=tmp_path / "d")
    with Client(box.address) as client:
        with pytest.raises(NotFound, match="cold file; edge undo") as cold:
            client.archive(id, restore=True)
        assert cold.value.reason == "COLD"


def test_a_forget_beside_a_damaged_cold_file_gives_its_receipt_and_says_what_is_left(
    start_box: BoxFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, receipt = tmp_path / "d", tmp_path / "receipt.json"
    (id,) = cooled(data, "去年的合同在书房的抽屉")
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", data=data)
    (cold,) = (data / "spaces" / "public" / "log" / "cold").glob("*.zst")
    whole = cold.read_bytes()
    cold.write_bytes(whole[:-1])
    assert main(["forget", id, "--receipt", str(receipt), "--address", box.address]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("forgot 1 memory") and str(cold) in told.err and "from a backup" in told.err
    assert json.loads(receipt.read_text())["unfinished"].startswith("the memories are forgotten, but")
    assert cold.read_bytes() == whole[:-1]
    (problem,) = prove(data, receipt).problems
    assert "proves nothing" in problem and str(cold) in problem

    with Client(box.address) as client:
        # Nothing of it is in the way of another forget, but that cannot be proved either.
        (note,) = client.remember("钥匙在花盆下")
        gone = client.forget([note.id])
        assert gone.turns == 1 and str(cold) in gone.unfinished
        cold.write_bytes(whole)
        (note,) = client.remember("雨伞在门后")
        assert client.forget([note.id]).unfinished == ""
    # The next forget has ended the ones before it, too.
    assert not cold.exists() and prove(data, receipt).problems == []
