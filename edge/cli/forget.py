"""`edge forget`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from edge.cli import options


@click.command("forget")
@click.argument("ids", nargs=-1, required=True, metavar="ID|URI...")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask, also on a terminal.")
@options.as_json_too
@options.to_box
def command(ids: tuple[str, ...], dry_run: bool, yes: bool, json_: bool, address: str | None, data: Path | None) -> int:
    """Erase memories for good, with the turns they came from: log, words, vectors, snapshots."""
    with options.connect(address, data) as box:
        if not (dry_run or yes or json_) and sys.stdin.isatty():
            would = box.forget(ids, dry_run=True)
            click.confirm(f"Erase {_count(would)} for good?", abort=True)
        receipt = box.forget(ids, dry_run=dry_run)
    from edge.cli.show import as_json, one_line

    if json_:
        click.echo(as_json(receipt_dict(receipt)))
        return 0
    click.echo(f"{'would forget' if dry_run else 'forgot'} {_count(receipt)}, {receipt.vectors} vectors")
    if not dry_run:
        click.echo(
            f"receipt {one_line(receipt.id)}: {receipt.segments_rewritten} log segments rewritten, "
            f"{receipt.snapshots_dropped} snapshots dropped"
        )
    return 0


def receipt_dict(receipt: Any) -> dict[str, Any]:
    """All of a receipt."""
    return {
        "id": receipt.id,
        "dry_run": receipt.dry_run,
        "turns": receipt.turns,
        "memories": receipt.memories,
        "vectors": receipt.vectors,
        "segments_rewritten": receipt.segments_rewritten,
        "snapshots_dropped": receipt.snapshots_dropped,
        "memory_ids": list(receipt.memory_ids),
    }


def _count(receipt: Any) -> str:
    return f"{receipt.memories} memories of {receipt.turns} turns"
