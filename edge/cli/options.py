"""Options that commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edge.config import DEFAULT_PORT
from edge.errors import EdgeError, InvalidArgument

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
archived = click.option("--archived", is_flag=True, help="Also what is in the archive, or was rejected.")

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


@contextmanager
def connect(address: str | None, data: Path | None, **options: Any) -> Iterator[Client]:
    """The client of the box that the options name. What fails names the folder whose box was meant and does not run."""
    from edge.client import Client

    with Client.connect(address, data=data, tls_fingerprint=given_fingerprint(), **options) as box:
        try:
            yield box
        except EdgeError as error:
            error.message = _placed(error, box.address, address, data)
            raise


def _placed(error: EdgeError, asked: str, address: str | None, data: Path | None) -> str:
    """The message, with where the box was looked for if that is not where it was named."""
    gone = error.reason == "UNREACHABLE"
    if data is not None and not address:
        return f"no box runs on {data}; start it with `edge serve --data {data}`" if gone else error.message
    folder = os.environ.get("EDGE_DATA")
    if address or os.environ.get("EDGE_ADDRESS") or not folder or asked != f"127.0.0.1:{DEFAULT_PORT}":
        return error.message
    if gone:
        return f"no box runs on {folder} (EDGE_DATA), and none answers at {asked}; start it with `edge serve`"
    return f"{error.message} (this is from {asked}: no box runs on {folder} (EDGE_DATA); `edge serve` starts that one)"


def ask(question: str, otherwise: str, *, err: bool = False) -> None:
    """Aborts unless the user says yes. Raises InvalidArgument (field "yes") with `otherwise` where nobody is there."""
    if not sys.stdin.isatty():
        raise InvalidArgument(f"yes: {otherwise}", field="yes")
    click.confirm(question, abort=True, err=err)


def given_fingerprint() -> str | None:
    """What --tls-fingerprint said, of a command that has `to_box`."""
    context = click.get_current_context(silent=True)
    found: str | None = context.meta.get(_FINGERPRINT) if context is not None else None
    return found
