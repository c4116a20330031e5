"""`edge model`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json, one_line, size, table
from edge.config import DEFAULT_MODEL, models_directory


@click.group("model", no_args_is_help=False)
def command() -> None:
    """List and fetch embedding models. They live in EDGE_MODELS, else in the user's cache directory."""


@command.command("list")
@options.as_json_too
def list_(json_: bool) -> int:
    """Every model this version knows, and which are here."""
    from edge.embedder import store

    rows = store.listing(models_directory())
    if json_:
        click.echo(as_json({"directory": str(models_directory()), "models": rows}))
        return 0
    heads = ("model", "here", "kind", "dimension", "size", "licence", "")
    cells = [
        (
            str(row["id"]),
            "yes" if row["installed"] else "-",
            str(row["kind"]),
            str(row["dimension"]),
            size(row["bytes"]) if row["bytes"] else "?",
            str(row["licence"]),
            "default" if row["default"] else "",
        )
        for row in rows
    ]
    click.echo(table([heads, *cells]))
    return 0


@command.command("pull")
@click.argument("model_id", metavar="[ID]", default=DEFAULT_MODEL)
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A file, folder, jar or zip, instead of the network."
)
@options.as_json_too
def pull(model_id: str, source: Path | None, json_: bool) -> int:
    """Fetch a model and check its digest; what is here and right is left alone."""
    from edge.embedder import store

    def report(sentence: str) -> None:
        click.echo(one_line(sentence), err=json_)

    folder = store.pull(model_id, models_directory(), source=source, report=report)
    if json_:
        click.echo(as_json({"model": model_id, "directory": str(folder)}))
    return 0
