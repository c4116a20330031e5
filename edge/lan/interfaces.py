"""The network interfaces that lead to the people of the house, and their addresses."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# linux/if.h; a tunnel has no neighbours to be found by, and what is down has none at present.
_UP, _LOOPBACK, _POINT_TO_POINT, _MULTICAST = 0x1, 0x8, 0x10, 0x1000
# Bridges and ends of containers and virtual machines, and what macOS uses between Apple's own devices.
_NOT_THE_HOUSE = re.compile(
    r"docker|br-[0-9a-f]{12}$|veth|virbr|vnet|lxc|lxd|cni|flannel|cali|podman|vmnet|vboxnet|bridge1|utun|awdl|llw|ap\d|anpi"
)
# More addresses than this do not fit a packet beside the rest.
MOST_ADDRESSES = 16


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    index: int
    # In text form and sorted, IPv6 without a scope.
    v4: tuple[str, ...]
    v6: tuple[str, ...]


def usable() -> tuple[Interface, ...]:
    """Those that are up, real, and have an address that can be sent from; sorted by name.

    Asks the kernel, so call it away from the event loop. Raises OSError when the kernel does not answer.
    """
    import ifaddr  # at use, so that a client that looks for no box does not load it

    found = []
    for adapter in ifaddr.get_adapters():
        name, index = adapter.name, adapter.index or 0
        if _NOT_THE_HOUSE.match(name) or not _reaches_neighbours(name):
            continue
        texts = [ip.ip if isinstance(ip.ip, str) else ip.ip[0] for ip in adapter.ips]
        good = sorted({text.partition("%")[0] for text in texts if _can_send_from(text.partition("%")[0], index)})
        v4 = tuple(text for text in good if ":" not in text)
        v6 = tuple(text for text in good if ":" in text)
        if good:
            found.append(Interface(name, index, v4, v6))
    return tuple(sorted(found, key=lambda interface: interface.name))


def _reaches_neighbours(name: str) -> bool:
    try:
        flags = int((Path("/sys/class/net") / name / "flags").read_text(), 16)
    except (OSError, ValueError):
        # No sysfs (macOS, some containers): the name and the addresses decide.
        return True
    return bool(flags & _UP and flags & _MULTICAST and not flags & (_LOOPBACK | _POINT_TO_POINT))


def _can_send_from(text: str, index: int) -> bool:
    """Not loopback, and can be bound: an IPv6 address cannot while the kernel still looks whether it is taken."""
    address = ipaddress.ip_address(text)
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0, 0, index) if address.version == 6 and address.is_link_local else (text, 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.ENODEV, errno.EAFNOSUPPORT, errno.EINVAL)
    return True


def choice(interfaces: Sequence[Interface]) -> list[str | int]:
    """The interfaces as zeroconf wants them: one IPv4 address of each, and the index of each with IPv6."""
    return [i.v4[0] for i in interfaces if i.v4] + [i.index for i in interfaces if i.v6]


def published(interfaces: Sequence[Interface]) -> list[str]:
    """The addresses to publish, at most 16: IPv4, then IPv6 of the whole network, then link-local IPv6."""
    texts = {text for interface in interfaces for text in (*interface.v4, *interface.v6)}
    return sorted(texts, key=rank)[:MOST_ADDRESSES]


def rank(text: str) -> tuple[int, bool, int]:
    """Sorts addresses into the order in which they are worth trying. Takes them with or without a scope."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return address.version, address.is_link_local, int(address)


def network_of(address: str) -> str:
    """What strangers are counted by: an IPv4 address, or the /64 of an IPv6 one, of which a host has all it likes."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
