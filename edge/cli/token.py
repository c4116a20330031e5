"""`edge token`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.cli.show import as_json, local, one_line, rfc3339, table
from edge.errors import EdgeError, InvalidArgument, PermissionDenied

_SCOPES = ("read", "write", "delete", "admin")
_READ = 1 + _SCOPES.index("read")


@click.group("token", no_args_is_help=False)
def command() -> None:
    """Give and revoke the tokens of clients. For the owner, on the box itself, or for a token with admin."""


@command.command("create")
@click.argument("name")
@click.option(
    "--space",
    "grants",
    multiple=True,
    metavar="PATTERN:SCOPES",
    help="Such as work:read,write or '*:read,admin'; repeatable. Scopes: read, write, delete, admin. "
    "Default: what a paired client may do.",
)
@options.as_json_too
@options.to_box
def create(name: str, grants: tuple[str, ...], json_: bool, address: str | None, data: Path | None) -> int:
    """Make a token for the client NAME, whose private space is private/NAME.

    Prints the secret on stdout, and nothing else; it is not shown again.
    """
    wanted = parsed(grants)
    with options.connect(address, data) as box:
        made = box.create_token(name, wanted)
        if json_:
            click.echo(as_json({"token": token_dict(made.token), "secret": made.secret}))
            return 0
        click.echo(made.secret)
        click.echo(
            f"the token of {one_line(made.token.name)} ({_grants(made.token)}); it is shown this once. "
            f"Give it to the client as EDGE_TOKEN, with {_where(box)}",
            err=True,
        )
        taken_over = _taken_over(box, made.token)
    if taken_over is not None:
        click.echo(
            f"{one_line(taken_over.name)} was there before, and this client may read its {taken_over.memories:,} "
            f"memories; if it is not the client that wrote them: edge token revoke {one_line(made.token.name)}",
            err=True,
        )
    return 0


@command.command("list")
@options.as_json_too
@options.to_box
def list_(json_: bool, address: str | None, data: Path | None) -> int:
    """All tokens, the revoked too; never their secrets."""
    with options.connect(address, data) as box:
        tokens = box.list_tokens()
    if json_:
        click.echo(as_json({"tokens": [token_dict(token) for token in tokens]}))
        return 0
    if not tokens:
        click.echo("no client has a token yet; `edge pair --show` lets one in")
        return 0
    rows = [
        (
            one_line(token.name),
            one_line(token.id),
            local(token.created_at),
            _moment(token, "last_used_at") or "never",
            f"revoked {_moment(token, 'revoked_at')}" if token.HasField("revoked_at") else _grants(token),
        )
        for token in tokens
    ]
    click.echo(table([("name", "id", "since", "last used", "may"), *rows]))
    return 0


@command.command("revoke")
@click.argument("id_or_name", metavar="ID|NAME")
@options.as_json_too
@options.to_box
def revoke(id_or_name: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Turn a token away from now on, also where it is in use this moment."""
    with options.connect(address, data) as box:
        token = box.revoke_token(id_or_name)
    click.echo(as_json(token_dict(token)) if json_ else f"revoked the token of {one_line(token.name)}")
    return 0


def _where(box: Any) -> str:
    """What its client needs besides. Only what other machines reach has a certificate."""
    from edge.client.address import is_local

    reached: list[str] = []
    with contextlib.suppress(EdgeError):
        reached = [one for one in box.status().addresses if not one.startswith("unix:")]
    if reached and all(map(is_local, reached)):
        return f"EDGE_ADDRESS={one_line(reached[0])}"
    return "EDGE_ADDRESS, and from another machine EDGE_TLS_FINGERPRINT"


def _taken_over(box: Any, token: Any) -> Any:
    """The client's private space if there is one already that it may read: a revoked client of its name left it."""
    home = f"private/{token.name}"
    if not any(grant.space_pattern in ("*", "private/*", home) and _READ in grant.scopes for grant in token.grants):
        return None
    # Who may make tokens need not see the spaces.
    with contextlib.suppress(PermissionDenied):
        return next((space for space in box.list_spaces() if space.name == home), None)
    return None


def parsed(grants: tuple[str, ...]) -> dict[str, list[str]]:
    """Scopes by pattern. Raises InvalidArgument (field "space")."""
    wanted: dict[str, list[str]] = {}
    for grant in grants:
        pattern, colon, listed = grant.partition(":")
        scopes = [scope.strip().lower() for scope in listed.split(",")]
        if not (colon and pattern) or not set(scopes) <= set(_SCOPES):
            raise InvalidArgument(
                f"space: give PATTERN:SCOPES, as in work:read,write; scopes are {', '.join(_SCOPES)}", field="space"
            )
        wanted[pattern] = [*dict.fromkeys([*wanted.get(pattern, []), *scopes])]
    return wanted


def token_dict(token: Any) -> dict[str, Any]:
    """All of a token but its secret; times RFC 3339, None for never."""
    return {
        "id": token.id,
        "name": token.name,
        "grants": [
            {"space": grant.space_pattern, "scopes": [_scope(number) for number in grant.scopes]}
            for grant in token.grants
        ],
        "created_at": rfc3339(token.created_at),
        "last_used_at": rfc3339(token.last_used_at) if token.HasField("last_used_at") else None,
        "revoked_at": rfc3339(token.revoked_at) if token.HasField("revoked_at") else None,
    }


def _scope(number: int) -> str:
    return _SCOPES[number - 1] if 1 <= number <= len(_SCOPES) else str(number)


def _grants(token: Any) -> str:
    return "; ".join(
        f"{one_line(grant.space_pattern)}: {', '.join(map(_scope, grant.scopes))}" for grant in token.grants
    )


def _moment(token: Any, field: str) -> str:
    return local(getattr(token, field)) if token.HasField(field) else ""
