"""`edge connect`: shows, asks, keeps a copy, and says what is next."""

from __future__ import annotations

import json

import pytest

from edge.cli.connecting.assistants import ASSISTANTS, NAME


@pytest.fixture
def home(edge, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("EDGE_DATA", raising=False)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("assistant", sorted(ASSISTANTS))
def test_it_writes_once_and_says_so_the_second_time(edge, home, assistant) -> None:
    first = edge("connect", assistant, "--yes")
    assert first.status == 0, first.err
    path = next(path for path in home.rglob("*") if path.is_file())
    written = path.read_bytes()
    assert NAME.encode() in written and b"mcp" in written
    second = edge("connect", assistant, "--yes")
    assert second.status == 0
    assert "already" in second.out
    assert path.read_bytes() == written
    assert len([path for path in home.rglob("*") if path.is_file()]) == 1


def test_it_shows_and_writes_nothing_where_nobody_can_be_asked(edge, home, monkeypatch) -> None:
    done = edge("connect", "cursor")
    assert done.status == 2
    assert NAME in done.out
    assert "--yes" in done.err
    assert edge("connect", "cursor", "--dry-run").status == 0
    assert edge("connect", "cursor", "--print").status == 0
    assert not (home / ".cursor").exists()


def test_what_is_printed_is_the_file_and_nothing_else(edge, home) -> None:
    printed = edge("connect", "vscode", "--print")
    assert list(json.loads(printed.out)["servers"]) == [NAME]
    assert "Code/User/mcp.json" in printed.err


def test_what_was_there_is_kept_beside_it(edge, home) -> None:
    path = home / ".claude.json"
    path.write_text('{"numStartups": 3}')
    assert edge("connect", "claude-code", "--yes").status == 0
    (copy,) = home.glob(".claude.json.before-edge-*")
    assert copy.read_text() == '{"numStartups": 3}'
    assert json.loads(path.read_text())["numStartups"] == 3


def test_a_damaged_file_is_refused_and_left_as_it_is(edge, home) -> None:
    path = home / ".claude.json"
    path.write_text('{"numStartups": ')
    done = edge("connect", "claude-code", "--yes")
    assert done.status == 1
    assert "nothing was changed" in done.err
    assert "Traceback" not in done.err
    assert path.read_text() == '{"numStartups": '


def test_the_box_that_is_meant_here_is_the_one_the_assistant_asks_and_no_token_is_written(
    edge, home, monkeypatch
) -> None:
    monkeypatch.setenv("EDGE_ADDRESS", "192.0.2.7:7430")
    monkeypatch.setenv("EDGE_TOKEN", "probe-7f3a")
    done = edge("connect", "cursor", "--yes")
    written = (home / ".cursor" / "mcp.json").read_text()
    assert json.loads(written)["mcpServers"][NAME]["args"][-3:] == ["mcp", "--address", "192.0.2.7:7430"]
    assert "probe-7f3a" not in written + done.out + done.err
    assert "EDGE_TOKEN was not written" in done.err


@pytest.mark.parametrize("assistant", sorted(ASSISTANTS))
def test_it_takes_its_entry_out_again_and_says_so_the_second_time(edge, home, assistant) -> None:
    before = edge("connect", assistant, "--remove", "--yes")
    assert (before.status, list(home.rglob("*"))) == (0, [])
    assert "does not have the memory" in before.out
    edge("connect", assistant, "--yes")
    (path,) = [path for path in home.rglob("*") if path.is_file()]
    written = path.read_text()
    done = edge("connect", assistant, "--remove", "--yes")
    assert done.status == 0, done.err
    assert NAME in done.out and "taken out" in done.out
    assert NAME not in path.read_text()
    (copy,) = [one for one in home.rglob("*") if one.is_file() and one != path]
    assert copy.name in done.out and copy.read_text() == written
    left = path.read_bytes()
    again = edge("connect", assistant, "--remove", "--yes")
    assert again.status == 0 and "does not have the memory" in again.out
    assert path.read_bytes() == left
    assert len([one for one in home.rglob("*") if one.is_file()]) == 2


def test_what_would_be_taken_out_is_shown_and_nothing_is_where_nobody_can_be_asked(edge, home) -> None:
    edge("connect", "cursor", "--yes")
    path = home / ".cursor" / "mcp.json"
    written = path.read_text()
    for arguments, status in ((("--dry-run",), 0), ((), 2), (("--print",), 2)):
        done = edge("connect", "cursor", "--remove", *arguments)
        assert done.status == status
        assert path.read_text() == written
        assert (NAME in done.out) == (arguments != ("--print",))
    assert "--remove" in done.err
