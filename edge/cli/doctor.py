"""`edge doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from edge.cli import options
from edge.cli.show import as_json, one_line
from edge.config import data_directory, load


@click.command("doctor")
@options.as_json_too
@options.data
def command(json_: bool, data: Path | None) -> int:
    """Check what the box needs on this machine; exit status 1 if something is wrong."""
    from edge.upkeep.doctor import examine

    directory = data or data_directory()
    embedding = load(directory / "config.toml").embedding
    findings = examine(directory, [model for model in (embedding.model, embedding.second) if model])
    if json_:
        found = [{"ok": finding.ok, "what": finding.what, "next_step": finding.next_step} for finding in findings]
        click.echo(as_json({"ok": all(finding.ok for finding in findings), "findings": found}))
    else:
        for finding in findings:
            click.echo(f"{'ok   ' if finding.ok else 'WRONG'} {one_line(finding.what)}")
            if finding.next_step:
                click.echo(f"      {one_line(finding.next_step)}")
    return 0 if all(finding.ok for finding in findings) else 1
