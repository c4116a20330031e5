"""`edge pair`."""

from __future__ import annotations

import contextlib
import io
import ipaddress
import sys
from pathlib import Path
from typing import Any

import click

from edge.cli import options
from edge.cli.show import as_json, one_line, table
from edge.config import data_directory
from edge.errors import EdgeError, FailedPrecondition, InvalidArgument, NotFound

_LOOK_SECONDS = 3.0


@click.command("pair")
@click.argument("box", default="", metavar="[NAME|ADDRESS]")
@click.option("--code", metavar="C", help="The code that the box shows (default: asks for it).")
@click.option("--name", metavar="CLIENT", help="This machine's name for the box (default: its host name).")
@click.option("--show", is_flag=True, help="On the box itself: show a new code.")
@click.option("--again", metavar="CLIENT", help="With --show: the client of this name may pair anew.")
@click.option("--forget", is_flag=True, help="Forget the paired box of this name or id.")
@options.data
@options.as_json_too
def command(
    box: str,
    code: str | None,
    name: str | None,
    show: bool,
    again: str | None,
    forget: bool,
    data: Path | None,
    json_: bool,
) -> int:
    """Trust a box, and be trusted by it, by a one-time code.

    On the box: `edge pair --show` gives the code. Here: `edge pair` finds the box, asks for the code, and keeps the
    box's certificate and a token; from then on this machine's commands reach the box by themselves.
    """
    if show + forget > 1 or (show and (box or code or name)) or (forget and (code or name)):
        raise InvalidArgument("pair: --show, --forget and pairing itself go one at a time", field="pair")
    if again is not None and not show:
        raise InvalidArgument("again: goes with --show, on the box", field="again")
    if data is not None and not show:
        raise InvalidArgument("data: goes with --show, on the box", field="data")
    if show:
        return _show(data, again or "", json_)
    if forget:
        return _forget(box, json_)
    return _pair(box, code, name, json_)


def _show(data: Path | None, again: str, json_: bool) -> int:
    from edge.client.pairing import new_code
    from edge.client.synchronous import run

    shown = run(new_code(data=data, again=again))
    if json_:
        said = {
            "code": shown.code,
            "lives_seconds": shown.lives,
            "fingerprint": shown.fingerprint,
            "words": shown.words,
            "uri": shown.uri,
        }
        click.echo(as_json(said))
        return 0
    whose = f"{one_line(again)}, once more" if again else "one client"
    click.echo(f"code         {one_line(shown.code)}   good for {shown.lives / 60:.0f} minutes, for {whose}")
    click.echo(f"words        {one_line(shown.words)}")
    click.echo(f"fingerprint  {one_line(shown.fingerprint)}")
    if sys.stdout.isatty():
        click.echo(_qr(shown.uri))
    click.echo("on the other machine: edge pair")
    return 0


def _qr(uri: str) -> str:
    import segno

    drawn = io.StringIO()
    segno.make(uri, error="l", micro=False).terminal(drawn, compact=True, border=2)
    return drawn.getvalue().rstrip("\n")


def _forget(box: str, json_: bool) -> int:
    from edge.client.store import PairingStore

    if not box:
        raise InvalidArgument("box: name the paired box to forget, or give its id", field="box")
    PairingStore().forget(box)
    click.echo(
        as_json({"forgotten": box})
        if json_
        else f"forgot {one_line(box)}; the box still knows this machine's token: `edge token revoke` there ends that"
    )
    return 0


def _pair(box: str, code: str | None, name: str | None, json_: bool) -> int:
    from edge.client.pairing import own_name, pair
    from edge.client.synchronous import run

    seen, code_of_uri = _meet(box)
    code = code or code_of_uri
    _check_not_own(seen)
    if not code and not name and (known := _paired_already(seen)) is not None:
        said = {"id": known.id, "name": known.name, "client": known.client, "address": seen.address, "already": True}
        sentence = f"this machine is paired with {one_line(known.name)} already, as {known.client}"
        click.echo(as_json(said) if json_ else f"{sentence}: nothing more is needed")
        return 0
    if not code:
        # On stderr: stdout has the result, and may be read by a program.
        click.echo(
            f"the box at {one_line(seen.address)} has the words: {seen.words}; `edge pair --show` there shows the same",
            err=True,
        )
        if not sys.stdin.isatty():
            raise InvalidArgument("code: nobody is here to type it; give it by --code", field="code")
        code = click.prompt("code that `edge pair --show` shows on the box", err=True)
    done = run(pair(seen, str(code), name or own_name()))
    if json_:
        said = {
            "id": done.id,
            "name": done.name,
            "client": done.client,
            "address": seen.address,
            "fingerprint": done.digest.hex(),
            "words": seen.words,
        }
        click.echo(as_json(said))
        return 0
    click.echo(f"paired with {one_line(done.name)} at {one_line(seen.address)}, as {done.client}")
    click.echo(f"its words: {seen.words}")
    return 0


def _check_not_own(seen: Any) -> None:
    """Raises FailedPrecondition when the box that was met is this machine's own."""
    from edge.client.certificate import digest_of

    path = data_directory() / "identity" / "certificate.pem"
    with contextlib.suppress(OSError, InvalidArgument):
        if digest_of(path.read_bytes()) == seen.digest:
            raise FailedPrecondition(
                "this machine is that box: its commands go by the socket and need no pairing; pair on another machine"
            )


def _paired_already(seen: Any) -> Any:
    """What is kept of an earlier pairing with this box, if its token is still good."""
    from edge.client import Client
    from edge.client.store import PairingStore

    known = PairingStore().get(seen.id)
    if known is None:
        return None
    try:
        with Client.connect(known.id, token="") as box:
            box.status()
    except EdgeError:
        return None
    return known


def _meet(box: str) -> tuple[Any, str]:
    """The machine that is meant, with the certificate that it shows, and the code if it came along."""
    from edge.client.address import whole
    from edge.client.pairing import SCHEME, look, read_uri
    from edge.client.store import box_id
    from edge.client.synchronous import run

    if box.startswith(f"{SCHEME}:"):
        code, fingerprint = read_uri(box)
        return run(look(_places(_choose(box_id(bytes.fromhex(fingerprint)))), fingerprint)), code
    if _is_address(box):
        return run(look([whole(box)])), ""
    found = _choose(box)
    # An id is the beginning of the fingerprint: the one of these that has the certificate for it is the box.
    return run(look(_places(found), found[0].id or found[0].fingerprint)), ""


def _places(found: list[Any]) -> list[str]:
    from edge.client.certificate import joined

    return list(dict.fromkeys(joined(host, box.port) for box in found for host in box.addresses))


def _is_address(box: str) -> bool:
    """No box is published under a name with a full stop in it; names with a colon are met by their id."""
    try:
        ipaddress.ip_address(box.strip("[]").partition("%")[0])
    except ValueError:
        return "." in box or box.rpartition(":")[2].isdecimal() or box == "localhost"
    return True


def _choose(wanted: str) -> list[Any]:
    """The box of this name or id among those that mDNS finds; of several without a name, the one that is picked.

    Two that say one id are one choice: which of them has the id's certificate is seen when they are looked at.
    """
    from edge.client import Client

    by_id: dict[Any, list[Any]] = {}
    for box in Client.discover(_LOOK_SECONDS):
        by_id.setdefault(box.id or box, []).append(box)
    found = [boxes for boxes in by_id.values() if any(not wanted or wanted in (box.name, box.id) for box in boxes)]
    if not found:
        raise NotFound(
            ("no box of this name or id was found" if wanted else "no box was found")
            + "; `edge discover` lists those that are there; if its address is known, use it: edge pair ADDRESS"
        )
    if len(found) == 1:
        return found[0]
    rows = [
        (str(number), one_line(box.name), one_line(box.addresses[0]), one_line(box.id))
        for number, (box, *_) in enumerate(found, 1)
    ]
    listing = table([("", "name", "address", "id"), *rows])
    if not sys.stdin.isatty():
        names = ", ".join(f"{one_line(box.name)} ({one_line(box.id)})" for box, *_ in found)
        raise InvalidArgument(f"box: several were found; say which, by its id: {names}", field="box")
    click.echo(listing, err=True)
    number = click.prompt("which", type=click.IntRange(1, len(found)), err=True)
    return found[number - 1]
