"""`edge ingest`."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edge.cli import options
from edge.cli.show import as_json, counted, one_line
from edge.cli.words import classes, counts

if TYPE_CHECKING:
    from edge.cli.lines import Line

# Rejected lines that the JSON summary lists; stderr has them all.
_LISTED = 1000


@click.command("ingest")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option(
    "--wait",
    type=click.Choice(["searchable", "stored"]),
    default="searchable",
    show_default=True,
    help="Until every turn can be found, or until the log has it.",
)
@options.as_json_too
@options.to_box
def command(files: tuple[str, ...], wait: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Stream turns in from files of JSON lines (- is stdin).

    Fields: text; source, session, seq, role, occurred_at (RFC 3339), tags, attributes, space. What is missing: seq is
    the line's number, session one of the file's own (of its path and first line; each stdin is another), source "cli",
    role "user", occurred_at the box's clock. May be run again after a break: what is there already is recognised. A
    turn of the same source, session and seq with another text takes the older one's place. Exit status 1 if a line was
    rejected.
    """
    # All of them, before the first is sent.
    for name in files:
        if name != "-" and not Path(name).exists():
            raise click.BadParameter(f"there is no file {name}", param_hint="FILE")
        if Path(name).is_dir():
            raise click.BadParameter(f"{name} is a folder; name the files in it", param_hint="FILE")
    total = sum(Path(name).stat().st_size for name in files if name != "-") if "-" not in files else None
    tally = Tally()
    started = time.monotonic()
    with _progress(total) as (advance, complain), options.connect(address, data) as box:
        tally.complain = complain
        on_their_way: deque[Line] = deque()
        for result in box.ingest(_turns(files, on_their_way, tally), wait=wait):
            line = on_their_way.popleft()
            tally.count(line, result)
            advance(line.bytes, tally.turns)
    took = time.monotonic() - started
    summary = {"turns": tally.turns, "states": dict(tally.states), "seconds": round(took, 3)}
    if json_:
        more = {"filtered": tally.rules, "hidden": tally.hidden, "words_only": tally.words_only}
        click.echo(as_json({**summary, **more, "rejected": tally.rejected}))
    else:
        states = ", ".join(f"{count:,} {state}" for state, count in tally.states.items()) or "nothing"
        pace = f"in {took:.1f} s ({tally.turns / max(took, 1e-9):.0f} turns/s)"
        click.echo(f"{counted(tally.turns, 'turn', 'turns')}: {states}, {pace}")
        if tally.rules:
            click.echo(f"filtered: {one_line(counts(tally.rules))}")
        if tally.hidden:
            click.echo(f"hidden: {one_line(classes(tally.hidden))}")
        if tally.words_only:
            click.echo(f"{tally.words_only:,} of them, or a part, by words only: {one_line(tally.why)}")
        if wait == "searchable" and tally.states["stored"]:
            click.echo("the connection broke in between: the box makes the stored ones searchable by itself")
    return 1 if tally.states["rejected"] else 0


class Tally:
    """What became of the lines, by state."""

    def __init__(self) -> None:
        self.turns = 0
        self.states: Counter[str] = Counter()
        # Of those that were filtered, by the rule; and the secrets that were taken out of the others, by class.
        self.rules: Counter[str] = Counter()
        self.hidden: Counter[str] = Counter()
        self.rejected: list[dict[str, str]] = []
        # Searchable ones with something that has no vector, and why the last of them.
        self.words_only = 0
        self.why = ""
        self.complain: Callable[[str], None] = lambda _: None

    def count(self, line: Line, result: Any) -> None:
        """A turn that was sent."""
        self.turns += 1
        if result.state.name == "REJECTED":
            self.refuse(line, result.error)
        else:
            self.states[result.state.name.lower()] += 1
            self.hidden.update(result.hidden)
            if result.state.name == "FILTERED":
                self.rules[result.rule or "unknown rule"] += 1
            if result.state.name == "SEARCHABLE" and result.error is not None:
                self.words_only += 1
                self.why = result.error.message

    def refuse(self, line: Line, error: Any) -> None:
        """A line that did not become a memory; `error` names the field."""
        self.states["rejected"] += 1
        if len(self.rejected) < _LISTED:
            self.rejected.append({"where": line.where, "field": error.field, "message": error.message})
        self.complain(f"{line.where}: {error.message}")


def _turns(files: tuple[str, ...], on_their_way: deque[Line], tally: Tally) -> Iterator[Any]:
    from edge.cli.lines import file_session, read

    for name in files:
        with contextlib.ExitStack() as stack:
            if name == "-":
                stream: Any = sys.stdin.buffer
                where, session = "stdin", f"stdin-{uuid.uuid4()}"
            else:
                stream = stack.enter_context(Path(name).open("rb"))
                where, session = name, file_session(Path(name))
            for line in read(stream, where, session):
                if line.error is not None:
                    tally.turns += 1
                    tally.refuse(line, line.error)
                    continue
                on_their_way.append(line)
                yield line.turn


@contextlib.contextmanager
def _progress(total: int | None) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """(advance by bytes, with the count of turns; complain), as a bar on a terminal, plainly elsewhere."""
    if not sys.stderr.isatty():
        yield (lambda _bytes, _turns: None), (lambda message: click.echo(one_line(message), err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[turns]} turns"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total, turns=0)
        yield (
            lambda count, turns: progress.update(task, advance=count, turns=f"{turns:,}"),
            lambda message: progress.console.print(one_line(message), markup=False, highlight=False),
        )
