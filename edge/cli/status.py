"""`edge status`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.cli.show import as_json, local, one_line, rfc3339, seconds, size, table


@click.command("status")
@click.option("--watch", is_flag=True, help="Print it again and again, until Ctrl-C.")
@click.option(
    "--interval", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Seconds, with --watch."
)
@options.as_json_too
@options.to_box
def command(watch: bool, interval: float, json_: bool, address: str | None, data: Path | None) -> int:
    """How the box is: its model, queue, spaces and warnings."""
    with options.connect(address, data) as box:
        for status in box.watch_status(interval) if watch else [box.status()]:
            click.echo(as_json(status_dict(status)) if json_ else status_text(status) + ("\n" if watch else ""))
    return 0


def status_dict(status: Any) -> dict[str, Any]:
    """All of a status; times RFC 3339, durations in seconds, sizes in bytes."""
    return {
        "version": status.version,
        "started_at": rfc3339(status.started_at),
        "now": rfc3339(status.now),
        "ready": status.ready,
        "read_only": status.read_only,
        "model": {
            "id": status.model.id,
            "dimension": status.model.dimension,
            "device": status.model.device,
            "workers": status.model.workers,
            "bytes": status.model.bytes,
        },
        "queue": {
            "recalls": status.queue.recalls,
            "ingests": status.queue.ingests,
            "ingest_tokens": status.queue.ingest_tokens,
            "estimated_drain_seconds": seconds(status.queue.estimated_drain),
            "tokens_per_second": status.queue.tokens_per_second,
        },
        "spaces": [
            {
                "name": space.name,
                "turns": space.turns,
                "memories": space.memories,
                "vectors": space.vectors,
                "pending": space.pending,
                "log_bytes": space.log_bytes,
                "log_segments": space.log_segments,
                "index_size": space.index_size,
                "index_overlay": space.index_overlay,
                "index_deleted": space.index_deleted,
                "rebuilding": space.rebuilding,
                "damaged_lines": space.damaged_lines,
            }
            for space in status.spaces
        ],
        "resident_bytes": status.resident_bytes,
        "addresses": list(status.addresses),
        "data_directory": status.data_directory,
        "warnings": list(status.warnings),
        "streams": status.streams,
    }


def status_text(status: Any) -> str:
    """The same for a reader."""
    model, queue = status.model, status.queue
    state = "ready" if status.ready else "not ready"
    rows = [
        ("box", f"{state}, version {status.version}, since {local(status.started_at)}"),
        ("at", ", ".join(status.addresses)),
        ("data", status.data_directory),
        ("model", f"{model.id} ({model.dimension} dimensions, {size(model.bytes)}), {model.workers} x {model.device}"),
        (
            "queue",
            f"{queue.recalls} recalls, {queue.ingests} to embed ({seconds(queue.estimated_drain):.1f} s), "
            f"{queue.tokens_per_second:.0f} tokens/s",
        ),
        ("memory", f"{size(status.resident_bytes)} resident, {status.streams} streams open"),
        ("read-only", status.read_only),
        *[("warning", warning) for warning in status.warnings],
    ]
    text = "\n".join(f"{name:<10}{one_line(value)}" for name, value in rows if value)
    if not status.spaces:
        return text
    heads = ("space", "turns", "memories", "vectors", "pending", "log", "segments", "overlay", "deleted", "")
    return f"{text}\n\n" + table([heads, *map(_space_row, status.spaces)])


def _space_row(space: Any) -> tuple[str, ...]:
    remarks = ["rebuilding"] if space.rebuilding else []
    if space.damaged_lines:
        remarks.append(f"{space.damaged_lines} damaged lines: see `edge verify`")
    return (
        one_line(space.name),
        f"{space.turns:,}",
        f"{space.memories:,}",
        f"{space.vectors:,}",
        f"{space.pending:,}",
        size(space.log_bytes),
        f"{space.log_segments:,}",
        f"{space.index_overlay:,}",
        f"{space.index_deleted:,}",
        ", ".join(remarks),
    )
