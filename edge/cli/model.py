"""`edge model`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json, one_line, size, table
from edge.config import DEFAULT_MODEL, models_directory
from edge.errors import InvalidArgument


@click.group("model", no_args_is_help=False)
def command() -> None:
    """List, fetch and calibrate embedding models. They live in EDGE_MODELS, else in the user's cache directory."""


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


@command.command("calibrate")
@click.argument("model_id", metavar="[ID]", default=DEFAULT_MODEL)
@click.option(
    "--take", metavar="VARIANT", help="Take this one instead of the best; `stock` goes back to the file as it came."
)
@click.option("--dry-run", is_flag=True, help="Print the table and take none.")
@options.as_json_too
def calibrate(model_id: str, take: str | None, dry_run: bool, json_: bool) -> int:
    """Measure every variant of a model on this device, and take the fastest whose vectors are true.

    Takes a minute or two, best while the box stands still. A variant's vectors are its own: from the box's next start
    on every memory gets a new one in the background, and is found by its words until then.

    mean and worst: how near the vectors are to the full model's (cosine, 1 is the same). in batches: how near a text's
    vector stays to itself whatever shares its batch; where that is not 1, texts are run alone.
    """
    from edge import config
    from edge.cli.calibration import rows, sentence, text_rows
    from edge.embedder import choice, manifest, variants

    if take is not None and take not in (choice.STOCK, *variants.NAMES):
        names = ", ".join((choice.STOCK, *variants.NAMES))
        raise InvalidArgument(f"take: there is no variant {take!r}; there are {names}", field="take")
    model, directory = manifest.load().get(model_id), models_directory()
    before = choice.name(model, directory)
    if take == choice.STOCK and not dry_run:
        choice.go_back(model, directory)
        click.echo(as_json({"model": model_id, "taken": take}) if json_ else sentence(model_id, before, take))
        return 0

    def report(text: str) -> None:
        click.echo(one_line(text), err=True)

    compared = variants.compare(model, directory, config.Embedding(), report)
    for text in compared.left_out:
        report(text)
    wanted = before if dry_run else take or compared.best
    if not dry_run:
        variants.take(compared, wanted, directory)
    if json_:
        click.echo(as_json({"model": model_id, "best": compared.best, "taken": wanted, "variants": rows(compared)}))
    else:
        click.echo(table(text_rows(compared)))
        click.echo(
            f"the best here is {compared.best}; take it with: edge model calibrate --take {compared.best}"
            if dry_run
            else sentence(model_id, before, wanted)
        )
    return 0
