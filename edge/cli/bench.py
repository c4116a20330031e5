"""`edge bench`."""

from __future__ import annotations

from pathlib import Path
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


@command.command("mcp")
@click.option("--memories", type=click.IntRange(200), default=2000, show_default=True, help="How many to search.")
@options.as_json_too
def _mcp(memories: int, json_: bool) -> int:
    """The tools of an assistant: what they add, and what they cost it."""
    from edge.cli.benches import mcp

    return _show(mcp.run(memories, _say), json_)


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


@command.command("quality")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option("--noise", metavar="DIR", type=click.Path(path_type=Path), help="A set whose memories join every pool.")
@click.option("--model", metavar="ID", help="Embedding model, as in `edge model list` (default: the box's).")
@click.option("--second-model", "second", metavar="ID", help="One that runs beside it.")
@click.option("--methods", metavar="A,B", help="Only these (default: all).")
@click.option("--categories", is_flag=True, help="Print each category too.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Ask a sample of N questions a set.")
@click.option("--ablate", is_flag=True, help="Also the default without each signal.")
@options.as_json_too
def _quality(
    folders: tuple[Path, ...],
    noise: Path | None,
    model: str | None,
    second: str | None,
    methods: str | None,
    categories: bool,
    limit: int | None,
    ablate: bool,
    json_: bool,
) -> int:
    """Whether the right memories come back.

    Each DIR is a set: memories.jsonl has {id, session, role, ts, text} a line; queries.jsonl has {id, scope, text,
    relevant, category} a line, `scope` a session or "all", and `relevant` the ids of memories that answer.
    """
    from edge.cli.benches import machine, quality, quality_report

    chosen = quality.methods_of(methods)
    sets, extra = quality.load_sets(folders, noise)
    sets = [one.limited(limit, quality.SEED) for one in sets]
    about = machine.describe()
    with quality.models(model, second) as embedders:
        found = quality.measure(sets, extra, embedders, _say, methods=chosen, ablate=ablate)
    made = quality_report.result(found, {**about, "models": [one.info.id for one in embedders]})
    click.echo(as_json(made.as_dict()) if json_ else quality_report.text(found, made, categories))
    return 0


def _say(line: str) -> None:
    """What is being done goes to stderr, so that stdout is the result alone."""
    click.echo(line, err=True)


def _show(result: Result, json_: bool) -> int:
    click.echo(as_json(result.as_dict()) if json_ else table(result.rows()))
    return 0
