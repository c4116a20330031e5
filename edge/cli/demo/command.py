"""`edge demo`."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

import click

from edge.cli.memories import hit_dict, hit_lines
from edge.cli.recall import depth_name
from edge.cli.show import as_json, millis, one_line, seconds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from edge.client import Client

_DAY = 86_400 * 1_000_000
# An expected memory must be among this many.
_TOP = 5
# Without a terminal a line of progress is printed this often, in turns.
_EVERY = 100


@click.command("demo")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
def command(json_: bool) -> int:
    """Store and recall a conversation of 84 days, in a box of its own that is gone afterwards.

    Exit status 0 only if every expected memory came back among the first five.
    """
    from edge.cli.demo.box import running
    from edge.client import Client

    say = (lambda _: None) if json_ else click.echo
    folder = resources.files("edge.cli.demo")
    turns = [json.loads(line) for line in (folder / "conversation.jsonl").read_text("utf-8").splitlines() if line]
    questions = tomllib.loads((folder / "questions.toml").read_text("utf-8"))["question"]
    say("Starting a box on a temporary folder …")
    with running() as box:
        say(f"It listens on {box.address}.\n")
        now = time.time_ns() // 1000
        with Client.connect(box.address) as client:
            ingested = _tell(client, turns, now, quiet=json_)
            answers = [_ask(client, question, now, say) for question in questions]
        status = box.stop()
    found = sum(answer["found"] for answer in answers)
    say(f"{found} of {len(answers)} questions brought the expected memory back. The box stopped with status {status}.")
    good = found == len(answers) and status == 0 and ingested["found"] == len(turns)
    if json_:
        click.echo(as_json({"ok": good, "ingest": ingested, "answers": answers, "box_status": status}))
    return 0 if good else 1


def _tell(client: Client, turns: list[dict[str, Any]], now: int, *, quiet: bool) -> dict[str, Any]:
    """Streams the conversation in, and waits until all of it can be found."""
    live = sys.stdout.isatty() and not quiet
    started = time.monotonic()
    done = searchable = 0
    for result in client.ingest(_dated(turns, now), wait="searchable"):
        done += 1
        searchable += result.state.name == "SEARCHABLE"
        if result.error is not None and not quiet:
            click.echo(f"turn {result.position}: {one_line(result.error.message)}")
        if quiet or not (live or done % _EVERY == 0 or done == len(turns)):
            continue
        took = max(time.monotonic() - started, 1e-9)
        line = f"{done:>4} of {len(turns)} turns stored and searchable, {done / took:.0f} turns/s"
        click.echo(f"\r{line}" if live else line, nl=not live or done == len(turns))
    took = time.monotonic() - started
    if not quiet:
        click.echo(f"84 days of talk in {took:.1f} s.\n")
    return {"turns": done, "found": searchable, "seconds": round(took, 3)}


def _dated(turns: list[dict[str, Any]], now: int) -> Iterator[dict[str, Any]]:
    for turn in turns:
        fields = dict(turn)
        fields["occurred_at"] = now - round(fields.pop("days_ago") * _DAY)
        yield fields


def _ask(client: Client, question: dict[str, Any], now: int, say: Any) -> dict[str, Any]:
    window = {
        name: now - round(question[key] * _DAY)
        for name, key in (("since", "since_days"), ("until", "until_days"))
        if key in question
    }
    started = time.perf_counter()
    answer = client.recall(question["query"], depth=question["depth"], top_k=_TOP, **window)
    took = time.perf_counter() - started
    rank = next(
        (
            rank
            for rank, hit in enumerate(answer.hits, 1)
            if all(part in hit.memory.text for part in question["expect"])
        ),
        None,
    )
    say(f"? {question['query']}")
    when = f", from {question['since_days']} to {question['until_days']} days ago" if len(window) == 2 else ""
    say(f"  {question['note']}{when}")
    verdict = f"✓ expected memory at rank {rank}" if rank else "✗ the expected memory did not come back"
    say(f"  {verdict} · {depth_name(answer)} · {millis(took)} ({millis(seconds(answer.timing.total))} in the box)")
    # The expected one, and the best.
    shown = deque(dict.fromkeys([*([rank] if rank else []), 1]))
    for place in sorted(shown):
        if place <= len(answer.hits):
            say(hit_lines(place, answer.hits[place - 1], explain=True))
    say("")
    return {
        "query": question["query"],
        "depth": depth_name(answer),
        "found": rank is not None,
        "rank": rank,
        "latency_ms": round(took * 1000, 3),
        "hits": [hit_dict(hit) for hit in answer.hits],
    }
