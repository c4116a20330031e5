"""`edge status`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json
from edge.cli.words import status_dict, status_text


@click.command("status")
@click.option("--watch", is_flag=True, help="Go on, with small graphs on a terminal, until Ctrl-C.")
@click.option(
    "--interval", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Seconds, with --watch."
)
@options.as_json_too
@options.to_box
def command(watch: bool, interval: float, json_: bool, address: str | None, data: Path | None) -> int:
    """How the box is: its model, queue, heat, memory, spaces and warnings."""
    with options.connect(address, data) as box:
        if watch:
            from edge.cli.watch import watching

            watching(box, interval, json_)
        else:
            status = box.status()
            click.echo(as_json(status_dict(status)) if json_ else status_text(status))
    return 0
