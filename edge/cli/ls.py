"""`edge ls`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.errors import InvalidArgument

_WIDTH = 100


@click.command("ls")
@click.argument("uri", default="")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@options.selecting
@options.as_json_too
@options.to_box
def command(
    uri: str,
    limit: int,
    since: str | None,
    until: str | None,
    tags: tuple[str, ...],
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """List memories, newest first; URI narrows: edge://SPACE, edge://SPACE/KIND or edge://SPACE/KIND/ID."""
    which = {**options.selection(since, until, tags), **narrowing(uri)}
    id_ = which.pop("id", "")
    with options.connect(address, data) as box:
        if id_:
            memories = [box.get(uri)]
        else:
            memories = list(itertools.islice(box.list(page_size=min(limit, 1000), **which), limit))
    from edge.cli.memories import memory_dict
    from edge.cli.show import as_json, local, one_line

    if json_:
        click.echo(as_json({"memories": [memory_dict(memory) for memory in memories]}))
        return 0
    for memory in memories:
        text = one_line(memory.text)
        text = text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
        click.echo(f"{one_line(memory.id)}  {local(memory.occurred_at)}  {one_line(memory.source)}  {text}")
    return 0


def narrowing(uri: str) -> dict[str, Any]:
    """The client's keywords for a URI's beginning. Raises InvalidArgument (field "uri")."""
    parts = [part for part in uri.removeprefix("edge://").split("/") if part]
    if not parts:
        return {}
    # A private space's name has two parts.
    width = 2 if parts[0] == "private" else 1
    if len(parts) < width or len(parts) > width + 2:
        raise InvalidArgument(
            "uri: use edge://public, edge://work or edge://private/NAME, then /KIND, then /ID", field="uri"
        )
    found: dict[str, Any] = {"spaces": ["/".join(parts[:width])]}
    if len(parts) > width:
        found["kinds"] = [parts[width]]
    if len(parts) > width + 1:
        found["id"] = parts[width + 1]
    return found
