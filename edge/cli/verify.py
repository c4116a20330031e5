"""`edge verify`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json, one_line
from edge.config import data_directory


@click.command("verify")
@options.as_json_too
@options.data
def command(json_: bool, data: Path | None) -> int:
    """Check the data directory against its own checksums, also beside a running box; exit status 1 if it has faults."""
    from edge.upkeep.verify import verify_data

    report = verify_data(data or data_directory())
    if json_:
        click.echo(as_json({"problems": list(report.problems), "counts": dict(report.counts)}))
    else:
        for problem in report.problems:
            click.echo(one_line(problem))
        counts = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
        click.echo(f"{len(report.problems)} problems; {counts}" if report.problems else f"clean: {counts}")
    return 1 if report.problems else 0
