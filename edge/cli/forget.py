"""`edge forget`."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edge.cli import options
from edge.cli.uri import SCHEME, parse
from edge.errors import InvalidArgument

if TYPE_CHECKING:
    from edge.client import Client

# Memories that are shown before they go, and hits of a query that go at most.
_SHOWN = 10
_HITS = 200


@click.command("forget")
@click.argument("ids", nargs=-1, metavar="[ID|URI...]")
@options.selecting
@click.option("--source", "sources", multiple=True, metavar="S", help="Of this source; repeatable.")
@click.option("--session", "sessions", multiple=True, metavar="S", help="Of this session; repeatable.")
@click.option("--kind", "kinds", multiple=True, metavar="K", help="Of this kind; repeatable.")
@options.spaces
@click.option("--query", metavar="TEXT", help="What bears on this; shows it first, and needs --yes or your word.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--now", is_flag=True, help="Leave no time to undo it; alone: erase all that is only hidden so far.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--receipt",
    "receipt_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the receipt here, for `edge verify --erased`.",
)
@options.as_json_too
@options.to_box
def command(
    ids: tuple[str, ...],
    since: str | None,
    until: str | None,
    tags: tuple[str, ...],
    sources: tuple[str, ...],
    sessions: tuple[str, ...],
    kinds: tuple[str, ...],
    spaces: tuple[str, ...],
    query: str | None,
    dry_run: bool,
    now: bool,
    yes: bool,
    receipt_file: Path | None,
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Erase memories for good, with the turns they came from: log, words, vectors, snapshots.

    By ids and URIs, by a selection (edge://SPACE/KIND is one too), or by a query. What a memory had taken the place of
    goes with it. A selection or a query is shown first, and needs --yes where nobody can be asked.
    """
    which: dict[str, Any] = {
        **options.selection(since, until, tags), "sources": sources, "sessions": sessions, "kinds": kinds,
    }  # fmt: skip
    which = {name: value for name, value in which.items() if value != ()}
    ids, place = _places(ids)
    if place and (set(place) & set(which) or spaces):
        raise InvalidArgument("ids: the URI names a space or a kind already; leave --space or --kind out", field="ids")
    spaces, which = place.pop("spaces", spaces), {**which, **place}
    ways = [bool(ids), bool(which or (spaces and not ids and query is None)), query is not None]
    if sum(ways) > 1 or not (any(ways) or now):
        raise InvalidArgument("ids: give ids, or a selection such as --tag, or --query: one of them", field="ids")
    with options.connect(address, data) as box:
        chosen = dict(which)
        if query is not None:
            ids = _hits(box, query, spaces)
            if not ids:
                click.echo("nothing bears on this query; nothing was forgotten", err=True)
                return 0
        elif which:
            _show(list(itertools.islice(box.list(spaces=spaces, level="abstract", page_size=_SHOWN, **which), _SHOWN)))
        must_ask = query is not None or bool(which)
        if not (dry_run or yes) and (must_ask or (sys.stdin.isatty() and not json_)):
            _ask(box, ids, spaces, chosen, now)
        receipt = box.forget(ids, spaces=spaces, dry_run=dry_run, now=now, **chosen)
    _tell(receipt, json_, receipt_file)
    return left(receipt)


def _places(ids: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The ids, and the selection of a URI that ends before one."""
    for at, uri in enumerate(ids):
        place = parse(uri, f"ids[{at}]") if uri.startswith(SCHEME) else None
        if place is not None and not place.id:
            if len(ids) > 1:
                raise InvalidArgument(f"ids[{at}]: names a whole space or kind; give it alone", field=f"ids[{at}]")
            return (), place.selection()
    return ids, {}


def _hits(box: Client, query: str, spaces: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of what bears on the query, shown beforehand."""
    answer = box.recall(
        query, spaces=spaces, depth="shallow", top_k=_HITS, level="abstract", only_relevant=True, include_archived=True
    )
    memories = [hit.memory for hit in answer.hits if hit.relevance >= 1]
    _show(memories)
    return tuple(memory.uri for memory in memories)


def _show(memories: list[Any]) -> None:
    from edge.cli.show import local, one_line

    for memory in memories[:_SHOWN]:
        click.echo(f"{one_line(memory.id)}  {local(memory.occurred_at)}  {one_line(memory.text)}", err=True)
    if len(memories) > _SHOWN:
        click.echo(f"and {len(memories) - _SHOWN} more", err=True)


def _ask(box: Client, ids: tuple[str, ...], spaces: tuple[str, ...], which: dict[str, Any], now: bool) -> None:
    """Aborts unless the user says yes. Raises InvalidArgument where nobody can be asked."""
    what = "all that is only hidden so far"
    if ids or which:
        what = _count(box.forget(ids, spaces=spaces, dry_run=True, now=now, **which))
    options.ask(f"Erase {what} for good?", f"this would erase {what}; say --yes to do it")


def _tell(receipt: Any, json_: bool, file: Path | None) -> None:
    from edge.cli.show import as_json, counted, local, one_line

    told = as_json(receipt_dict(receipt))
    if file is not None and not receipt.dry_run:
        file.write_text(told + "\n", "utf-8")
    if json_:
        click.echo(told)
        return
    if not receipt.id and not receipt.dry_run:
        click.echo("nothing that you may forget was there; nothing was changed")
        return
    verb = "would forget" if receipt.dry_run else "forgot"
    click.echo(f"{verb} {_count(receipt)}, {counted(receipt.vectors, 'vector', 'vectors')}")
    if receipt.HasField("erased_at"):
        click.echo(f"hidden, and erased for good at {local(receipt.erased_at)}; until then: edge undo {receipt.id}")
    elif not receipt.dry_run:
        click.echo(
            f"receipt {one_line(receipt.id)}: {receipt.segments_rewritten} log segments rewritten, "
            f"{receipt.snapshots_dropped} snapshots dropped"
        )


def left(receipt: Any) -> int:
    """The exit status of a forget: 1, and what to do, where a damaged file may still have some of it."""
    from edge.cli.show import one_line

    if not receipt.unfinished:
        return 0
    click.echo(f"edge: {one_line(receipt.unfinished)}", err=True)
    return 1


def receipt_dict(receipt: Any) -> dict[str, Any]:
    """All of a receipt; times RFC 3339."""
    from edge.cli.show import rfc3339

    return {
        "id": receipt.id,
        "dry_run": receipt.dry_run,
        "turns": receipt.turns,
        "memories": receipt.memories,
        "vectors": receipt.vectors,
        "words": receipt.words,
        "candidates": receipt.candidates,
        "revisions": receipt.revisions,
        "segments_rewritten": receipt.segments_rewritten,
        "snapshots_dropped": receipt.snapshots_dropped,
        "memory_ids": list(receipt.memory_ids),
        "marks": list(receipt.marks),
        # While it is only hidden: until when it can be undone.
        "erases_at": rfc3339(receipt.erased_at) if receipt.HasField("erased_at") else None,
        # Which damaged file may still have some of it, and what to do.
        "unfinished": receipt.unfinished,
    }


def _count(receipt: Any) -> str:
    from edge.cli.show import counted

    return f"{counted(receipt.memories, 'memory', 'memories')} of {counted(receipt.turns, 'turn', 'turns')}"
