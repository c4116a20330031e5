"""A receipt proves what it says: `edge verify --erased` finds every trace that is left, wherever somebody puts it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge.appliance import Core, core
from edge.cli import main
from edge.cli.forget import receipt_dict
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.errors import FailedPrecondition, InvalidArgument
from edge.ledger.segments import list_segments, read_lines
from edge.service.forgets import summed
from edge.types import Receipt, Turn
from edge.upkeep.erased import prove

AT = 1_767_225_600_000_000
SECRET = "我的保险柜密码写在qvxzubrimplok背面。"


def say(box: Core, *texts: str, space: str = "public", session: str = "s") -> list[str]:
    turns = [Turn("t", session, at, "user", AT + at, text) for at, text in enumerate(texts)]
    stored = box.spaces.open(space).ingest.store(turns).result(30)
    stored.searchable.result(30)
    return [result.memory_ids[0] for result in stored.results]


def written(receipt: Receipt, path: Path) -> Path:
    path.write_text(json.dumps(receipt_dict(summed([receipt], False))))
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as it was before the forget, one as it is after it, and its receipt."""
    folder = tmp_path_factory.mktemp("erased")
    data = folder / "after"
    with core(data, Config(), HashEmbedder(8)) as box:
        secret, *_ = say(box, SECRET, *(f"第{n}件事：{n * 7919} 号。" for n in range(30)))
        index = next(iter(box.spaces.open("public").indexes[model] for model in box.spaces.open("public").indexes))
        index.rebuild().result(30)
        assert index.save()
    shutil.copytree(data, folder / "before")
    with core(data, Config(), HashEmbedder(8)) as box:
        written(box.spaces.open("public").forget([secret], None, False), folder / "receipt.json")
        say(box, "后来的话", session="later")
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Iterator[Path]:
    yield shutil.copytree(original, tmp_path / "copy")


def test_a_forget_is_proved_and_its_receipt_holds_no_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receipt = folder / "receipt.json"
    assert "qvxzubrimplok" not in receipt.read_text() and "保险柜" not in receipt.read_text()
    told = json.loads(receipt.read_text())
    assert (told["turns"], told["memories"], told["vectors"], told["words"], len(told["marks"])) == (1, 1, 1, 1, 1)
    from hashlib import sha256

    turn = Turn("t", "s", 0, "user", AT, SECRET)
    assert (
        told["marks"] != [turn.fingerprint().hex()] and sha256(SECRET.encode()).hexdigest() not in receipt.read_text()
    )

    found = prove(folder / "after", receipt)
    assert found.problems == [] and found.counts["erased lines"] == 1
    assert main(["verify", "--erased", str(receipt), "--data", str(folder / "after")]) == 0
    assert "nothing of the receipt" in capsys.readouterr().out


def test_a_data_directory_of_before_the_forget_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, receipt = folder / "before", folder / "receipt.json"
    problems = "\n".join(prove(before, receipt).problems)
    assert "no log of this box knows" in problems and "still holds a turn" in problems and "1 memories" in problems
    assert main(["verify", "--erased", str(receipt), "--data", str(before), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"]


def put_the_line_back(after: Path, before: Path) -> None:
    (log,) = (after / "spaces/public/log").glob("*.jsonl")
    first = next((before / "spaces/public/log").glob("*.jsonl")).read_bytes().split(b"\n")[0]
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([first, *lines[1:]]))


def put_the_line_at_the_end(after: Path, before: Path) -> None:
    (log,) = (after / "spaces/public/log").glob("*.jsonl")
    with log.open("ab") as file:
        file.write(next((before / "spaces/public/log").glob("*.jsonl")).read_bytes().split(b"\n")[0] + b"\n")


def put_the_row_back(after: Path, before: Path) -> None:
    with closing(sqlite3.connect(after / "spaces/public/memory.sqlite", isolation_level=None)) as database:
        database.execute("ATTACH ? AS old", (str(before / "spaces/public/memory.sqlite"),))
        database.execute("INSERT INTO turns SELECT * FROM old.turns WHERE n = 1")
        database.execute("INSERT INTO memories SELECT * FROM old.memories WHERE turn_n = 1")


def put_words_back(after: Path, before: Path) -> None:
    with closing(sqlite3.connect(after / "spaces/public/memory.sqlite", isolation_level=None)) as database:
        database.execute("INSERT INTO words (rowid, terms) VALUES (1, 'qvxzubrimplok')")


def put_a_vector_back(after: Path, before: Path) -> None:
    with closing(sqlite3.connect(after / "spaces/public/memory.sqlite", isolation_level=None)) as database:
        database.execute("INSERT INTO vectors VALUES ('m', 1, x'0000')")


def put_the_snapshot_back(after: Path, before: Path) -> None:
    shutil.rmtree(after / "spaces/public/index", ignore_errors=True)
    shutil.copytree(before / "spaces/public/index", after / "spaces/public/index")


def put_half_a_snapshot_there(after: Path, before: Path) -> None:
    (after / "spaces/public/index/x-00000001.hnsw.tmp").write_bytes(b"vectors")


def keep_a_backup(after: Path, before: Path) -> None:
    shutil.copytree(before / "spaces/public/log", after / "backups/monday")


def keep_a_database(after: Path, before: Path) -> None:
    (after / "old").mkdir()
    shutil.copy(before / "spaces/public/memory.sqlite", after / "old/memory.sqlite")


def damage_a_line(after: Path, before: Path) -> None:
    (log,) = (after / "spaces/public/log").glob("*.jsonl")
    raw = bytearray(log.read_bytes())
    raw[30] ^= 1
    log.write_bytes(raw)


@pytest.mark.parametrize(
    ("meddle", "words"),
    [
        (put_the_line_back, "still holds a turn"),
        (put_the_line_at_the_end, "still holds a turn"),
        (put_the_row_back, "still has 1 turns and 1 memories"),
        (put_words_back, "1 words that are of no memory"),
        (put_a_vector_back, "1 vectors that are of no memory"),
        (put_the_snapshot_back, "vectors of 1 memories that are gone"),
        (put_half_a_snapshot_there, "left over"),
        (keep_a_backup, "backups/monday"),
        (keep_a_database, "old/memory.sqlite still has 1 turns"),
        (damage_a_line, "damaged"),
    ],
)
def test_whatever_is_left_somewhere_is_found(folder: Path, meddle: Callable[[Path, Path], None], words: str) -> None:
    meddle(folder / "after", folder / "before")
    problems = prove(folder / "after", folder / "receipt.json").problems
    assert [problem for problem in problems if words in problem], problems
    assert "qvxzubrimplok" not in "\n".join(problems)


def test_a_copy_elsewhere_is_looked_into_when_it_is_named(folder: Path) -> None:
    assert prove(folder / "after", folder / "receipt.json").problems == []
    problems = prove(folder / "after", folder / "receipt.json", [folder / "before"]).problems
    assert len([problem for problem in problems if "delete the copy" in problem]) == 2


def test_a_receipt_that_was_changed_or_is_another_box_s_proves_nothing(folder: Path) -> None:
    receipt = json.loads((folder / "receipt.json").read_text())
    for change in ({"id": "another"}, {"turns": 2}, {"marks": ["0" * 64]}):
        (folder / "changed.json").write_text(json.dumps(receipt | change))
        assert prove(folder / "after", folder / "changed.json").problems
    put_the_line_back(folder / "after", folder / "before")
    (folder / "after/identity/erase.key").write_bytes(b"x" * 32)
    assert "still holds a turn" in "\n".join(prove(folder / "after", folder / "receipt.json").problems)
    shutil.rmtree(folder / "after/identity")
    with pytest.raises(FailedPrecondition, match="key"):
        prove(folder / "after", folder / "receipt.json")


NO_LIST = '{"id":"x","dry_run":false,"turns":1,"marks":"y","memory_ids":[]}'


@pytest.mark.parametrize("text", ["", "[]", "{}", "\x00", '{"id": 1}', '{"dry_run": true}', NO_LIST])
def test_what_is_no_receipt_is_said_to_be_none(folder: Path, text: str) -> None:
    (folder / "no.json").write_text(text)
    with pytest.raises(InvalidArgument) as caught:
        prove(folder / "after", folder / "no.json")
    assert caught.value.field == "erased"
    with pytest.raises(InvalidArgument):
        prove(folder / "after", folder / "absent.json")


def test_what_is_only_hidden_is_not_proved_before_it_is_erased(tmp_path: Path) -> None:
    data, receipt = tmp_path / "data", tmp_path / "receipt.json"
    with core(data, Config(), HashEmbedder(8)) as box:
        (secret, _) = say(box, SECRET, "别的")
        space = box.spaces.open("public")
        written(space.forget([secret], None, False, grace=3_600_000_000), receipt)
        # And nothing besides, as it is still there by right.
        (only,) = prove(data, receipt).problems
        assert "is only hidden yet" in only
        (done,) = space.finish_forgets(2**60)
        assert done.marks == tuple(json.loads(receipt.read_text())["marks"])
        assert prove(data, receipt).problems == []
    lines = [line for one in list_segments(data / "spaces/public/log") for line in read_lines(one)]
    assert SECRET not in str(lines)
