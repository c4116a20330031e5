"""Where the box is, when nobody says, and what it is known by."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edge.client.certificate import joined, parts, read_fingerprint
from edge.client.store import PairedBox, PairingStore
from edge.config import DEFAULT_PORT, data_directory
from edge.errors import InvalidArgument

_SOCKET = "edge.sock"
_LOOPBACK = f"127.0.0.1:{DEFAULT_PORT}"
# This machine answers at once, or is too busy to be the box that is meant.
_KNOCK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Target:
    """Which box is meant. One of `address` and `box` is given, or both."""

    # unix:/path, host:port; empty for a paired box, wherever it is.
    address: str = ""
    box: PairedBox | None = None
    # As `read_fingerprint` makes it plain; empty when none was given.
    fingerprint: str = ""

    @property
    def described(self) -> str:
        """For a reader, also before it was found."""
        if self.address or self.box is None:
            return self.address
        return self.box.addresses[0] if self.box.addresses else self.box.name


def choose(
    address: str | None = None,
    data: Path | None = None,
    *,
    fingerprint: str | None = None,
    environ: Mapping[str, str] = os.environ,
    store: PairingStore | None = None,
) -> Target:
    """The address (or a paired box's name or id), else the socket in `data`, if they are given. Else EDGE_ADDRESS, else
    the socket in the default data directory or loopback if a box is there, else the one box that is paired.

    Who names a data directory never reaches another directory's box. A host without a port gets 7430. The fingerprint
    is by default EDGE_TLS_FINGERPRINT, and is for addresses of other machines. Raises InvalidArgument: field "address"
    for what is neither host:port nor unix: nor paired, and when several boxes are paired and none is named.
    """
    store = store or PairingStore()
    given = environ.get("EDGE_TLS_FINGERPRINT", "") if fingerprint is None else fingerprint
    expected = read_fingerprint(given) if given else ""
    if not address and data is not None:
        return Target(f"unix:{data.absolute() / _SOCKET}")
    named = address or environ.get("EDGE_ADDRESS", "")
    if named:
        # What looks like an address is one: no box takes another's calls by its name. Such a box goes by its id.
        box = None if set(named) & set(".:") or named == "localhost" else store.find(named)
        return Target(box=box, fingerprint=expected) if box else Target(whole(named), fingerprint=expected)
    socket_path = data_directory(environ).absolute() / _SOCKET
    here = f"unix:{socket_path}" if socket_path.exists() else _LOOPBACK
    if not store.ids() or _answers(here) or (here != _LOOPBACK and _answers(here := _LOOPBACK)):
        return Target(here)
    boxes = store.boxes()
    if len(boxes) > 1:
        known = ", ".join(f"{box.name} ({box.id})" for box in boxes)
        raise InvalidArgument(
            f"address: {len(boxes)} boxes are paired; say which by --address or EDGE_ADDRESS, or forget one that is "
            f"no more by `edge pair --forget ID`: {known}",
            field="address",
        )
    return Target(box=boxes[0], fingerprint=expected)


def whole(address: str) -> str:
    """The address with its port. Raises InvalidArgument (field "address")."""
    if address.startswith("unix:"):
        if address in ("unix:", "unix://"):
            raise InvalidArgument("address: give the socket's path, as in unix:/path/edge.sock", field="address")
        return address
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    elif ":" in host and not (host.startswith("[") and host.endswith("]")):
        # A bare IPv6 address: its last group is not a port.
        host, port = f"[{address}]", str(DEFAULT_PORT)
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    if not host or not 1 <= number <= 65535 or any(character.isspace() or character == "/" for character in host):
        raise InvalidArgument(
            "address: use host:port, as in 127.0.0.1:7430, unix:/path/edge.sock, or the name or id of a paired box; "
            "set it by --address or EDGE_ADDRESS",
            field="address",
        )
    return f"{host}:{number}"


def is_local(address: str) -> bool:
    """Whether what is sent there stays on this machine, by the address alone: no name server is believed."""
    if address.startswith("unix:"):
        return True
    host, _ = parts(address)
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost"
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def grpc_target(address: str) -> str:
    """The address as gRPC takes it: the interface of a link-local one is percent-encoded (RFC 6874)."""
    if address.startswith("unix:") or "%" not in address:
        return address
    host, port = parts(address)
    return "ipv6:" + joined(host.replace("%", "%25"), port)


def _answers(address: str) -> bool:
    family, place = (
        (socket.AF_UNIX, address.removeprefix("unix:"))
        if address.startswith("unix:")
        else (socket.AF_INET, parts(address))
    )
    with socket.socket(family, socket.SOCK_STREAM) as knock:
        knock.settimeout(_KNOCK_SECONDS)
        try:
            knock.connect(place)
        except OSError:
            return False
    return True
