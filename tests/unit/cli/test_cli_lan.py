"""The commands of the LAN: discover, pair, token, space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_box import ScriptedBox, rich

from edge.client.store import PairedBox, PairingStore
from edge.lan.discover import Found
from edge.lan.tls import Identity


def found(name: str, id_: str, host: str = "192.0.2.7", fingerprint: str = "", problem: str = "") -> Found:
    return Found(name, (host, "fe80::1%eth0"), 7430, id_, "0.1.0", "v1", True, fingerprint or id_ * 4, problem)


@pytest.fixture
def air(monkeypatch: pytest.MonkeyPatch) -> list[Found]:
    boxes: list[Found] = []

    async def discover(seconds: float) -> list[Found]:
        return boxes

    monkeypatch.setattr("edge.lan.discover.discover", discover)
    return boxes


def paired(folder: Path, name: str = "attic") -> PairedBox:
    identity = Identity.open(folder)
    box = PairedBox(identity.id, name, identity.certificate, "edge_s3cret", "desk", ("192.0.2.7:7430",), "2026-01-01")
    PairingStore().save(box)
    return box


# --- discover


def test_boxes_are_listed_with_those_that_are_paired(edge: Any, air: list[Found], tmp_path: Path) -> None:
    box = paired(tmp_path / "identity")
    air += [found("attic", box.id), found("attic", box.id, "192.0.2.66", "0" * 64), found("cellar", "1" * 16)]
    rows = edge("discover").out.splitlines()
    assert rows[0].split() == ["name", "address", "version", "paired"]
    assert rows[1].split() == ["attic", "192.0.2.7:7430", "0.1.0", "yes"]
    assert "no: announces another certificate" in rows[2]
    assert rows[3].split()[-1] == "no"
    said = json.loads(edge("discover", "--json").out)["boxes"]
    assert [one["paired"] for one in said] == [True, False, False]
    assert said[0]["addresses"] == ["192.0.2.7:7430", "[fe80::1%eth0]:7430"]


def test_what_a_box_calls_itself_moves_no_cursor(edge: Any, air: list[Found]) -> None:
    air.append(found("\x1b[2J\u202eevil", "1" * 16))
    for arguments in ((), ("--json",)):
        assert not set(edge("discover", *arguments).out) & set("\x1b\u202e")


def test_nothing_found_says_what_to_check(edge: Any, air: list[Found]) -> None:
    done = edge("discover")
    assert done.status == 0
    assert "--lan" in done.out
    assert json.loads(edge("discover", "--json").out) == {"boxes": []}


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x"])
def test_a_senseless_time_to_listen_is_wrong_usage(edge: Any, seconds: str) -> None:
    assert edge("discover", "--seconds", seconds).status == 2


# --- pair


@pytest.fixture
def on_the_box(scripted: ScriptedBox, monkeypatch: pytest.MonkeyPatch) -> ScriptedBox:
    """Its socket is where a data directory's is."""
    import os

    monkeypatch.setenv("EDGE_DATA", os.environ["EDGE_ADDRESS"].removeprefix("unix:").removesuffix("/edge.sock"))
    monkeypatch.setenv("EDGE_ADDRESS", "elsewhere:1")
    return scripted


def test_the_box_shows_a_code_with_what_to_compare(edge: Any, on_the_box: ScriptedBox) -> None:
    done = edge("pair", "--show")
    assert done.status == 0
    assert "7K2M-9QXD" in done.out and "10 minutes" in done.out
    assert "one two three four five six" in done.out and "ab" * 32 in done.out
    assert done.err == ""
    said = json.loads(edge("pair", "--show", "--again", "desk", "--json").out)
    assert (said["code"], said["lives_seconds"]) == ("7K2M-9QXD", 600.0)
    assert on_the_box.questions == ["", "desk"]


def test_a_qr_code_is_drawn_on_a_terminal(edge: Any, on_the_box: ScriptedBox, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "█" not in edge("pair", "--show").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "█" in edge("pair", "--show").out


def test_no_box_here_has_no_code_to_show(edge: Any) -> None:
    assert edge("pair", "--show").status == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--show", "attic"),
        ("--show", "--code", "7K2M-9QXD"),
        ("--show", "--forget"),
        ("--again", "desk"),
        ("attic", "--data", "."),
        ("--forget",),
        ("edge-memory://pair?code=7K2M-9QXD",),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(edge: Any, arguments: tuple[str, ...]) -> None:
    done = edge("pair", *arguments)
    assert done.status == 2
    assert "7K2M" not in done.err


def test_no_box_in_the_house_is_not_found(edge: Any, air: list[Found]) -> None:
    done = edge("pair", "--code", "7K2M-9QXD")
    assert done.status == 5
    assert "edge discover" in done.err
    assert "7K2M" not in done.err


def test_of_several_boxes_one_has_to_be_named(edge: Any, air: list[Found], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    air += [found("attic", "1" * 16), found("attic", "2" * 16)]
    done = edge("pair", "attic", "--code", "7K2M-9QXD")
    assert done.status == 2
    assert "1" * 16 in done.err and "2" * 16 in done.err


def test_a_box_is_forgotten_by_name(edge: Any, tmp_path: Path) -> None:
    paired(tmp_path / "identity")
    assert edge("pair", "--forget", "cellar").status == 5
    assert "edge token revoke" in edge("pair", "--forget", "attic").out
    assert PairingStore().ids() == ()


# --- token


def test_a_secret_is_alone_on_stdout(edge: Any, scripted: ScriptedBox) -> None:
    done = edge("token", "create", "phone", "--space", "work:read,write", "--space", "*:READ", "--space", "work:delete")
    assert done.out == "edge_s3cret\n"
    assert "phone" in done.err and "edge_s3cret" not in done.err
    grants = {grant.space_pattern: list(grant.scopes) for grant in scripted.tokens["T-phone"].grants}
    assert grants == {"work": [1, 2, 3], "*": [1]}
    assert json.loads(edge("token", "create", "tv", "--json").out)["secret"] == "edge_s3cret"
    assert list(scripted.tokens["T-tv"].grants) == []


@pytest.mark.parametrize(
    ("addresses", "said", "fingerprint"),
    [
        (["unix:x", "127.0.0.1:7430"], "with EDGE_ADDRESS=127.0.0.1:7430\n", False),
        (["unix:x", "127.0.0.1:7430", "[::]:7431"], "EDGE_ADDRESS, and", True),
    ],
)
def test_the_certificate_of_a_token_is_named_where_there_is_one(
    edge: Any, scripted: ScriptedBox, addresses: list[str], said: str, fingerprint: bool
) -> None:
    scripted.addresses = addresses
    err = edge("token", "create", "phone").err
    assert said in err
    assert ("EDGE_TLS_FINGERPRINT" in err) == fingerprint


def test_the_owner_hears_of_it_when_a_new_token_reaches_what_an_old_client_left(
    edge: Any, scripted: ScriptedBox
) -> None:
    edge("space", "create", "private/desk")
    scripted.spaces["private/desk"].memories = 1234
    done = edge("token", "create", "desk", "--space", "private/desk:read")
    assert done.out == "edge_s3cret\n"
    assert "private/desk was there before" in done.err and "1,234 memories" in done.err
    for name, grant in (("desk", "private/desk:write"), ("desk", "work:read"), ("phone", "private/*:read")):
        assert "before" not in edge("token", "create", name, "--space", grant).err
    assert edge("token", "create", "desk", "--space", "*:read", "--json").err == ""


@pytest.mark.parametrize("grant", ["work", "work:", ":read", "work:fly", "work:read,,write"])
def test_a_senseless_grant_is_wrong_usage(edge: Any, scripted: ScriptedBox, grant: str) -> None:
    done = edge("token", "create", "phone", "--space", grant)
    assert done.status == 2
    assert "space" in done.err
    assert scripted.calls == []


def test_tokens_are_listed_and_revoked_without_secrets(edge: Any, scripted: ScriptedBox) -> None:
    assert "edge pair --show" in edge("token", "list").out
    edge("token", "create", "phone", "--space", "private/*:read")
    out = edge("token", "list").out
    assert "phone" in out and "private/*: read" in out and "never" in out
    [token] = json.loads(edge("token", "list", "--json").out)["tokens"]
    assert token["grants"] == [{"space": "private/*", "scopes": ["read"]}]
    assert token["revoked_at"] is None
    assert edge("token", "revoke", "phone").status == 0
    assert "revoked 20" in edge("token", "list").out
    assert edge("token", "revoke", "nobody").status == 5


def test_who_may_not_gets_status_4(edge: Any, scripted: ScriptedBox) -> None:
    for arguments in (("token", "list"), ("token", "create", "x"), ("token", "revoke", "x"), ("space", "create", "x")):
        scripted.turn_away = [rich("PERMISSION_DENIED", "only the owner may; do it on the box")]
        assert edge(*arguments).status == 4


# --- space


def test_spaces_are_made_listed_and_erased(edge: Any, scripted: ScriptedBox) -> None:
    assert "private/desk is there" in edge("space", "create", "private/desk").out
    assert "2.0 KiB" in edge("space", "list").out
    spaces = json.loads(edge("space", "list", "--json").out)["spaces"]
    assert [space["name"] for space in spaces] == ["public", "private/desk"]
    assert "3 memories" in edge("space", "delete", "public", "--yes").out
    assert edge("space", "delete", "public", "--yes").status == 5


def test_a_space_is_not_erased_unasked(edge: Any, scripted: ScriptedBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    for arguments in ((), ("--json",)):
        done = edge("space", "delete", "public", *arguments)
        assert done.status == 2
        assert "--yes" in done.err
    assert edge("space", "delete", "private/nobody").status == 5
    assert "public" in scripted.spaces
