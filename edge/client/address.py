"""Where the box is, when nobody says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from edge.config import DEFAULT_PORT, data_directory
from edge.errors import InvalidArgument

_SOCKET = "edge.sock"


def resolve(address: str | None = None, data: Path | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """The gRPC target: the address, else the socket in `data`, if they are given. Else EDGE_ADDRESS, else the socket
    in the default data directory if there is one, else loopback.

    Who names a data directory never reaches another directory's box. A host without a port gets 7430. Raises
    InvalidArgument (field "address") for what is neither host:port nor unix:.
    """
    if address:
        return _checked(address)
    if data is not None:
        return f"unix:{data.absolute() / _SOCKET}"
    if environ.get("EDGE_ADDRESS"):
        return _checked(environ["EDGE_ADDRESS"])
    socket = data_directory(environ) / _SOCKET
    return f"unix:{socket.absolute()}" if socket.exists() else f"127.0.0.1:{DEFAULT_PORT}"


def _checked(address: str) -> str:
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
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not host or not 1 <= number <= 65535 or any(character.isspace() or character == "/" for character in host):
        raise InvalidArgument(
            "address: use host:port, as in 127.0.0.1:7430, or unix:/path/edge.sock; "
            "set it by --address or EDGE_ADDRESS",
            field="address",
        )
    return f"{host}:{number}"
