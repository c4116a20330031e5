"""`edge recall`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from edge.cli import options

DEPTHS = ("auto", "auto", "shallow", "deep")


@click.command("recall")
@click.argument("query")
@click.option("--deep", is_flag=True, help="Look further: times that are named, and what was said beside each hit.")
@click.option("--shallow", is_flag=True, help="Search quickly.")
@click.option("--top-k", type=int, metavar="N", help="How many, 1 to 200 (default: 5).")
@options.spaces
@options.selecting
@options.archived
@options.level
@click.option("--context", is_flag=True, help="Print the block for a model's context instead.")
@click.option("--relevant", is_flag=True, help="Show nothing, rather than what is nearest, when nothing bears on it.")
@click.option("--explain", is_flag=True, help="Show the signals of each answer.")
@options.as_json_too
@options.to_box
def command(
    query: str,
    deep: bool,
    shallow: bool,
    top_k: int | None,
    spaces: tuple[str, ...],
    since: str | None,
    until: str | None,
    tags: tuple[str, ...],
    archived: bool,
    level: str,
    context: bool,
    relevant: bool,
    explain: bool,
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Ask what is remembered about QUERY; best first.

    Without --deep or --shallow the box decides: a query that says “remember when” or 回忆一下 is searched deep.
    """
    if deep and shallow:
        raise click.UsageError("--deep and --shallow exclude each other; give one")
    depth = "deep" if deep else "shallow" if shallow else "auto"
    which = options.selection(since, until, tags)
    with options.connect(address, data) as box:
        started = time.perf_counter()
        answer = box.recall(
            query,
            depth=depth,
            top_k=top_k,
            spaces=spaces,
            level=level,
            with_context=context,
            only_relevant=relevant,
            include_archived=archived,
            # A single question needs no stream.
            timeout=30.0,
            **which,
        )
        took = time.perf_counter() - started
    from edge.cli.memories import hit_lines
    from edge.cli.show import as_json, lines, millis, one_line, seconds

    if json_:
        click.echo(as_json(answer_dict(answer, took)))
        return 0
    if context:
        if answer.context:
            click.echo(lines(answer.context))
        return 0
    for rank, hit in enumerate(answer.hits, 1):
        click.echo(hit_lines(rank, hit, explain=explain) + "\n")
    for note in answer.notes:
        click.echo(f"note: {one_line(note)}")
    count = len(answer.hits)
    found = f"{count} {'memory' if count == 1 else 'memories'}" if count else "nothing found"
    asked = f", asked for by “{one_line(answer.trigger)}”" if answer.trigger else ""
    click.echo(
        f"{found} in {millis(took)} ({depth_name(answer)}{asked}; {millis(seconds(answer.timing.total))} in the box)"
    )
    return 0


def depth_name(answer: Any) -> str:
    """The depth that was used."""
    return DEPTHS[answer.depth] if 0 <= answer.depth < len(DEPTHS) else str(answer.depth)


def answer_dict(answer: Any, took: float) -> dict[str, Any]:
    """All of an answer; latency_ms is as the caller saw it, timing_ms as the box did."""
    from edge.cli.memories import hit_dict
    from edge.cli.show import seconds

    return {
        "hits": [hit_dict(hit) for hit in answer.hits],
        "depth": depth_name(answer),
        "trigger": answer.trigger,
        "context": answer.context,
        "spaces": list(answer.spaces),
        "notes": list(answer.notes),
        "latency_ms": round(took * 1000, 3),
        "timing_ms": {
            "total": round(seconds(answer.timing.total) * 1000, 3),
            **{stage.stage: round(seconds(stage.took) * 1000, 3) for stage in answer.timing.stages},
        },
    }
