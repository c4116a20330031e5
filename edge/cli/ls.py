"""`edge ls`."""

from __future__ import annotations

import itertools
from pathlib import Path

import click

from edge.cli import options
from edge.cli.uri import get, parse


@click.command("ls")
@click.argument("uri", default="")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@options.selecting
@options.archived
@click.option(
    "--level",
    type=click.Choice(["abstract", "overview", "detail"]),
    help="How much of each memory (default: abstract; with --json detail).",
)
@options.as_json_too
@options.to_box
def command(
    uri: str,
    limit: int,
    since: str | None,
    until: str | None,
    tags: tuple[str, ...],
    archived: bool,
    level: str | None,
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """List memories, newest first; URI narrows: edge://SPACE, edge://SPACE/KIND or edge://SPACE/KIND/ID."""
    place = parse(uri, "uri")
    which = {**options.selection(since, until, tags), **place.selection()}
    level = level or ("detail" if json_ else "abstract")
    with options.connect(address, data) as box:
        if place.id:
            memories = [get(box, place, level, "uri")]
        else:
            which["include_archived"] = archived
            # Not kept by a name: a page that is left open is closed while its client is there.
            memories = list(itertools.islice(box.list(level=level, page_size=min(limit, 1000), **which), limit))
    from edge.cli.memories import away, memory_dict
    from edge.cli.show import as_json, local, one_line

    if json_:
        click.echo(as_json({"memories": [memory_dict(memory) for memory in memories]}))
        return 0
    for memory in memories:
        text = one_line(memory.text)
        where = f"{local(memory.occurred_at)}  {one_line(memory.source)}{away(memory)}"
        click.echo(f"{one_line(memory.id)}  {where}  {text}")
    if not memories:
        click.echo("nothing here; `edge ls` alone lists all that you may read", err=True)
    return 0
