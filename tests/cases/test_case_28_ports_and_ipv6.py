"""Case 28: a port that is taken, and machines with IPv6 only (grpc/grpc#16920, home-assistant/core#61635)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import netns
import pytest
from grpc_calls import SECONDS, Wire
from house import house

if TYPE_CHECKING:
    from conftest import BoxFactory

SERVE = (sys.executable, "-m", "edge.cli", "serve")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def in_a_namespace(*command: str) -> tuple[str, ...]:
    """The command where there is no address but ::1."""
    script = 'ip link set lo up && ip address del 127.0.0.1/8 dev lo && exec "$@"'
    return ("unshare", "--net", "sh", "-ec", script, "sh", *command)


def namespaces_work() -> bool:
    try:
        return subprocess.run(in_a_namespace("true"), capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
needs_namespaces = pytest.mark.skipif(
    not has_ipv6() or not namespaces_work(), reason="needs the right to make a network namespace, and ip(8)"
)


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("[::1]", marks=needs_ipv6)])
def test_a_second_server_on_the_same_port_ends_and_says_why(start_box: BoxFactory, tmp_path: Path, host: str) -> None:
    box = start_box("--no-auth", "--listen", f"{host}:0")
    command = [*SERVE, "--data", str(tmp_path), "--no-auth", "--listen", box.address]
    second = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert second.returncode == 1
    assert box.address in second.stderr
    assert "in use" in second.stderr
    assert "ready" not in second.stdout
    with Wire(box.address) as wire:
        assert wire.status().data_directory == str(box.data)
    assert not (tmp_path / "edge.sock").exists()


@needs_ipv6
def test_ipv6_works_like_ipv4(start_box: BoxFactory) -> None:
    box = start_box("--no-auth", "--listen", "[::1]:0")
    assert box.address.startswith("[::1]:")
    with Wire(box.address) as wire:
        wire.say("走新的路", space="public")
        assert wire.texts("路") == ["走新的路"]


@pytest.fixture
def alone(tmp_path: Path, model_directory: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A box with the default addresses on a machine that has ::1 alone, and the words after its `ready`."""
    environment = {**os.environ, "EDGE_MODELS": str(model_directory)}
    process = subprocess.Popen(
        in_a_namespace(*SERVE, "--data", str(tmp_path / "d"), "--no-auth"),
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    yield process, process.stdout.readline().split()
    process.terminate()
    process.communicate(timeout=SECONDS)


@needs_namespaces
def test_a_machine_with_ipv6_only_is_served_by_default(alone: tuple[subprocess.Popen[str], list[str]]) -> None:
    process, ready = alone
    assert ready[0] == "ready"
    assert ready[1].startswith("unix:")
    assert ready[2:] == ["[::1]:7430"]
    with Wire(ready[1]) as wire:
        assert list(wire.status().addresses) == ready[1:]
    # A client in the same namespace, over TCP.
    command = ["nsenter", "--target", str(process.pid), "--net", sys.executable, "-m", "edge.cli", "status", "--json"]
    environment = {**os.environ, "EDGE_ADDRESS": "[::1]:7430"}
    asked = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert asked.returncode == 0, asked.stderr
    assert "[::1]:7430" in asked.stdout


@pytest.mark.skipif(bool(netns.missing()), reason=netns.missing())
def test_a_lan_with_ipv6_only_finds_the_box_pairs_with_it_and_uses_it(model_directory: Path) -> None:
    with house(model_directory, ipv4=False) as (attic, desk, _):
        attic.serve(name="阁楼")
        # An AAAA record, and no A.
        [found] = desk.finds("阁楼")
        assert [address.startswith("[fe80::") for address in found["addresses"]] == [True]
        assert found["addresses"][0].endswith("%eth0]:7430")
        assert "as desk" in desk.edge("pair", "阁楼", "--code", attic.code(), "--name", "desk")
        desk.edge("remember", "走新的路。")
        assert "走新的路" in desk.edge("recall", "路")
        # By its address too, which names the interface.
        assert "走新的路" in desk.edge("recall", "路", "--address", found["addresses"][0])
