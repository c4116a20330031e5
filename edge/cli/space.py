"""`edge space`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.cli.show import as_json, counted, local, one_line, rfc3339, size, table
from edge.errors import NotFound


@click.group("space", no_args_is_help=False)
def command() -> None:
    """List, make and delete spaces: public, work and private/NAME. Nothing crosses from one to another."""


@command.command("list")
@options.as_json_too
@options.to_box
def list_(json_: bool, address: str | None, data: Path | None) -> int:
    """Those that the token may read."""
    with options.connect(address, data) as box:
        spaces = box.list_spaces()
    if json_:
        click.echo(as_json({"spaces": [space_dict(space) for space in spaces]}))
        return 0
    rows = [(one_line(s.name), f"{s.memories:,}", size(s.bytes), _since(s)) for s in spaces]
    click.echo(table([("space", "memories", "on disk", "since"), *rows]))
    return 0


@command.command("create")
@click.argument("name")
@options.as_json_too
@options.to_box
def create(name: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Make a space; one that is there already is fine."""
    with options.connect(address, data) as box:
        space = box.create_space(name)
    click.echo(as_json(space_dict(space)) if json_ else f"{one_line(space.name)} is there")
    return 0


@command.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.as_json_too
@options.to_box
def delete(name: str, yes: bool, json_: bool, address: str | None, data: Path | None) -> int:
    """Erase a space for good, with every memory in it: log, words, vectors, snapshots."""
    with options.connect(address, data) as box:
        space = next((one for one in box.list_spaces() if one.name == name), None)
        if space is None and not yes:
            raise NotFound("name: there is no such space, or the token may not read it; see `edge space list`")
        if not yes:
            options.ask(
                f"Erase {one_line(name)} for good, with {_content(space)}?",
                "deleting asks first, and nobody is there to answer; add --yes",
                err=True,
            )
        box.delete_space(name)
    gone = None if space is None else space_dict(space)
    click.echo(
        as_json({"deleted": name, "space": gone})
        if json_
        else f"erased {one_line(name)}" + (f" with {_content(space)}" if space is not None else "")
    )
    return 0


def space_dict(space: Any) -> dict[str, Any]:
    """All of a space; sizes in bytes, times RFC 3339, None when not known."""
    return {
        "name": space.name,
        "created_at": rfc3339(space.created_at) if space.HasField("created_at") else None,
        "memories": space.memories,
        "bytes": space.bytes,
    }


def _content(space: Any) -> str:
    return f"its {counted(space.memories, 'memory', 'memories')} ({size(space.bytes)})"


def _since(space: Any) -> str:
    # A day is all that is known.
    return local(space.created_at).partition(" ")[0] if space.HasField("created_at") else "?"
