"""Who may call what: one table, held complete against the wire's descriptors by a test."""

from __future__ import annotations

from contextvars import ContextVar

from edge.errors import PermissionDenied
from edge.types import OWNER, Caller, Scope

_MEMORY, _GRAPH, _WORKING, _APPLIANCE = (
    f"/edge.v1.{name}Service/" for name in ("Memory", "Graph", "Working", "Appliance")
)

# The scope that a call needs in at least one space; which spaces it then reaches is decided where they are named.
# None: any token will do.
NEEDS: dict[str, Scope | None] = {
    **dict.fromkeys(
        (_MEMORY + name for name in ("Recall", "RecallStream", "GetMemory", "ListMemories", "ListDeeds")), Scope.READ
    ),
    **dict.fromkeys(
        (_MEMORY + name for name in ("Ingest", "Remember", "ReviewCandidate", "Archive", "Undo")), Scope.WRITE
    ),
    _MEMORY + "Forget": Scope.DELETE,
    **dict.fromkeys((_GRAPH + name for name in ("ListEntities", "ListFacts", "Timeline")), Scope.READ),
    **dict.fromkeys((_WORKING + name for name in ("GetState", "ListStates", "RecentTurns")), Scope.READ),
    # Whoever may put a state may put another in its place: deleting it takes no more.
    **dict.fromkeys((_WORKING + name for name in ("PutState", "DeleteState")), Scope.WRITE),
    **dict.fromkeys((_APPLIANCE + name for name in ("GetStatus", "WatchStatus")), None),
    _APPLIANCE + "ListSpaces": Scope.READ,
    _APPLIANCE + "CreateSpace": Scope.WRITE,
    _APPLIANCE + "DeleteSpace": Scope.DELETE,
    **dict.fromkeys(
        (
            _APPLIANCE + name
            for name in ("Backup", "Restore", "Rebuild", "UseModel", "CreateToken", "ListTokens", "RevokeToken")
        ),
        Scope.ADMIN,
    ),
    _APPLIANCE + "ListEgress": Scope.ADMIN,
}
# Open to everyone: who pairs has no token yet, and health and reflection say nothing of what the box holds.
OPEN = ("/edge.v1.PairingService/", "/grpc.health.v1.", "/grpc.reflection.")

_VERBS = {Scope.READ: "read", Scope.WRITE: "write to", Scope.DELETE: "delete from", Scope.ADMIN: "administer"}
# Whoever calls what is open to everyone.
NOBODY = Caller("", ())
# What the log calls those that are no clients.
_NO_CLIENT = (OWNER.name, "rule", "")
# Whose call this task serves. Where nobody said, for a thread without the task's context say, it may do nothing.
current: ContextVar[Caller] = ContextVar("caller", default=NOBODY)


def author() -> str:
    """Who makes this call, as the log names it."""
    return name_of(current.get())


def name_of(caller: Caller) -> str:
    """ "owner", or the client's name, which must not look like another's."""
    if caller.owner:
        return OWNER.name
    return f"client:{caller.name}" if caller.name in _NO_CLIENT else caller.name


def check_method(caller: Caller, method: str) -> None:
    """Raises PermissionDenied when no space would do. A method that is not in the table is the owner's alone."""
    scope = NEEDS.get(method, Scope.ADMIN)
    if scope is None:
        return
    if scope is Scope.ADMIN and not caller.administers:
        raise PermissionDenied(
            "only the owner, or a token with the admin scope, may do this; do it on the box itself, through its socket"
        )
    if not any(scope in grant.scopes for grant in caller.grants):
        raise PermissionDenied(
            f"this token has no {scope.name.lower()} scope; the owner gives one with: edge token create"
        )


def check_space_right(caller: Caller, scope: Scope, space: str, field: str) -> str:
    """The space, if the caller may; else PermissionDenied, which does not tell whether there is such a space."""
    if caller.may(scope, space):
        return space
    raise PermissionDenied(
        f"{field}: this token may not {_VERBS[scope]} {space}; name another space, or have the owner grant it with: "
        "edge token create",
        field=field,
    )
