"""`edge state`."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.errors import InvalidArgument

_WIDTH = 60
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TTL = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhd])")

_space = click.option("--space", default="", metavar="S", help="public, work or private/NAME.")
_expect = click.option(
    "--expect", type=int, metavar="N", help="Only if it is at this revision; 0: only if there is none."
)


@click.group("state", no_args_is_help=False)
def command() -> None:
    """Keep the state of a task, so that an interrupted agent resumes."""


@command.command("put")
@click.argument("key")
@click.argument("value")
@click.option("--parse", is_flag=True, help="VALUE is JSON: keep what it says, not its text.")
@click.option("--ttl", metavar="T", help="Gone after this long: 90s, 30m, 12h or 7d.")
@_expect
@_space
@options.as_json_too
@options.to_box
def put(
    key: str,
    value: str,
    parse: bool,
    ttl: str | None,
    expect: int | None,
    space: str,
    json_: bool,
    address: str | None,
    data: Path | None,
) -> int:
    """Keep VALUE (- reads it from stdin) under KEY, in place of what is there."""
    if value == "-":
        value = sys.stdin.buffer.read().decode("utf-8", "replace")
    content = _parsed(value) if parse else value
    lifetime = None if ttl is None else _lifetime(ttl)
    with options.connect(address, data) as box:
        state = box.put_state(key, content, space=space, expected_revision=expect, ttl=lifetime)
    from edge.cli.show import as_json, one_line

    told = f"kept {one_line(state.key)} in {one_line(state.space)}, revision {state.revision}"
    if _plain(state.value) != _plain(content):
        told += "; what looked like a secret in it was hidden, `edge state get` shows what is kept"
    click.echo(as_json(state_dict(state)) if json_ else told)
    return 0


@command.command("get")
@click.argument("key")
@_space
@options.as_json_too
@options.to_box
def get(key: str, space: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Print what KEY holds: a text as it is, anything else as JSON."""
    with options.connect(address, data) as box:
        state = box.get_state(key, space=space)
    from edge.cli.show import as_json, lines

    if json_:
        click.echo(as_json(state_dict(state)))
    else:
        click.echo(lines(state.value) if isinstance(state.value, str) else as_json(_plain(state.value)))
    return 0


@command.command("ls")
@click.argument("prefix", default="")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@_space
@options.as_json_too
@options.to_box
def ls(prefix: str, limit: int, space: str, json_: bool, address: str | None, data: Path | None) -> int:
    """List the states whose key begins with PREFIX, by key."""
    with options.connect(address, data) as box:
        states = list(itertools.islice(box.list_states(prefix, space=space, page_size=min(limit, 1000)), limit))
    from edge.cli.show import as_json, local, one_line

    if json_:
        click.echo(as_json({"states": [state_dict(state) for state in states]}))
        return 0
    for state in states:
        value = one_line(state.value if isinstance(state.value, str) else as_json(_plain(state.value)))
        value = value if len(value) <= _WIDTH else value[: _WIDTH - 1] + "…"
        until = f"  until {local(state.expires_at)}" if state.expires_at is not None else ""
        click.echo(f"{one_line(state.key)}  {state.revision}  {local(state.updated_at)}{until}  {value}")
    return 0


@command.command("rm")
@click.argument("key")
@_expect
@_space
@options.as_json_too
@options.to_box
def rm(key: str, expect: int | None, space: str, json_: bool, address: str | None, data: Path | None) -> int:
    """Erase KEY and what it holds, for good."""
    with options.connect(address, data) as box:
        box.delete_state(key, space=space, expected_revision=expect)
    from edge.cli.show import as_json, one_line

    click.echo(as_json({"deleted": key}) if json_ else f"erased {one_line(key)}")
    return 0


def state_dict(state: Any) -> dict[str, Any]:
    """All of a state; times RFC 3339, None for never."""
    from edge.cli.show import rfc3339

    return {
        "space": state.space,
        "key": state.key,
        "value": _plain(state.value),
        "revision": state.revision,
        "updated_at": rfc3339(state.updated_at),
        "expires_at": None if state.expires_at is None else rfc3339(state.expires_at),
    }


def _plain(value: Any) -> Any:
    """As JSON can hold it: bytes as {"base64": …}, what is no finite number by its name."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value


def _parsed(text: str) -> Any:
    """Raises InvalidArgument (field "value")."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"value: is not JSON ({error}); leave --parse out for a text", field="value") from None


def _lifetime(text: str) -> timedelta:
    """Raises InvalidArgument (field "ttl")."""
    found = _TTL.fullmatch(text)
    if found is None:
        raise InvalidArgument("ttl: give a number and its unit: 90s, 30m, 12h or 7d", field="ttl")
    return timedelta(**{_UNITS[found[2]]: float(found[1])})
