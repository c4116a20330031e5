"""`edge status --watch`: drawn in place on a terminal, one block after another elsewhere."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from edge.cli.show import as_json
from edge.cli.words import status_dict, status_text
from edge.errors import Unavailable

if TYPE_CHECKING:
    from edge.client import Client


def watching(box: Client, interval: float, json_: bool) -> None:
    """Shows a status every `interval` seconds until Ctrl-C.

    A box that goes away is waited for as long as the client has patience; after that, what the client raises.
    """
    # Ctrl-C is the way to end it, and no failure.
    with contextlib.suppress(KeyboardInterrupt):
        if json_ or not sys.stdout.isatty():
            _in_blocks(box, interval, json_)
        else:
            _in_place(box, interval)


def statuses(box: Client, interval: float, away: Callable[[], None]) -> Iterator[Any]:
    """A status now and at every interval, over the box's restarts; calls `away` when it begins to wait for one."""
    heard = False
    while True:
        try:
            for status in box.watch_status(interval):
                heard = True
                yield status
            return
        except Unavailable:
            if not heard:
                raise
        away()
        heard = False
        # This call is made again and again, for as long as the client has patience.
        yield box.status()


def _in_blocks(box: Client, interval: float, json_: bool) -> None:
    def away() -> None:
        click.echo("edge: the box is away; waiting for it", err=True)

    for status in statuses(box, interval, away):
        click.echo(as_json(status_dict(status)) if json_ else f"{status_text(status)}\n")


def _in_place(box: Client, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from edge.cli.view import View

    console = Console(highlight=False)
    if console.is_dumb_terminal:
        _in_blocks(box, interval, json_=False)
        return
    view = View(console, interval)
    stream = statuses(box, interval, view.away)
    # Without a box the terminal is left alone.
    if (first := next(stream, None)) is None:
        return
    view.take(first, time.monotonic())
    with (
        _terminated_as_interrupted(),
        Live(console=console, screen=True, refresh_per_second=1, get_renderable=view.picture) as live,
    ):
        for status in stream:
            view.take(status, time.monotonic())
            live.refresh()


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM unwinds as Ctrl-C does, so that the terminal gets its cursor and its lines back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
