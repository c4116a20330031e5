"""File pages in the kernel's cache: how much room a control group leaves, on made-up trees, and letting them go."""

import sqlite3

import pytest

from edge.ledger import cached
from edge.ledger.database import Database
from edge.ledger.migrations import MIGRATIONS

MB = 1024 * 1024


def tree(root, memberships, files):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(memberships)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("memberships", "files", "room"),
    [
        pytest.param(
            "4:memory:/box\n0::/\n",
            {"memory/box/memory.limit_in_bytes": 200 * MB, "memory/box/memory.usage_in_bytes": 150 * MB},
            50 * MB,
            id="version 1",
        ),
        pytest.param(
            "4:memory:/box\n",
            {
                "memory/box/memory.limit_in_bytes": 9223372036854771712,
                "memory/box/memory.usage_in_bytes": MB,
            },
            None,
            id="version 1 without a limit",
        ),
        pytest.param(
            "0::/system.slice/box\n",
            {"system.slice/box/memory.max": 200 * MB, "system.slice/box/memory.current": 199 * MB},
            MB,
            id="version 2",
        ),
        pytest.param(
            "0::/slice/box\n",
            {
                "slice/box/memory.max": "max",
                "slice/box/memory.current": MB,
                "slice/memory.max": 100 * MB,
                "slice/memory.current": 90 * MB,
            },
            10 * MB,
            id="a limit of the group around it",
        ),
        pytest.param(
            "4:memory:/docker/7c59\n",
            {"memory/memory.limit_in_bytes": 100 * MB, "memory/memory.usage_in_bytes": 40 * MB},
            60 * MB,
            id="a container that sees its own group as the top",
        ),
        pytest.param("0::/box\n", {"box/memory.max": "nonsense", "box/memory.current": MB}, None, id="a lie"),
        pytest.param("", {}, None, id="no groups at all"),
    ],
)
def test_the_room_is_what_the_nearest_limit_leaves(tmp_path, memberships, files, room):
    assert cached.room(tree(tmp_path, memberships, files)) == room


def test_a_system_without_control_groups_has_no_limit(tmp_path):
    assert cached.room(tmp_path) is None


def test_a_file_whose_pages_were_let_go_reads_as_before(tmp_path):
    path = tmp_path / "pages"
    with path.open("w+b", buffering=0) as file:
        file.write(b"x" * 10_000)
        cached.let_go(file.fileno())
    assert path.read_bytes() == b"x" * 10_000


def test_what_cannot_be_let_go_stays(tmp_path):
    with (tmp_path / "closed").open("wb") as file:
        number = file.fileno()
    cached.let_go(number)


@pytest.mark.parametrize(("room", "let_go"), [(MB, True), (1000 * MB, False), (None, False)])
def test_the_database_keeps_its_pages_unless_there_is_little_room(tmp_path, monkeypatch, room, let_go):
    files = []
    monkeypatch.setattr(cached, "room", lambda: room)
    monkeypatch.setattr(cached, "let_go", files.append)
    database = Database(tmp_path / "memory.sqlite", MIGRATIONS)
    database.submit(lambda connection: connection.execute("SELECT 1").fetchone()).result()
    # The next job begins after the first one's look.
    answer = database.submit(lambda connection: connection.execute("SELECT 2").fetchone()).result()
    database.close()
    assert answer == (2,)
    assert bool(files) is let_go
    with sqlite3.connect(tmp_path / "memory.sqlite") as again:
        assert again.execute("PRAGMA integrity_check").fetchone() == ("ok",)
