"""`edge candidates`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.errors import InvalidArgument

_limit = click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")


@click.group("candidates", invoke_without_command=True, no_args_is_help=False)
@click.pass_context
def command(ctx: click.Context) -> int:
    """What was proposed to be remembered, for you to confirm or reject; alone, it lists them."""
    return int(ctx.invoke(list_)) if ctx.invoked_subcommand is None else 0


@command.command("list")
@_limit
@options.spaces
@options.as_json_too
@options.to_box
def list_(
    limit: int = 100,
    spaces: tuple[str, ...] = (),
    json_: bool = False,
    address: str | None = None,
    data: Path | None = None,
) -> int:
    """Newest first."""
    with options.connect(address, data) as box:
        level = "detail" if json_ else "abstract"
        # One more, to know whether there are more.
        found = list(
            itertools.islice(box.candidates(spaces=spaces, level=level, page_size=min(limit + 1, 1000)), limit + 1)
        )
    from edge.cli.memories import memory_dict
    from edge.cli.show import as_json, local, one_line

    if json_:
        click.echo(as_json({"candidates": [memory_dict(memory) for memory in found[:limit]]}))
        return 0
    for memory in found[:limit]:
        where = f"{local(memory.occurred_at)}  {one_line(memory.source)}"
        click.echo(f"{one_line(memory.id)}  {where}  {one_line(memory.text)}")
    if len(found) > limit:
        click.echo(f"and more; --limit {10 * limit} shows them", err=True)
    elif not found:
        click.echo("no candidates: nothing waits for you to decide", err=True)
    return 0


def _verdict(name: str, done: str, words: str) -> None:
    @command.command(name, help=words)
    @click.argument("ids", nargs=-1, metavar="ID|URI...")
    @click.option("--all", "all_", is_flag=True, help="All there are; asks first, or needs --yes.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @options.spaces
    @options.as_json_too
    @options.to_box
    def decide(
        ids: tuple[str, ...],
        all_: bool,
        yes: bool,
        spaces: tuple[str, ...],
        json_: bool,
        address: str | None,
        data: Path | None,
    ) -> int:
        if bool(ids) == all_:
            raise InvalidArgument(f"ids: name the candidates to {name}, or --all", field="ids")
        with options.connect(address, data) as box:
            if all_:
                ids = tuple(memory.id for memory in box.candidates(spaces=spaces, level="abstract"))
                if ids and not yes:
                    _ask(name, len(ids))
            verdict: Callable[[Any], Any] = getattr(box, name)
            reviewed = verdict(ids[0] if len(ids) == 1 and not all_ else list(ids))
        from edge.cli.memories import tell_reviewed

        tell_reviewed(reviewed, done, "it is no candidate (any more)", json_)
        return 0


def _ask(name: str, count: int) -> None:
    """See options.ask."""
    from edge.cli.show import counted

    what = counted(count, "candidate", "candidates")
    options.ask(f"{name.capitalize()} {what}?", f"this would {name} {what}; say --yes to do it")


_verdict("confirm", "confirmed", "Keep these: they are known from now on.")
_verdict("reject", "rejected", "Turn these down: out of recalls and lists.")
