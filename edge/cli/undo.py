"""`edge undo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.errors import InvalidArgument

_SAID = "said"
_FORGETS = "This erases it, for good unless forgetting.grace_seconds leaves time"


@click.command("undo")
@click.argument("event", default="", metavar="[EVENT]")
@click.option("--list", "list_", is_flag=True, help="Only show what was done, and what of it can be undone.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="With --list: how many.")
@click.option("--mine", is_flag=True, help="With --list: only what you did.")
@click.option("--dry-run", is_flag=True, help="Only say what would be undone.")
@click.option("--yes", is_flag=True, help="Do not ask, also on a terminal.")
@click.option(
    "--receipt",
    "receipt_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the receipt of what is erased by it here, for `edge verify --erased`.",
)
@options.spaces
@options.as_json_too
@options.to_box
def command(
    event: str,
    list_: bool,
    limit: int,
    mine: bool,
    dry_run: bool,
    yes: bool,
    receipt_file: Path | None,
    spaces: tuple[str, ...],
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Take back what was done: EVENT of --list, a memory's id for what was handed in, or alone your own last deed.

    What was handed in is forgotten by that, for good where the box leaves no time to undo it.
    """
    with options.connect(address, data) as box:
        if list_:
            _show(box.deeds(spaces=spaces, limit=limit, mine=mine), json_)
            return 0
        if not (dry_run or yes or json_):
            which = "that deed" if event else "the last deed"
            would = box.undo(event, dry_run=True)
            # What is shown is what is undone, whatever is done meanwhile.
            event = would.undone.id
            if sys.stdin.isatty():
                told = f"Undo “{_words(would.undone)}”?"
                click.confirm(f"{told} {_FORGETS}." if would.undone.why == _SAID else told, abort=True)
            elif would.undone.why == _SAID:
                raise InvalidArgument(
                    f"yes: {which} was “{_words(would.undone)}”. {_FORGETS}; say --yes to do it", field="yes"
                )
        done = box.undo(event, dry_run=dry_run)
    from edge.cli.forget import left, receipt_dict
    from edge.cli.show import as_json, one_line

    receipt = receipt_dict(done.receipt) if done.HasField("receipt") else None
    if receipt is not None and receipt_file is not None:
        receipt_file.write_text(as_json(receipt) + "\n", "utf-8")
    if json_:
        undone = {"event_id": done.event_id, "dry_run": dry_run, "undone": deed_dict(done.undone), "receipt": receipt}
        click.echo(as_json(undone))
        return left(done.receipt)
    click.echo(f"{'would undo' if dry_run else 'undone'}: {_words(done.undone)}")
    if receipt is not None and receipt["erases_at"] is None:
        click.echo(f"erased for good; receipt {one_line(receipt['id'])}")
    elif done.event_id:
        click.echo(f"to have it again: edge undo {one_line(done.event_id)}")
    return left(done.receipt)


def _show(deeds: Any, json_: bool) -> None:
    from edge.cli.show import as_json, local, one_line

    if json_:
        click.echo(as_json({"deeds": [deed_dict(deed) for deed in deeds]}))
        return
    for deed in deeds:
        state = f"  (cannot be undone: {one_line(deed.obstacle)})" if deed.obstacle else ""
        click.echo(f"{one_line(deed.id)}  {local(deed.at)}  {one_line(deed.by) or '-'}  {_words(deed)}{state}")
    if not deeds:
        click.echo("nothing was done here yet", err=True)


def _words(deed: Any) -> str:
    from edge.cli.show import one_line

    return one_line(f"{deed.description}: {deed.abstract}" if deed.abstract else deed.description)


def deed_dict(deed: Any) -> dict[str, Any]:
    """All of it; its memories' ids up to the hundred that the box gives."""
    from edge.cli.show import rfc3339

    return {
        "id": deed.id,
        "space": deed.space,
        "at": rfc3339(deed.at),
        "by": deed.by,
        "why": deed.why,
        "description": deed.description,
        "memories": deed.memories,
        "memory_ids": list(deed.memory_ids),
        "abstract": deed.abstract,
        "undoes": deed.undoes,
        "undone_by": deed.undone_by,
        "obstacle": deed.obstacle,
    }
