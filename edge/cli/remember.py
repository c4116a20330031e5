"""`edge remember`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from edge.cli import options


@click.command("remember")
@click.argument("text")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Repeatable.")
@click.option("--weight", type=float, metavar="W", help="0 to 10; 5 unless you say, 1 is ordinary.")
@click.option("--space", default="", metavar="S", help="public, work or private/NAME.")
@click.option("--kind", default="", metavar="K", help="note, unless you name another.")
@options.as_json_too
@options.to_box
def command(
    text: str,
    tags: tuple[str, ...],
    weight: float | None,
    space: str,
    kind: str,
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Keep TEXT (- reads it from stdin), confirmed at once. Returns when it can be found."""
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    with options.connect(address, data) as box:
        memories = box.remember(text, tags=tags, weight=weight, space=space, kind=kind)
    from edge.cli.memories import memory_dict
    from edge.cli.show import as_json, one_line
    from edge.cli.words import classes

    if json_:
        click.echo(as_json({"memories": [memory_dict(memory) for memory in memories], "hidden": memories.hidden}))
    else:
        for memory in memories:
            click.echo(f"remembered {one_line(memory.uri)}")
        if memories.hidden:
            click.echo(f"hidden: {one_line(classes(memories.hidden))}")
    return 0
