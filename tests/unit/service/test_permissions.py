"""Who may call what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import PermissionDenied
from edge.service import permissions
from edge.service.permissions import NEEDS, OPEN, check_method, check_space_right
from edge.service.server import SERVICES
from edge.types import OWNER, Caller, Grant, Scope
from edge.v1 import appliance_pb2, graph_pb2, memory_pb2, pairing_pb2, working_pb2

FILES = (memory_pb2, graph_pb2, working_pb2, appliance_pb2, pairing_pb2)
METHODS = {
    f"/{service.full_name}/{method.name}"
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
SPACES = ("public", "work", "private/desk", "private/desk2", "private/a")
PATTERNS = ("*", "private/*", *SPACES)

grants = st.lists(
    st.builds(Grant, st.sampled_from(PATTERNS), st.frozensets(st.sampled_from(list(Scope)))), max_size=4
).map(tuple)
callers = st.builds(Caller, st.just("desk"), grants)


def test_the_table_names_every_method_that_is_not_open_and_no_other() -> None:
    assert {*NEEDS, *(method for method in METHODS if method.startswith(OPEN))} == METHODS
    assert len({method.split("/")[1] for method in METHODS}) == len(SERVICES)


def test_only_pairing_is_open() -> None:
    assert {method for method in METHODS if method.startswith(OPEN)} == {"/edge.v1.PairingService/Pair"}


@pytest.mark.parametrize("method", sorted(NEEDS))
def test_the_owner_may_call_everything(method: str) -> None:
    check_method(OWNER, method)


@pytest.mark.parametrize("method", sorted(NEEDS))
@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_needs_the_scope_of_the_method(method: str, scope: Scope) -> None:
    caller = Caller("desk", (Grant("*", frozenset({scope})),), token="T-1")
    if NEEDS[method] in (None, scope):
        check_method(caller, method)
    else:
        with pytest.raises(PermissionDenied):
            check_method(caller, method)


def test_a_method_that_is_not_in_the_table_is_the_owner_s_alone() -> None:
    everything_else = Caller("desk", (Grant("*", frozenset({Scope.READ, Scope.WRITE, Scope.DELETE})),), token="T-1")
    with pytest.raises(PermissionDenied):
        check_method(everything_else, "/edge.v1.MemoryService/NotThere")


@given(callers, st.sampled_from(list(Scope)), st.sampled_from(SPACES))
def test_a_right_comes_from_one_grant_that_has_the_scope_and_covers_the_space(
    caller: Caller, scope: Scope, space: str
) -> None:
    granted = any(
        scope in grant.scopes
        and (
            grant.pattern == "*"
            or grant.pattern == space
            or (grant.pattern == "private/*" and space not in ("public", "work"))
        )
        for grant in caller.grants
    )
    assert caller.may(scope, space) is granted
    if granted:
        assert check_space_right(caller, scope, space, "space") == space
    else:
        with pytest.raises(PermissionDenied) as caught:
            check_space_right(caller, scope, space, "space")
        assert caught.value.field == "space"


def test_outside_of_a_call_nobody_acts_so_that_a_forgotten_context_gives_no_right_away() -> None:
    assert not any(permissions.current.get().may(scope, "public") for scope in Scope)


def test_a_write_that_names_no_space_goes_home() -> None:
    assert OWNER.home == "public"
    assert Caller("desk", ()).home == "private/desk"
