"""`edge bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from edge.cli import options
from edge.cli.show import as_json, table

if TYPE_CHECKING:
    from edge.cli.benches.result import Result


@click.group("bench", no_args_is_help=False)
def command() -> None:
    """Measure the box, each figure beside its ceiling, in a box of the bench's own. Takes minutes, and all cores.

    Exit status 0 whether or not the targets are met; benchmarks/README.md says how to read the figures.
    """


@command.command("ingest")
@click.option(
    "--turns", type=click.IntRange(100), default=2000, show_default=True, help="How many, of 10 to 400 characters."
)
@click.option("--long", is_flag=True, help="Also 20,000 short turns, for the memory.")
@options.as_json_too
def _ingest(turns: int, long: bool, json_: bool) -> int:
    """Turns a second, acknowledgements, memory."""
    from edge.cli.benches import ingest

    return _show(ingest.run(turns, long, _say), json_)


@command.command("recall")
@click.option("--memories", type=click.IntRange(200), default=10_000, show_default=True, help="How many to search.")
@options.as_json_too
def _recall(memories: int, json_: bool) -> int:
    """Answers, idle and while the box is busy."""
    from edge.cli.benches import recall

    return _show(recall.run(memories, _say), json_)


@command.command("rebuild")
@click.option("--vectors", type=click.IntRange(1000), default=100_000, show_default=True, help="How many in the index.")
@options.as_json_too
def _rebuild(vectors: int, json_: bool) -> int:
    """The index: from its snapshot, and anew."""
    from edge.cli.benches import rebuild

    return _show(rebuild.run(vectors, _say), json_)


@command.command("governor")
@click.option(
    "--hours", type=click.FloatRange(0.1, 100), default=2.0, show_default=True, help="Simulated, after one to warm up."
)
@click.option(
    "--vary", type=click.FloatRange(0, 50), default=0.0, show_default=True, help="Percent by which devices are off."
)
@click.option("--seed", type=click.IntRange(0), default=20260701, show_default=True, help="Of devices and neighbours.")
@options.as_json_too
def _governor(hours: float, vary: float, seed: int, json_: bool) -> int:
    """Heat and memory, in simulated devices; needs no model."""
    from edge.cli.benches import governor

    return _show(governor.run(hours, vary / 100, seed, _say), json_)


def _say(line: str) -> None:
    """What is being done goes to stderr, so that stdout is the result alone."""
    click.echo(line, err=True)


def _show(result: Result, json_: bool) -> int:
    click.echo(as_json(result.as_dict()) if json_ else table(result.rows()))
    return 0
