"""`edge mcp`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from edge.cli import options

_HTTP = "127.0.0.1:7431"
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command("mcp")
@click.option(
    "--http",
    is_flag=False,
    flag_value=_HTTP,
    metavar="[HOST:PORT]",
    help=f"Serve streamable HTTP there instead of stdio ({_HTTP} unless you say).",
)
@click.option("--tls-cert", type=_FILE, help="PEM; for other machines to reach it.")
@click.option("--tls-key", type=_FILE, help="PEM; the certificate's key.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A name that it is reached by; repeatable.")
@options.to_box
def command(
    http: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    hosts: tuple[str, ...],
    address: str | None,
    data: Path | None,
) -> int:
    """Give an assistant the memory as MCP tools, over stdin and stdout. `edge connect` sets that up.

    It needs no model, and the box may be away: what is to be kept waits on this machine. On another address than
    loopback, every request needs a token of the box and TLS.
    """
    # Before anything else is imported, which might print.
    source, sink = (-1, -1) if http else _claim()
    if not http and os.isatty(source):
        click.echo("this speaks to an assistant, not to a terminal; `edge connect` sets one up", err=True)
    import asyncio

    from edge.gateway.identity import Where

    where = Where(_redacted, address, data, options.given_fingerprint())
    if http:
        from edge.gateway.http import run

        return run(where, http, hosts, tls_cert, tls_key, lambda line: click.echo(line))
    from edge.gateway.process import run_stdio

    asyncio.run(run_stdio(where, source, sink))
    return 0


def _claim() -> tuple[int, int]:
    """Stdin and stdout for the protocol alone: in their places are nothing, and stderr."""
    # Whichever of the three is closed gets nothing too, so that none of what is opened later stands in for it.
    while (nothing := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return source, sink


def _redacted(text: str) -> str:
    """With the rules that every box has; its owner's own ones follow when it is delivered."""
    from edge.admission.redact import Redactor

    return Redactor().redact(text).text
