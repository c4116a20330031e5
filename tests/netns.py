"""Hosts on one LAN, each a network namespace of its own with a cable to a bridge: needs root and `ip`, nothing else.

Names hold the process that made them, so runs beside each other do not meet, and a run clears away what one that was
killed left behind. The bridge is in a namespace too: nothing is changed in the machine's own network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAMED = Path("/run/netns")
_OURS = re.compile(r"edge-(\d+)-[0-9a-f]{8}-\w+")


def missing() -> str:
    """Why no namespaces can be made here; empty when they can."""
    if not Path("/proc/self/ns/net").exists() or shutil.which("ip") is None:
        return "needs Linux with iproute2"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    try:
        _ip("netns", "add", (name := f"edge-{os.getpid()}-{uuid.uuid4().hex[:8]}-try"))
        _ip("netns", "delete", name)
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"
    return ""


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=30).stdout


class Host:
    """One machine on the LAN. Its interface is eth0, with the IPv4 address it was given and a link-local IPv6 one."""

    def __init__(self, namespace: str, number: int) -> None:
        self.namespace = namespace
        self.number = number

    def command(self, *arguments: str) -> list[str]:
        """What to start so that it runs on this host."""
        return ["ip", "netns", "exec", self.namespace, *arguments]

    def ip(self, *arguments: str) -> str:
        """`ip` on this host: ip("addr", "add", "10.0.0.9/24", "dev", "eth0")."""
        return _ip("-n", self.namespace, *arguments)

    def set(self, key: str, value: str) -> None:
        """A kernel setting of this host's network, as sysctl names it."""
        path = f"/proc/sys/{key.replace('.', '/')}"
        subprocess.run(self.command("sh", "-c", 'echo "$1" > "$2"', "sh", value, path), check=True, timeout=30)


class Lan:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._bridge = f"{prefix}-bridge"
        self.hosts: list[Host] = []
        self._add(self._bridge)
        _ip("-n", self._bridge, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0", "forward_delay", "0")
        _ip("-n", self._bridge, "link", "set", "br0", "up")

    def _add(self, namespace: str) -> None:
        _ip("netns", "add", namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")

    def add_host(self, *, ipv4: bool = True, ipv6: bool = True) -> Host:
        """Another host with a cable to the bridge; 10.7.0.<number>, from 1."""
        host = Host(f"{self._prefix}-h{len(self.hosts) + 1}", len(self.hosts) + 1)
        self._add(host.namespace)
        self.hosts.append(host)
        # Nobody else has its addresses, so the kernel need not spend two seconds on asking.
        host.set("net.ipv6.conf.default.accept_dad", "0")
        host.set("net.ipv6.conf.default.disable_ipv6", "0" if ipv6 else "1")
        port = f"port{host.number}"
        _ip("-n", self._bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _ip("-n", self._bridge, "link", "set", port, "master", "br0", "up")
        if ipv4:
            host.ip("addr", "add", f"10.7.0.{host.number}/24", "dev", "eth0")
        host.ip("link", "set", "eth0", "up")
        return host

    def remove(self) -> None:
        for namespace in (*(host.namespace for host in self.hosts), self._bridge):
            # Its end of each cable goes with it.
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True, timeout=30)


def _clear_away_the_dead() -> None:
    for path in _NAMED.glob("edge-*") if _NAMED.is_dir() else ():
        match = _OURS.fullmatch(path.name)
        if match and not Path("/proc", match.group(1)).exists():
            subprocess.run(["ip", "netns", "delete", path.name], check=False, capture_output=True, timeout=30)


@contextmanager
def lan(hosts: int = 3) -> Iterator[Lan]:
    """A LAN with so many hosts, gone at the end. Programs on it have to be stopped before."""
    _clear_away_the_dead()
    made = Lan(f"edge-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        for _ in range(hosts):
            made.add_host()
        yield made
    finally:
        made.remove()
