"""`edge archive`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options


@click.command("archive")
@click.argument("ids", nargs=-1, required=True, metavar="ID|URI...")
@click.option("--restore", is_flag=True, help="Bring them back from the archive instead.")
@options.as_json_too
@options.to_box
def command(ids: tuple[str, ...], restore: bool, json_: bool, address: str | None, data: Path | None) -> int:
    """Put memories away: out of normal recalls and lists, and nothing is erased.

    `edge recall --archived` and `edge ls --archived` show them, and a deep recall that finds too little looks there.
    What you put away stays there until you bring it back.
    """
    with options.connect(address, data) as box:
        moved = box.archive(list(ids), restore=restore)
    from edge.cli.memories import tell_reviewed

    done, why_not = (
        ("brought back", "it is not in the archive, was rejected or replaced, or is not here")
        if restore
        else ("archived", "it is archived already, was rejected or replaced, or is not here")
    )
    tell_reviewed(moved, done, why_not, json_)
    return 0
