"""`edge discover`."""

from __future__ import annotations

from typing import Any

import click

from edge.cli import options
from edge.cli.show import as_json, one_line, table

_NOTHING = (
    "no box found: is it on, started with --lan, and on this network? Guest networks and VPNs often keep machines "
    "apart; if its address is known, use it: edge pair ADDRESS"
)


@click.command("discover")
@click.option("--seconds", type=click.FloatRange(0.1, 600), default=3.0, show_default=True, help="How long to listen.")
@options.as_json_too
def command(seconds: float, json_: bool) -> int:
    """List the boxes on this network, as they describe themselves.

    What a box says is proven only by pairing. PAIRED is yes when this machine has a box of that id and certificate.
    """
    from edge.client import Client
    from edge.client.certificate import joined
    from edge.client.store import PairingStore

    found = Client.discover(seconds)
    store = PairingStore()
    if json_:
        boxes = [
            {
                "name": box.name,
                "id": box.id,
                "addresses": [joined(host, box.port) for host in box.addresses],
                "version": box.version,
                "api": box.api,
                "tls": box.tls,
                "fingerprint": box.fingerprint,
                "paired": paired(box, store) == "yes",
                "problem": box.problem or (paired(box, store) if paired(box, store) not in ("yes", "no") else ""),
            }
            for box in found
        ]
        click.echo(as_json({"boxes": boxes}))
        return 0
    if not found:
        click.echo(_NOTHING)
        return 0
    rows = [
        (box.name, joined(box.addresses[0], box.port), box.version or "?", paired(box, store), box.problem)
        for box in found
    ]
    heads = ("name", "address", "version", "paired", "")
    click.echo(table([heads, *(tuple(one_line(cell) for cell in row) for row in rows)]))
    return 0


def paired(box: Any, store: Any) -> str:
    """yes, no, or why it is not the box that it says it is: its id is another's, whose certificate is known here."""
    if not box.id or box.id not in store.ids():
        return "no"
    # An id is the beginning of the fingerprint, so it takes no more than the announced one to see the difference.
    return "yes" if box.fingerprint.startswith(box.id) else "no: announces another certificate"
