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


def to_box(command: _F) -> _F:
    """--address and --data, for `connect`."""
    address = click.option("--address", metavar="A", help="host:port or unix:PATH (default: EDGE_ADDRESS).")
    return address(data(command))


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

    return Client.connect(address, data=data, **options)
