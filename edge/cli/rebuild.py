"""`edge rebuild`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json
from edge.config import data_directory, load
from edge.errors import Unavailable


@click.command("rebuild")
@click.option("--index", "scope", flag_value="index", help="The index, from the stored vectors (the default).")
@click.option("--from-log", "scope", flag_value="log", help="Everything, from the log.")
@options.as_json_too
@options.to_box
def command(scope: str | None, json_: bool, address: str | None, data: Path | None) -> int:
    """Make the views of the log anew: in the running box, or directly when none runs on the data directory."""
    started = time.monotonic()
    directory = data or data_directory()
    named = address or (None if data else os.environ.get("EDGE_ADDRESS"))
    try:
        # Not whatever box has the default port: this directory's, or the one that was named.
        with options.connect(named, directory) as box:
            answer = box.rebuild(scope or "index")
        memories, vectors = answer.memories, answer.vectors
    except Unavailable as error:
        # A box that was named must be there; and one that answered is there, whatever ails it.
        if named or error.reason != "UNREACHABLE":
            raise
        from edge.appliance import rebuild

        counts = rebuild(directory, scope == "log", load(directory / "config.toml"))
        memories, vectors = counts.memories, counts.vectors
    took = time.monotonic() - started
    if json_:
        click.echo(as_json({"memories": memories, "vectors": vectors, "seconds": round(took, 3)}))
    else:
        follow = "" if vectors >= memories else "; the other vectors are being made, see `edge status`"
        click.echo(f"rebuilt: {memories:,} memories, {vectors:,} vectors, in {took:.1f} s{follow}")
    return 0
