"""`edge get`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.uri import SCHEME, Place, get, parse


@click.command("get")
@click.argument("id_", metavar="ID|URI")
@options.level
@options.as_json_too
@options.to_box
def command(id_: str, level: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Show one memory, by its id or its edge:// URI."""
    place = parse(id_, "id") if id_.startswith(SCHEME) else Place(id=id_)
    with options.connect(address, data) as box:
        memory = get(box, place, level, "id")
    from edge.cli.memories import memory_dict, memory_lines
    from edge.cli.show import as_json

    click.echo(as_json(memory_dict(memory)) if json_ else memory_lines(memory))
    return 0
