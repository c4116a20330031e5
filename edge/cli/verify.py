"""`edge verify`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json, counted, one_line
from edge.config import data_directory
from edge.errors import InvalidArgument


@click.command("verify")
@click.option(
    "--erased",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="RECEIPT",
    help="Prove that what this receipt of `edge forget` is about is gone.",
)
@click.option(
    "--backup",
    "backups",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="With --erased: a copy of the data directory to look into, too; repeatable.",
)
@options.as_json_too
@options.data
def command(erased: Path | None, backups: tuple[Path, ...], json_: bool, data: Path | None) -> int:
    """Check the data directory against its own checksums, also beside a running box; exit status 1 if it has faults.

    With --erased: look for what was forgotten in every log, table and snapshot instead; exit status 1 if it is there.
    """
    from edge.upkeep.erased import prove
    from edge.upkeep.verify import verify_data

    if backups and erased is None:
        raise InvalidArgument("backup: goes with --erased RECEIPT; alone, give the copy as --data", field="backup")
    directory = data or data_directory()
    report = prove(directory, erased, backups) if erased is not None else verify_data(directory)
    if json_:
        click.echo(as_json({"problems": list(report.problems), "counts": dict(report.counts)}))
    else:
        for problem in report.problems:
            click.echo(one_line(problem))
        counts = ", ".join(_counted(count, name) for name, count in report.counts.items())
        clean = "erased: nothing of the receipt is in" if erased is not None else "clean:"
        problems = len(report.problems)
        click.echo(f"{_counted(problems, 'problems')}; {counts}" if problems else f"{clean} {counts}")
    return 1 if report.problems else 0


def _counted(count: int, plural: str) -> str:
    """The number with its noun, of which the plural is known: 1 space, 2 damaged lines."""
    many = plural.replace("_", " ")
    return counted(count, many[:-3] + "y" if many.endswith("ies") else many.removesuffix("s"), many)
