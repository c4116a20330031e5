"""Into somebody else's configuration goes one entry, and every other byte of it stays."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.cli.connecting import json_file, toml_file
from edge.cli.connecting.assistants import ASSISTANTS, NAME
from edge.cli.connecting.change import plan, plan_removal
from edge.config import tomllib
from edge.errors import FailedPrecondition, InvalidArgument, ReadOnly

ENTRY = {"command": "/x/edge", "args": ["mcp"]}
COMMENTED = """\ufeff// mine
{
\t"theme": "dark", /* "mcpServers": {} */
\t"url": "http://x//y", // no comment in there
\t"mcpServers": {
\t\t"other": { "command": "a", "env": {"TOKEN": "s3cret"} }, // the other
\t},
}
"""


def test_comments_order_and_odd_formatting_stay() -> None:
    after = json_file.put(COMMENTED, ("mcpServers", NAME), ENTRY)
    added = [line for line in after.splitlines() if line not in COMMENTED.splitlines()]
    for line in COMMENTED.splitlines():
        assert line.rstrip(",") in after or line.split(" //")[0] in after
    assert "".join(added).count(NAME) == 1
    value = json_file.parse(after)
    assert value == {**json_file.parse(COMMENTED), "mcpServers": {"other": {"command": "a", "env": {"TOKEN": "s3cret"}},
                                                                NAME: ENTRY}}  # fmt: skip
    assert json_file.put(after, ("mcpServers", NAME), ENTRY).count(NAME) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "{}",
        "{ }",
        '{"mcpServers":{}}',
        '{\r\n  "a": 1\r\n}\r\n',
        "{\n  // none\n}\n",
        "// none\n",
        "\ufeff",
    ],
)
def test_it_finds_its_place_in_whatever_is_there(text: str) -> None:
    after = json_file.put(text, ("mcpServers", NAME), ENTRY)
    assert json_file.parse(after)["mcpServers"][NAME] == ENTRY
    if "\r\n" in text:
        assert "\n" not in after.replace("\r\n", "")
    if "//" in text:
        assert "// none" in after


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=8), values, max_size=4),
    st.dictionaries(st.text(max_size=8), values, max_size=3) | st.none(),
    st.sampled_from([None, 2, 4, "\t"]),
    st.booleans(),
)
def test_whatever_a_json_file_says_it_says_the_same_afterwards_and_the_entry_besides(
    rest, servers, indent, ascii_
) -> None:
    old = {**rest, **({} if servers is None else {"mcpServers": servers})}
    if servers is None:
        old.pop("mcpServers", None)
    text = json.dumps(old, indent=indent, ensure_ascii=ascii_)
    after = json_file.put(text, ("mcpServers", NAME), ENTRY)
    expected = {**old, "mcpServers": {**(old.get("mcpServers") or {}), NAME: ENTRY}}
    assert json.loads(after) == expected
    assert list(json.loads(after)) == list(expected)
    # And again changes nothing of what it means.
    assert json.loads(json_file.put(after, ("mcpServers", NAME), ENTRY)) == expected


TOML = """# mine
model = "x"  # the model

[mcp_servers.other]
command = "a"
env = { TOKEN = "s3cret" }

[profiles.one]
model = "y"
"""


def test_a_toml_file_keeps_its_comments_and_tables() -> None:
    after = toml_file.put(TOML, ("mcp_servers", NAME), ENTRY)
    assert tomllib.loads(after) == {
        **tomllib.loads(TOML),
        "mcp_servers": {**tomllib.loads(TOML)["mcp_servers"], NAME: ENTRY},
    }
    for line in TOML.splitlines():
        assert line in after
    assert toml_file.put(after, ("mcp_servers", NAME), ENTRY) == after
    assert tomllib.loads(toml_file.put("", ("mcp_servers", NAME), ENTRY)) == {"mcp_servers": {NAME: ENTRY}}


@pytest.mark.parametrize(
    ("behind", "rest"),
    [
        ("\n# about b\n[mcp_servers.b]\nx = 1\n", "# about b\n[mcp_servers.b]\nx = 1\n"),
        ("[mcp_servers.NAME.env]\nA = 'b'\n# about z\n  [z]\nx = 1\n", "# about z\n  [z]\nx = 1\n"),
        ("\n\n# [mcp_servers.b]\n# x = 1", "# [mcp_servers.b]\n# x = 1"),
        ("# [mcp_servers.NAME]\n\n[z]\n", "# [mcp_servers.NAME]\n\n[z]\n"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "# top\na = 1\n\n", "[mcp_servers.a]\nx = 1 # one\n"])
def test_a_comment_behind_the_table_is_not_the_table_s(before: str, behind: str, rest: str, line_end: str) -> None:
    text = before + '[mcp_servers.NAME]\ncommand = "x" # ours\n' + behind
    after = toml_file.remove(text.replace("NAME", NAME).replace("\n", line_end), ("mcp_servers", NAME))
    assert after == (before + rest).replace("NAME", NAME).replace("\n", line_end)


@pytest.mark.parametrize(
    ("assistant", "text"),
    [
        ("cursor", '{"mcpServers": '),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": null}'),
        ("cursor", "not json"),
        ("cursor", "{} {}"),
        ("cursor", "[" * 100_000),
        ("vscode", '{"servers": "x"}'),
        ("opencode", '{"mcp": 5}'),
        ("codex", "[mcp_servers"),
        ("codex", "mcp_servers = 5"),
        ("codex", "a = 1\na = 2\n"),
    ],
)
def test_a_file_that_is_damaged_is_refused_with_what_to_add_by_hand(tmp_path, assistant: str, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(FailedPrecondition) as refused:
        plan(ASSISTANTS[assistant], path, ENTRY)
    assert "nothing was changed" in refused.value.message
    assert f"edge connect {assistant} --print" in refused.value.message
    assert path.read_text() == text


def test_a_file_that_is_no_text_is_refused(tmp_path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(FailedPrecondition):
        plan(ASSISTANTS["cursor"], path, ENTRY)


def test_what_its_owner_added_to_the_entry_stays_in_it(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {NAME: {"command": "old", "env": {"EDGE_TOKEN": "t"}}}}))
    after = json.loads(plan(ASSISTANTS["cursor"], path, ENTRY).after)
    assert after["mcpServers"][NAME] == {**ENTRY, "env": {"EDGE_TOKEN": "t"}}


def test_within_an_entry_only_what_differs_changes(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(f'{{"mcpServers": {{"{NAME}": {{"env": {{"A":1}}, /* mine */ "command": "old"}}, }}}}')
    after = plan(ASSISTANTS["cursor"], path, ENTRY).after
    assert '{"env": {"A":1}, /* mine */ "command": "/x/edge"' in after
    assert json_file.parse(after)["mcpServers"][NAME] == {**ENTRY, "env": {"A": 1}}
    path.write_text(f'[mcp_servers.{NAME}]\ncommand = "old" # mine\n[mcp_servers.{NAME}.env]\nA = "b"\n[z]\n\n\n')
    after = plan(ASSISTANTS["codex"], path, ENTRY).after
    assert 'command = "/x/edge" # mine\n' in after and after.endswith("[z]\n\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\r\n[x]\r\nb = 2\r\n",
        "\ufeffa = 1\n",
        'mcp_servers = { a = { command = "x" } }\n',
        'mcp_servers.a.command = "x"\n',
        '[mcp_servers.a]\ncommand="x"\n[y]\nz=1\n[mcp_servers.b]\ncommand="y"\n',
    ],
)
def test_a_toml_file_keeps_its_line_ends_its_mark_and_its_way_of_writing_tables(text) -> None:
    after = toml_file.put(text, ("mcp_servers", NAME), ENTRY)
    assert toml_file.parse(after)["mcp_servers"][NAME] == ENTRY
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    assert ("\r\n" in text) == ("\n" not in after.replace("\r\n", ""))


def test_a_file_of_one_line_shows_nobody_what_else_stands_in_it(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"a": "s3cret" + "x" * 300, "mcpServers": {"b": {}}, "c": "s3cret" + "y" * 300}))
    shown = plan(ASSISTANTS["cursor"], path, ENTRY).shown()
    assert "/x/edge" in shown and "s3cret" not in shown


def test_two_changes_within_a_second_keep_two_copies_of_the_mode_of_the_file(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"first": 1}')
    path.chmod(0o600)
    copies = []
    for command in ("/x/edge", "/y/edge"):
        copy = plan(ASSISTANTS["cursor"], path, {**ENTRY, "command": command}).write()
        assert copy is not None
        assert copy.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o600
        copies.append(copy.read_text())
    assert copies[0] == '{"first": 1}' and "/x/edge" in copies[1]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_is_read_only_stays_as_it_is(tmp_path, monkeypatch) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    change = plan(ASSISTANTS["cursor"], path, ENTRY)
    # For root, every file can be written.
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ReadOnly):
        change.write()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["{}"]


def test_opencode_2_has_its_servers_one_level_deeper(tmp_path) -> None:
    path = tmp_path / "opencode.json"
    path.write_text('{"mcp": {"servers": {"other": {"type": "local", "command": ["a"]}}}}')
    assert NAME in json.loads(plan(ASSISTANTS["opencode"], path, ENTRY).after)["mcp"]["servers"]


def test_a_file_that_changed_while_its_owner_was_asked_is_left_alone(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    change = plan(ASSISTANTS["cursor"], path, ENTRY)
    path.write_text('{"numStartups": 7}')
    with pytest.raises(FailedPrecondition):
        change.write()
    assert json.loads(path.read_text()) == {"numStartups": 7}
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one_and_the_file_behind_it_keeps_its_mode(tmp_path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "mcp.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    plan(ASSISTANTS["cursor"], link, ENTRY).write()
    assert link.is_symlink()
    assert NAME in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_is_shown_is_the_change_and_no_line_besides(tmp_path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(COMMENTED)
    shown = plan(ASSISTANTS["cursor"], path, ENTRY).shown()
    assert NAME in shown
    assert "s3cret" not in shown.replace('"other": { "command": "a", "env": {"TOKEN": "s3cret"} }', "")


def test_each_assistant_has_its_documented_place_and_form(monkeypatch, tmp_path) -> None:
    home = {"HOME": str(tmp_path)}
    monkeypatch.setattr(sys, "platform", "linux")
    found = {name: str(one.path("user", home).relative_to(tmp_path)) for name, one in ASSISTANTS.items()}
    assert found == {
        "claude-code": ".claude.json",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "codex": ".codex/config.toml",
        "opencode": ".config/opencode/opencode.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
    }
    monkeypatch.setattr(sys, "platform", "darwin")
    desktop = ASSISTANTS["claude-desktop"].path("user", home)
    assert desktop == tmp_path / "Library/Application Support/Claude/claude_desktop_config.json"
    assert ASSISTANTS["vscode"].path("user", home) == tmp_path / "Library/Application Support/Code/User/mcp.json"
    assert ASSISTANTS["codex"].path("user", {**home, "CODEX_HOME": "/c"}).as_posix() == "/c/config.toml"
    monkeypatch.chdir(tmp_path)
    assert ASSISTANTS["vscode"].path("project", home) == tmp_path / ".vscode/mcp.json"
    with pytest.raises(InvalidArgument):
        ASSISTANTS["claude-desktop"].path("project", home)
    words = ["/x/edge", "mcp"]
    assert ASSISTANTS["opencode"].entry(words) == {"type": "local", "command": words, "enabled": True}
    assert ASSISTANTS["vscode"].entry(words) == {"type": "stdio", "command": "/x/edge", "args": ["mcp"]}
    assert ASSISTANTS["codex"].entry(words) == ENTRY


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"other": {}}}',
        '{\n  "mcpServers": {\n    "other": {}\n  },\n  "z": 1\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"other": {} // mine\r\n\t}\r\n}\r\n',
        COMMENTED,
    ],
)
def test_what_was_put_beside_other_servers_is_taken_out_to_the_byte(text: str) -> None:
    keys = ("mcpServers", NAME)
    assert json_file.remove(json_file.put(text, keys, ENTRY), keys) == text


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"mcpServers": {"NAME": {}, "b": 1}}', '{"mcpServers": { "b": 1}}'),
        ('{"mcpServers": {"a": 1, "NAME": {}, "b": 1}}', '{"mcpServers": {"a": 1, "b": 1}}'),
        ('{"mcpServers": {"a": 1, "NAME": {}}}', '{"mcpServers": {"a": 1}}'),
        ('{"mcpServers": {"a": 1, "NAME": {}, }}', '{"mcpServers": {"a": 1, }}'),
        ('{"mcpServers": {"NAME": {}}}', '{"mcpServers": {}}'),
        (
            '{"mcpServers": {\n  // first\n  "a": 1, // one, {\n  /* ours */ "NAME": {\n    "x": []\n  } // end\n}}',
            '{"mcpServers": {\n  // first\n  "a": 1 // one, {\n  /* ours */ // end\n}}',
        ),
        ('{"mcpServers": {\n  "NAME": {}, // x\n  "b": 1\n}}', '{"mcpServers": { // x\n  "b": 1\n}}'),
        # A comma that JSON does not have is nothing that its readers take alone.
        ('{"mcpServers": {"NAME": {},}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {\n  "NAME": {} /* , */, // x\n}}', '{"mcpServers": { // x\n}}'),
        # What follows does not become a part of the comment above.
        ('{"mcpServers": { // x\n  "NAME": {}}}', '{"mcpServers": { // x\n  }}'),
        ('{"mcpServers": {"a": 1, // x\r\n  "NAME": {}, }}', '{"mcpServers": {"a": 1, // x\r\n  }}'),
        ('{"mcpServers": { // x\n  "NAME": {}, "b": 1}}', '{"mcpServers": { // x\n  "b": 1}}'),
    ],
)
def test_with_the_entry_goes_one_comma_and_no_comment(text: str, rest: str) -> None:
    after = json_file.remove(text.replace("NAME", NAME), ("mcpServers", NAME))
    assert after == rest
    json_file.parse(after)


@given(
    st.dictionaries(st.text(max_size=8), values, max_size=4),
    st.lists(st.tuples(st.text(max_size=8), values), max_size=4),
    st.integers(0, 4),
    st.sampled_from([None, 2, "\t"]),
)
def test_whatever_else_a_json_file_says_stays_when_the_entry_is_taken_out(rest, others, at, indent) -> None:
    rest.pop("mcpServers", None)
    others = [(name, value) for name, value in others if name != NAME]
    servers = dict([*others[:at], (NAME, ENTRY), *others[at:]])
    text = json.dumps({**rest, "mcpServers": servers}, indent=indent)
    after = json_file.remove(text, ("mcpServers", NAME))
    assert json.loads(after) == {**rest, "mcpServers": {n: value for n, value in servers.items() if n != NAME}}


@pytest.mark.parametrize(
    "text",
    [
        TOML,
        TOML.replace("\n", "\r\n"),
        "a = 1\n",
        'mcp_servers = { a = { command = "x" } }\n',
        '[mcp_servers.a]\ncommand="x" # mine\n[y]\nz=1\n[mcp_servers.b]\ncommand="y"\n',
    ],
)
def test_a_table_is_taken_out_of_a_toml_file_and_every_other_line_stays(tmp_path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(toml_file.put(text, ("mcp_servers", NAME), {**ENTRY, "env": {"A": "b"}}), newline="")
    change = plan_removal(ASSISTANTS["codex"], path)
    assert change is not None
    assert tomllib.loads(change.after) == tomllib.loads(text)
    for line in text.splitlines():
        assert line in change.after
    assert ("\r\n" in text) == ("\n" not in change.after.replace("\r\n", ""))
    change.write()
    assert plan_removal(ASSISTANTS["codex"], path) is None


@pytest.mark.parametrize(
    ("assistant", "text"),
    [
        ("cursor", '{"mcpServers": '),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        # Twice: which of them is read is its reader's own affair.
        ("cursor", f'{{"mcpServers": {{"{NAME}": {{}}, "{NAME}": {{}}}}}}'),
        ("codex", "[mcp_servers"),
    ],
)
def test_nothing_is_taken_out_of_a_file_that_is_damaged(tmp_path, assistant: str, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(FailedPrecondition) as refused:
        plan_removal(ASSISTANTS[assistant], path)
    assert "nothing was changed" in refused.value.message and "by hand" in refused.value.message
    assert path.read_text() == text
