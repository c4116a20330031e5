"""What clients are granted."""

from __future__ import annotations

from collections.abc import Iterable

from edge.errors import InvalidArgument
from edge.types import Grant, Scope, check_space


def client_grants(name: str) -> tuple[Grant, ...]:
    """What a client may do once it is paired: share in `public` and `work`, and all but ADMIN in a space of its own.

    It deletes in its own space alone: what one client wrote into a shared space, another may have come to rely on.
    """
    return (
        Grant("public", frozenset({Scope.READ, Scope.WRITE})),
        Grant("work", frozenset({Scope.READ, Scope.WRITE})),
        Grant(f"private/{name}", frozenset({Scope.READ, Scope.WRITE, Scope.DELETE})),
    )


def check_grants(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """The grants, if each names a pattern and a scope; else InvalidArgument."""
    checked = tuple(grants)
    if not 1 <= len(checked) <= 64:
        raise InvalidArgument("grants: give 1 to 64 of them", field="grants")
    for place, grant in enumerate(checked):
        field = f"grants[{place}].space_pattern"
        if grant.pattern not in ("*", "private/*"):
            check_space(grant.pattern, field)
        if not grant.scopes:
            raise InvalidArgument(
                f"grants[{place}].scopes: name one at least of read, write, delete and admin",
                field=f"grants[{place}].scopes",
            )
    return checked
