"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from edge.client import Client

_F = TypeVar("_F", bound=Callable[..., Any])

data = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Data directory (default: EDGE_DATA, else the user's).",
)
as_json_too = click.option("--json", "json_", is_flag=True, help="Print JSON.")
level = click.option(
    "--level", type=click.Choice(["abstract", "overview", "detail"]), default="detail", help="How much of each memory."
)
spaces = click.option("--space", "spaces", multiple=True, metavar="S", help="public, work or private/NAME; repeatable.")


_FINGERPRINT = "edge.cli.options.tls_fingerprint"


def to_box(command: _F) -> _F:
    """--address and --data as parameters, --tls-fingerprint behind them; for `connect`."""
    address = click.option(
        "--address", metavar="A", help="host:port, unix:PATH, or a paired box's name or id (default: EDGE_ADDRESS)."
    )
    fingerprint = click.option(
        "--tls-fingerprint",
        metavar="HEX",
        expose_value=False,
        callback=_keep,
        help="SHA-256 of the box's certificate, for one that is not paired (default: EDGE_TLS_FINGERPRINT).",
    )
    return address(fingerprint(data(command)))


def _keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001  # click's signature
    ctx.meta[_FINGERPRINT] = value


def selecting(command: _F) -> _F:
    """--since, --until, --tag: see `selection`."""
    since = click.option("--since", metavar="T", help="Not before this date, or RFC 3339 time.")
    until = click.option("--until", metavar="T", help="Before this date, or RFC 3339 time.")
    tag = click.option("--tag", "tags", multiple=True, metavar="T", help="With this tag; repeatable: with all of them.")
    return since(until(tag(command)))


def selection(since: str | None, until: str | None, tags: tuple[str, ...]) -> dict[str, Any]:
    """The client's keywords. Raises InvalidArgument that names the option."""
    from edge.cli.times import moment

    found: dict[str, Any] = {"tags": tags}
    if since is not None:
        found["since"] = moment(since, "since")
    if until is not None:
        found["until"] = moment(until, "until")
    return found


def connect(address: str | None, data: Path | None, **options: Any) -> Client:
    """The client of the box that the options name."""
    from edge.client import Client

    return Client.connect(address, data=data, tls_fingerprint=given_fingerprint(), **options)


def given_fingerprint() -> str | None:
    """What --tls-fingerprint said, of a command that has `to_box`."""
    context = click.get_current_context(silent=True)
    found: str | None = context.meta.get(_FINGERPRINT) if context is not None else None
    return found
