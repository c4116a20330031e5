"""`edge connect`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli import options
from edge.cli.connecting.assistants import ASSISTANTS, SCOPES
from edge.errors import InvalidArgument

if TYPE_CHECKING:
    from edge.cli.connecting.change import Change


@click.command("connect")
@click.argument("assistant", metavar="ASSISTANT", type=click.Choice(list(ASSISTANTS)))
@click.option(
    "--scope", type=click.Choice(SCOPES), default="user", show_default=True, help="Everywhere, or in this folder."
)
@click.option("--print", "print_", is_flag=True, help="Only print what belongs into its configuration.")
@click.option("--remove", is_flag=True, help="Take it out again, and leave the rest as it is.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.to_box
def command(
    assistant: str,
    scope: str,
    print_: bool,
    remove: bool,
    dry_run: bool,
    yes: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Give ASSISTANT the memory: adds `edge mcp` to its MCP servers, or takes it out again.

    Shows the change and asks first, keeps a copy of the file beside it, and leaves everything else of it as it is.
    """
    from edge.cli.connecting.change import plan, plan_removal, snippet

    about = ASSISTANTS[assistant]
    path = about.path(scope, os.environ)
    if remove:
        if print_:
            raise InvalidArgument("print: goes with what is to be added; leave --print or --remove out", field="print")
        removal = plan_removal(about, path)
        if removal is None:
            click.echo(f"{assistant} does not have the memory; {path} is as it should be")
        elif (kept := _changed(removal, dry_run, yes)) is not None:
            click.echo(
                f"taken out.{kept} {assistant} is without it from its next start; what it wrote stays in the box: see "
                "`edge undo --list`."
            )
        return 0
    entry = about.entry([*_edge(), "mcp", *_where(address, data)])
    if print_:
        click.echo(snippet(about, entry))
        click.echo(f"this belongs into {path}", err=True)
        return 0
    change = plan(about, path, entry)
    if not change.needed:
        click.echo(f"{assistant} has the memory already; {path} is as it should be")
        return 0
    kept = _changed(change, dry_run, yes)
    if kept is None:
        return 0
    click.echo(f"written.{kept} Now {about.restart}; `edge status` tells whether the box is there.")
    if os.environ.get("EDGE_TOKEN"):
        click.echo(
            "EDGE_TOKEN was not written there: pair this machine with `edge pair`, or set it for the assistant",
            err=True,
        )
    return 0


def _changed(change: Change, dry_run: bool, yes: bool) -> str | None:
    """Shows it, asks and writes it: where the old file is, in words; None for --dry-run."""
    click.echo(f"{'to be written' if change.before is None else 'to be changed'}: {change.path}\n{change.shown()}")
    if dry_run:
        click.echo("nothing was changed")
        return None
    if not yes:
        options.ask("Write it?", "say --yes to write it; nothing was changed")
    backup = change.write()
    return f" What was there is in {backup.name}." if backup is not None else ""


def _edge() -> list[str]:
    """How this very `edge` is started, whatever the assistant's PATH is."""
    beside = Path(sys.executable).parent / "edge"
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "edge.cli"]


def _where(address: str | None, data: Path | None) -> list[str]:
    """Which box is meant here and now: the assistant does not have this shell's variables."""
    address = address or (None if data else os.environ.get("EDGE_ADDRESS"))
    if address:
        words = ["--address", address]
    elif data or os.environ.get("EDGE_DATA"):
        words = ["--data", str(Path(data or os.environ["EDGE_DATA"]).absolute())]
    else:
        words = []
    fingerprint = options.given_fingerprint() or os.environ.get("EDGE_TLS_FINGERPRINT")
    return [*words, "--tls-fingerprint", fingerprint] if fingerprint else words
