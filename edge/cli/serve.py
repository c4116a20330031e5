"""`edge serve`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from edge.cli import options
from edge.config import data_directory, load


@click.command("serve")
@options.data
@click.option("--listen", multiple=True, metavar="A", help="host:port; repeatable (default: 127.0.0.1:7430).")
@click.option("--lan", is_flag=True, help="Serve the local network too: TLS, tokens, found by mDNS.")
@click.option("--no-auth", is_flag=True, help="Ask no token; for loopback addresses only.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    envvar="EDGE_CONFIG",
    help="TOML file (default: EDGE_CONFIG, else config.toml in the data directory).",
)
@click.option("--model", metavar="ID", help="Embedding model, as in `edge model list`.")
@click.option("--second-model", metavar="ID", help="Another beside it, for the texts of its language.")
def command(
    data: Path | None,
    listen: tuple[str, ...],
    lan: bool,
    no_auth: bool,
    config: Path | None,
    model: str | None,
    second_model: str | None,
) -> int:
    """Run a box in the foreground until SIGTERM or Ctrl-C.

    Prints `ready ADDRESS …` when it can serve. Always listens on the socket in the data directory too, which asks
    its owner no token.
    """
    directory = data or data_directory()
    settings = load(config or directory / "config.toml")
    embedding = settings.embedding
    embedding = dataclasses.replace(
        embedding,
        model=embedding.model if model is None else model,
        second=embedding.second if second_model is None else second_model,
    )
    settings = dataclasses.replace(settings, embedding=embedding)
    from edge.appliance import serve

    return serve(directory, list(listen), lan, no_auth, settings)
