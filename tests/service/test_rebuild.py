"""Everything but config.toml, identity/, box.sqlite and log/ can be deleted or damaged: the same recalls come back."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Box, BoxFactory, _factory

from edge.client import Client
from edge.v1.appliance_pb2 import Status

PATIENCE = 120.0
QUERIES = ("钥匙放在哪里", "周末的旅行计划", "meeting with Anna", "花盆", "谁喜欢喝茶", "2号柜子里有什么")
TOPICS = (
    "我把备用钥匙放在阳台第{n}个花盆下面，别告诉别人。",
    "周末去第{n}个公园旅行，带上帐篷和茶。",
    "The meeting with Anna about plan {n} moved to Tuesday.",
    "{n}号柜子里有三本书和一个旧水壶。",
    "妈妈喜欢喝茶，爸爸喜欢第{n}种咖啡。",
)
SECRET = {"source": "test", "session": "secret", "seq": 1, "text": "这一句关于钥匙的话要忘掉。"}
# Id and score of each hit, per query.
Answers = list[list[tuple[str, float]]]


def turns() -> Iterator[dict[str, object]]:
    for n in range(60):
        text = TOPICS[n % len(TOPICS)].format(n=n)
        if n % 20 == 7:
            text = "\n\n".join(f"{text} 第{line}段，" + "说了很多关于花园和天气的话。" * 15 for line in range(3))
        tags = ["home"] if n % 3 == 0 else []
        yield {"source": "test", "session": f"s{n // 20}", "seq": n % 20, "text": text, "tags": tags}
    # Two that take the place of earlier ones, and one that is forgotten below.
    for n in (3, 4):
        yield {"source": "test", "session": "s0", "seq": n, "text": f"改主意了：{n}号柜子里现在是茶叶。"}
    yield SECRET


def asked(client: Client) -> Answers:
    answers = []
    for query in QUERIES:
        for which in ({}, {"tags": ["home"]}):
            hits = client.recall(query, top_k=10, **which).hits
            answers.append([(hit.memory.id, hit.score) for hit in hits])
    return answers


def settled(client: Client) -> Status:
    """Waits until every memory has its vector."""
    end = time.monotonic() + PATIENCE
    while (status := client.status()) and any(space.pending for space in status.spaces):
        assert time.monotonic() < end, "still pending"
        time.sleep(0.05)
    return status


def assert_same(now: Answers, before: Answers) -> None:
    for mine, theirs in zip(now, before, strict=True):
        assert [id for id, _ in mine] == [id for id, _ in theirs]
        assert [score for _, score in mine] == pytest.approx([score for _, score in theirs], abs=1e-3)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, model_directory: Path) -> tuple[Path, Answers]:
    """The data directory of a stopped box, and what it answered."""
    data = tmp_path_factory.mktemp("original") / "data"
    data.mkdir()
    # The default counts how often something was recalled, so that asking changes the next answer a little.
    (data / "config.toml").write_text('[recall]\npreset = "timeless"\n', "utf-8")
    boxes = _factory(model_directory)
    box = next(boxes)(data=data)
    with Client(box.address) as client:
        list(client.ingest(turns(), wait="searchable"))
        assert client.forget(sessions=["secret"]).turns == 1
        answers = asked(client)
    assert all(len(answer) == 10 for answer in answers)
    assert box.stop() == 0
    boxes.close()
    return data, answers


@pytest.fixture
def data(original: tuple[Path, Answers]) -> Iterator[Path]:
    """A copy of it, with a short name (the path of a unix socket has 107 bytes at most)."""
    with tempfile.TemporaryDirectory(prefix="edge-") as directory:
        copy = Path(directory) / "data"
        shutil.copytree(original[0], copy)
        yield copy


@pytest.fixture
def answers(original: tuple[Path, Answers]) -> Answers:
    return original[1]


def space(data: Path) -> Path:
    return data / "spaces/public"


def database(data: Path) -> Path:
    return space(data) / "memory.sqlite"


def check(box: Box, before: Answers) -> Status:
    with Client(box.address) as client:
        status = settled(client)
        assert_same(asked(client), before)
        return status


def edge(*arguments: str, status: int = 0) -> str:
    """What a command prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_ADDRESS")}
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", *arguments], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_with_everything_deleted_but_the_log_and_the_keys_the_same_recalls_come_back(
    start_box: BoxFactory, data: Path, answers: Answers
) -> None:
    for path in sorted(data.rglob("*"), reverse=True):
        kept = path.name in ("config.toml", "box.sqlite") or {"identity", "log"} & {path.name, path.parent.name}
        if not kept and path.is_file():
            path.unlink()
    shutil.rmtree(space(data) / "index", ignore_errors=True)
    assert {path.name for path in space(data).iterdir()} == {"log"}

    box = start_box(data=data)

    check(box, answers)
    with Client(box.address) as client:
        (again,) = client.ingest([SECRET])
        assert again.state.name == "FILTERED"
        (known,) = client.ingest([next(turns())])
        assert known.state.name == "DUPLICATE"
    assert "clean" in edge("verify", "--data", str(data))


@pytest.mark.parametrize("scope", ["index", "log"])
def test_a_running_box_that_makes_its_views_anew_gives_the_same_recalls(
    start_box: BoxFactory, data: Path, answers: Answers, scope: str
) -> None:
    box = start_box(data=data)
    with Client(box.address) as client:
        done = client.rebuild(scope)
        assert done.memories == sum(space.memories for space in client.status().spaces)
    check(box, answers)
    assert "clean" in edge("verify", "--data", str(data))


@pytest.mark.parametrize("scope", ["--index", "--from-log"])
def test_the_command_makes_the_views_of_a_stopped_box_anew(
    start_box: BoxFactory, data: Path, answers: Answers, scope: str
) -> None:
    done = json.loads(edge("rebuild", scope, "--json", "--data", str(data)))

    box = start_box(data=data)
    status = check(box, answers)
    assert status.spaces[0].memories == done["memories"] > 60


def xored(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2
    raw[:64] = bytes(byte ^ 0xFF for byte in raw[:64])
    raw[middle : middle + 4096] = bytes(byte ^ 0xFF for byte in raw[middle : middle + 4096])
    path.write_bytes(raw)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def a_text_file(path: Path) -> None:
    path.write_text("这不是数据库。\n" * 100)


def cut_in_half(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def deleted(path: Path) -> None:
    path.unlink()


def another_programmes(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE memories (foo TEXT)")
    connection.commit()
    connection.close()


DAMAGES = [xored, emptied, a_text_file, cut_in_half, deleted, another_programmes]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_database_that_is_damaged_is_made_anew_from_the_log_and_the_old_index_is_not_mixed_with_it(
    start_box: BoxFactory, data: Path, answers: Answers, damage: Callable[[Path], None]
) -> None:
    damage(database(data))

    box = start_box(data=data)

    check(box, answers)
    with Client(box.address) as client:
        counts = client.status().spaces[0]
        assert counts.index_size == counts.vectors == counts.memories
    assert box.stop() == 0
    assert "clean" in edge("verify", "--data", str(data))


def test_one_flipped_page_in_the_middle_of_the_database_is_found_by_verify_and_mended_by_rebuild(
    start_box: BoxFactory, data: Path, answers: Answers
) -> None:
    raw = bytearray(database(data).read_bytes())
    for page in range(3, len(raw) // 4096 - 2, 3):
        raw[page * 4096 + 64 : page * 4096 + 128] = bytes(byte ^ 0xFF for byte in raw[page * 4096 + 64 :][:64])
    database(data).write_bytes(raw)

    assert "clean" not in edge("verify", "--data", str(data), status=1)
    edge("rebuild", "--from-log", "--data", str(data))

    check(start_box(data=data), answers)
    assert "clean" in edge("verify", "--data", str(data))


def test_without_its_index_folder_a_box_answers_the_same(start_box: BoxFactory, data: Path, answers: Answers) -> None:
    shutil.rmtree(space(data) / "index", ignore_errors=True)

    check(start_box(data=data), answers)


def test_a_damaged_line_of_the_log_costs_that_turn_alone_and_is_told(
    start_box: BoxFactory, data: Path, answers: Answers
) -> None:
    (segment,) = (space(data) / "log").glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    lost = json.loads(lines[30])
    lines[30] = lines[30].replace(b'"text":"', b'"text":"X', 1)
    segment.write_bytes(b"".join(lines))
    for view in space(data).glob("memory.sqlite*"):
        view.unlink()

    box = start_box(data=data)

    with Client(box.address) as client:
        status = settled(client)
        assert status.spaces[0].damaged_lines == 1
        assert any("damaged" in warning and "edge verify" in warning for warning in status.warnings)
        gone = {piece[0] for piece in lost["pieces"]}
        for now, before in zip(asked(client), answers, strict=True):
            remaining = [id for id, _ in before if id not in gone]
            assert [id for id, _ in now][: len(remaining)] == remaining
        # The source that still has it may say it again.
        again = {name: lost[name] for name in ("source", "session", "seq", "role", "text", "tags")}
        (result,) = client.ingest([again], wait="searchable")
        assert result.state.name == "SEARCHABLE"
    verdict = json.loads(edge("verify", "--json", "--data", str(data), status=1))
    assert verdict["problems"] == [f"public: line 31 of {segment.name} does not match its checksum"]
