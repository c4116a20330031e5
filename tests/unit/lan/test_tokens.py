"""Whose secret it is, what that one may do, and until when."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import DataLoss, DiskFull, EdgeError, FailedPrecondition, InvalidArgument, NotFound, ReadOnly
from edge.lan.grants import check_grants, client_grants
from edge.lan.store import TokenStore
from edge.lan.tokens import Tokens
from edge.types import OWNER, Caller, Grant, Scope

ALL = frozenset(Scope)


class Clock:
    def __init__(self) -> None:
        self.wall = 1_000_000

    def now(self) -> int:
        self.wall += 1
        return self.wall

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "box.sqlite"


@pytest.fixture
def tokens(path: Path) -> Iterator[Tokens]:
    opened = Tokens(path, Clock())
    yield opened
    opened.close()


def make(tokens: Tokens, name: str = "claude", *, replace: bool = False) -> str:
    return tokens.create(name, client_grants(name), replace=replace)[1]


def test_a_secret_is_256_random_bits_and_known_again(tokens: Tokens) -> None:
    secret = make(tokens)
    assert secret.startswith("edge_") and len(secret) == 5 + 43
    caller = tokens.authenticate(secret)
    assert caller is not None
    assert (caller.name, caller.grants, caller.owner) == ("claude", client_grants("claude"), False)


@pytest.mark.parametrize(
    "wrong", ["", "edge_", "probe-7f3a", "edge_" + "A" * 43, "门" * 48, "\0", "\ud800" * 48, "x" * 10**6]
)
def test_another_secret_is_nobodys(tokens: Tokens, wrong: str) -> None:
    secret = make(tokens)
    for one in (wrong, secret[:-1], secret + "=", secret.upper(), f" {secret}", f"{secret}\n"):
        assert tokens.authenticate(one) is None


def test_tokens_outlive_a_restart_and_a_crash(path: Path, tokens: Tokens) -> None:
    secret = make(tokens)
    # Not closed: what was acknowledged is in the file already.
    again = Tokens(path, Clock())
    caller = again.authenticate(secret)
    assert caller is not None and caller.grants == client_grants("claude")
    again.close()


def test_the_secret_is_in_no_file_log_or_repr(path: Path, tokens: Tokens, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = make(tokens)
    tokens.authenticate(secret)
    tokens.flush()
    shown = caplog.text + repr(tokens.listed()) + repr(tokens.authenticate(secret)) + repr(vars(tokens))
    assert secret not in shown and secret[5:] not in shown
    for file in path.parent.iterdir():
        assert secret[5:].encode() not in file.read_bytes(), file.name


def test_its_files_are_their_owners_alone(path: Path, tokens: Tokens) -> None:
    make(tokens)
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_a_revoked_token_is_good_no_more_also_after_a_restart(path: Path, tokens: Tokens) -> None:
    secret, other = make(tokens), make(tokens, "codex")
    revoked = tokens.revoke("claude")
    assert revoked.revoked_at > 0
    assert tokens.authenticate(secret) is None
    assert tokens.authenticate(other) is not None
    again = Tokens(path, Clock())
    assert again.authenticate(secret) is None
    assert [token.revoked_at > 0 for token in again.listed()] == [True, False]
    again.close()


def test_a_token_is_revoked_by_id_and_once_more_changes_nothing(tokens: Tokens) -> None:
    token, _ = tokens.create("claude", client_grants("claude"))
    assert tokens.revoke(token.id) == tokens.revoke(token.id)
    with pytest.raises(NotFound):
        tokens.revoke("claude")
    with pytest.raises(NotFound):
        tokens.revoke("T-0000000000000000")


def test_no_name_can_be_an_id(tokens: Tokens) -> None:
    token, _ = tokens.create("claude", client_grants("claude"))
    with pytest.raises(InvalidArgument):
        make(tokens, token.id)


def test_whoever_watches_is_told_once_when_its_token_is_revoked(tokens: Tokens) -> None:
    caller = tokens.authenticate(make(tokens))
    other = tokens.authenticate(make(tokens, "codex"))
    assert caller is not None and other is not None
    told: list[str] = []
    tokens.on_revoked(caller, lambda: told.append("first"))
    tokens.on_revoked(caller, lambda: told.append("second"))
    stop = tokens.on_revoked(caller, lambda: told.append("gone"))
    tokens.on_revoked(other, lambda: told.append("other"))
    stop()
    stop()
    tokens.revoke("claude")
    tokens.revoke(caller.token)
    assert told == ["first", "second"]


def test_whoever_watches_too_late_is_told_at_once(tokens: Tokens) -> None:
    caller = tokens.authenticate(make(tokens))
    assert caller is not None
    tokens.revoke("claude")
    told: list[str] = []
    tokens.on_revoked(caller, lambda: told.append("ended"))()
    assert told == ["ended"]


def test_the_owner_is_never_revoked(tokens: Tokens) -> None:
    told: list[str] = []
    tokens.on_revoked(OWNER, lambda: told.append("ended"))()
    assert told == []


def test_a_watcher_that_fails_keeps_no_other_from_being_told(tokens: Tokens, caplog: pytest.LogCaptureFixture) -> None:
    caller = tokens.authenticate(make(tokens))
    assert caller is not None
    told: list[str] = []
    tokens.on_revoked(caller, lambda: [][0])
    tokens.on_revoked(caller, lambda: told.append("ended"))
    tokens.revoke("claude")
    assert told == ["ended"]
    assert "IndexError" in caplog.text


def test_a_name_in_use_is_refused_and_the_old_token_stays_good(tokens: Tokens) -> None:
    secret = make(tokens)
    with pytest.raises(FailedPrecondition) as caught:
        make(tokens)
    assert (caught.value.reason, caught.value.field) == ("NAME_TAKEN", "name")
    assert tokens.authenticate(secret) is not None


def test_a_client_that_pairs_again_gets_a_new_token_and_the_old_one_ends(path: Path, tokens: Tokens) -> None:
    old = make(tokens)
    caller = tokens.authenticate(old)
    assert caller is not None
    told: list[str] = []
    tokens.on_revoked(caller, lambda: told.append("ended"))
    new = make(tokens, replace=True)
    assert tokens.authenticate(old) is None
    assert tokens.authenticate(new) is not None
    assert told == ["ended"]
    again = Tokens(path, Clock())
    assert (again.authenticate(old), again.authenticate(new) is not None) == (None, True)
    again.close()


def test_a_device_that_thinks_it_is_1970_revokes_as_well(path: Path) -> None:
    clock = Clock()
    clock.wall = -20
    tokens = Tokens(path, clock)
    for _ in range(15):
        secret = make(tokens, replace=True)
        tokens.authenticate(secret)
    assert sum(not token.revoked_at for token in tokens.listed()) == 1
    tokens.revoke("claude")
    assert tokens.authenticate(secret) is None
    assert all(token.revoked_at for token in tokens.listed())
    tokens.close()


def test_a_name_is_free_again_once_its_token_is_revoked(tokens: Tokens) -> None:
    make(tokens)
    tokens.revoke("claude")
    assert tokens.authenticate(make(tokens)) is not None


def test_last_uses_are_known_at_once_and_written_when_flushed(path: Path, tokens: Tokens) -> None:
    secret = make(tokens)
    assert tokens.listed()[0].last_used_at == 0
    tokens.authenticate(secret)
    used = tokens.listed()[0].last_used_at
    assert used > tokens.listed()[0].created_at
    assert TokenStore(path, read_only=True).load()[0][0].last_used_at == 0
    tokens.flush()
    assert TokenStore(path, read_only=True).load()[0][0].last_used_at == used
    assert tokens.revoke("claude").last_used_at == used
    assert tokens.listed()[0].last_used_at == used


def test_closing_writes_the_last_uses(path: Path) -> None:
    tokens = Tokens(path, Clock())
    tokens.authenticate(make(tokens))
    used = tokens.listed()[0].last_used_at
    tokens.close()
    tokens.close()
    again = Tokens(path, Clock())
    assert again.listed()[0].last_used_at == used
    again.close()
    with pytest.raises(EdgeError, match="stopping"):
        make(tokens, "codex")


@pytest.mark.parametrize("name", ["", "../x", "%2e%2e", "a\0", "a" * 300, "private/x", "Claude", "a b", "书房"])
def test_a_name_that_cannot_name_a_space_is_refused(tokens: Tokens, name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        tokens.create(name, client_grants("claude"))
    assert caught.value.field == "name"


@pytest.mark.parametrize("pattern", ["", "**", "pub*", "private", "private/", "private/../x", "private/*/x", "PUBLIC"])
def test_a_pattern_that_matches_no_kind_of_space_is_refused(tokens: Tokens, pattern: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        tokens.create("claude", [Grant("work", ALL), Grant(pattern, ALL)])
    assert caught.value.field == "grants[1].space_pattern"
    assert tokens.listed() == ()


def test_grants_without_a_scope_or_too_many_are_refused() -> None:
    for grants in ([], [Grant("work", frozenset())], [Grant("work", ALL)] * 65):
        with pytest.raises(InvalidArgument):
            check_grants(grants)


def test_a_full_disk_makes_no_token_and_keeps_no_stolen_one_good(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = make(tokens)

    def full(*_: object) -> None:
        raise DiskFull("no room left")

    monkeypatch.setattr(TokenStore, "add", full)
    monkeypatch.setattr(TokenStore, "revoke", full)
    with pytest.raises(DiskFull):
        make(tokens, "codex")
    with pytest.raises(DiskFull):
        make(tokens, replace=True)
    assert tokens.authenticate(secret) is not None
    with pytest.raises(DiskFull):
        tokens.revoke("claude")
    assert tokens.authenticate(secret) is None
    monkeypatch.undo()
    assert tokens.revoke("claude").revoked_at > 0


def test_a_file_that_cannot_grow_says_what_to_do(tokens: Tokens) -> None:
    # SQLite says the same then as on a full disk.
    vars(tokens)["_store"]._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(DiskFull, match="free some space"):
        for number in range(200):
            make(tokens, f"c{number}")
    assert tokens.revoke("c0").revoked_at > 0


@pytest.mark.parametrize("content", [b"nonsense" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_told_with_the_way_out_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataLoss, match=r"backup.*pair again"):
        Tokens(path, Clock())
    assert path.read_bytes() == content


@pytest.mark.parametrize("grants", ["", "{}", '[{"space": "work"}]', '[{"space": "work", "scopes": ["fly"]}]', "[3]"])
def test_a_row_that_makes_no_sense_is_damage(path: Path, tokens: Tokens, grants: str) -> None:
    make(tokens)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tokens SET grants = ?", (grants,))
    connection.close()
    with pytest.raises(DataLoss):
        Tokens(path, Clock())


def test_a_file_of_a_later_version_is_not_touched(path: Path) -> None:
    Tokens(path, Clock()).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(FailedPrecondition, match="later version"):
        Tokens(path, Clock())


def test_a_read_only_box_knows_its_clients_and_writes_nothing(path: Path) -> None:
    tokens = Tokens(path, Clock())
    secret = make(tokens)
    tokens.close()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    tokens = Tokens(path, Clock(), read_only=True)
    assert tokens.authenticate(secret) is not None
    with pytest.raises(ReadOnly):
        make(tokens, "codex")
    with pytest.raises(ReadOnly):
        tokens.revoke("claude")
    assert tokens.authenticate(secret) is None
    tokens.flush()
    tokens.close()
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_read_only_box_sees_a_revocation_that_is_only_in_the_write_ahead_log(path: Path, tokens: Tokens) -> None:
    secret = make(tokens)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE tokens SET revoked_at = 1, hash = NULL")
    assert path.with_name("box.sqlite-wal").stat().st_size
    again = Tokens(path, Clock(), read_only=True)
    assert again.authenticate(secret) is None
    again.close()
    other.close()


def test_a_read_only_box_without_a_file_knows_nobody(path: Path) -> None:
    tokens = Tokens(path, Clock(), read_only=True)
    assert tokens.listed() == ()
    assert tokens.authenticate("edge_" + "A" * 43) is None
    assert not path.exists()


def test_many_threads_make_use_and_revoke_without_a_lost_token(tokens: Tokens) -> None:
    def work(name: str) -> None:
        for _ in range(5):
            caller = tokens.authenticate(make(tokens, name, replace=True))
            assert caller is not None and caller.name == name
            tokens.flush()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, ["a", "b", "c", "d"]))
    assert sum(not token.revoked_at for token in tokens.listed()) == 4


def test_a_paired_client_shares_two_spaces_and_has_one() -> None:
    caller = Caller("claude", client_grants("claude"))
    assert caller.home == "private/claude"
    assert not caller.administers
    for space in ("public", "work"):
        assert [caller.may(scope, space) for scope in Scope] == [True, True, False, False]
    assert [caller.may(scope, "private/claude") for scope in Scope] == [True, True, True, False]
    assert not any(caller.may(scope, "private/codex") for scope in Scope)


def test_the_owner_may_everything_everywhere() -> None:
    assert OWNER.owner and OWNER.administers
    assert OWNER.home == "public"
    assert all(OWNER.may(scope, space) for scope in Scope for space in ("public", "work", "private/claude"))


def test_the_box_is_administered_by_who_has_all_of_it() -> None:
    assert not Caller("a", (Grant("private/*", ALL), Grant("public", ALL), Grant("work", ALL))).administers
    assert Caller("a", (Grant("*", frozenset({Scope.ADMIN})),)).administers


SEGMENT = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)
SPACE = st.one_of(st.sampled_from(["public", "work"]), SEGMENT.map(lambda name: f"private/{name}"))
GRANTS = st.lists(
    st.builds(
        Grant, st.one_of(SPACE, st.sampled_from(["*", "private/*"])), st.frozensets(st.sampled_from(Scope), min_size=1)
    ),
    min_size=1,
    max_size=5,
)


@given(GRANTS, st.lists(SPACE, max_size=20), st.sampled_from(Scope))
def test_nothing_is_ever_allowed_that_no_grant_names(grants: list[Grant], spaces: list[str], scope: Scope) -> None:
    caller = Caller("claude", check_grants(grants))
    for space in (*spaces, *(grant.pattern for grant in grants if "*" not in grant.pattern)):
        patterns = {space, "*"} | ({"private/*"} if space not in ("public", "work") else set())
        assert caller.may(scope, space) == any(g.pattern in patterns and scope in g.scopes for g in grants)


@given(SEGMENT, SEGMENT)
def test_no_client_reaches_anothers_space_by_default(name: str, other: str) -> None:
    caller = Caller(name, client_grants(name))
    assert any(caller.may(scope, f"private/{other}") for scope in Scope) == (name == other)


@given(st.text(max_size=30))
def test_what_is_no_space_is_nobodys_not_even_the_owners(space: str) -> None:
    odd = f"private/{space}/.."
    assert not any(OWNER.may(scope, odd) for scope in Scope)
    for pattern in ("*", "private/*"):
        assert not any(OWNER.may(scope, pattern) for scope in Scope)
