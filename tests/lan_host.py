"""What runs on a host of a test's LAN: it publishes or looks, says so in lines of JSON, and ends at the end of stdin.

lan_host.py advertise NAME PORT ID [EVERY]     {"name", "addresses", "error"} whenever that changes
lan_host.py browse [EVERY]                     [box, …] whenever that changes
lan_host.py discover SECONDS                   [box, …] once
lan_host.py shout NAME TXT                     answers every question with a box of that name, its TXT in hex
lan_host.py occupy                             has port 5353 to itself
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import struct
import sys
from typing import Any

import uvloop

from edge.lan.advertise import Advertiser
from edge.lan.discover import Browser, Found, discover
from edge.lan.txt import Txt


def say(value: Any) -> None:
    print(json.dumps(value), flush=True)


async def end_of_stdin() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def advertise(name: str, port: str, id_: str, every: str = "10") -> None:
    txt = Txt(id=id_, version="0.1.0", api="v1", tls=True, fingerprint="ab" * 32)
    box = Advertiser(name, int(port), txt, every=float(every))
    box.start()
    ending = asyncio.ensure_future(end_of_stdin())
    told = None
    while not ending.done():
        if (status := dataclasses.asdict(box.status())) != told:
            say(told := status)
        await asyncio.wait([ending], timeout=0.1)
    await box.stop()


async def browse(every: str = "10") -> None:
    browser = Browser(lambda boxes: say([dataclasses.asdict(box) for box in boxes]), every=float(every))
    browser.start()
    await end_of_stdin()
    await browser.stop()


async def look(seconds: str, addresses: str) -> None:
    def enough(boxes: list[Found]) -> bool:
        return sum(len(box.addresses) for box in boxes) >= int(addresses)

    say([dataclasses.asdict(box) for box in await discover(float(seconds), until=enough)])


def label(raw: bytes) -> bytes:
    return bytes([len(raw)]) + raw


def answer(name: str, txt: bytes) -> bytes:
    """A response as no library would make it (RFC 1035, 4.1): a box on port 7430 of 10.7.0.200."""
    service = label(b"_edge-memory") + label(b"_tcp") + label(b"local") + b"\0"
    instance, host = label(name.encode()) + service, label(b"liar") + label(b"local") + b"\0"

    def record(owner: bytes, kind: int, class_: int, data: bytes) -> bytes:
        return owner + struct.pack("!HHIH", kind, class_, 120, len(data)) + data

    return struct.pack("!6H", 0, 0x8400, 0, 4, 0, 0) + b"".join(
        (
            record(service, 12, 1, instance),
            record(instance, 33, 0x8001, struct.pack("!3H", 0, 0, 7430) + host),
            record(instance, 16, 0x8001, txt),
            record(host, 1, 0x8001, socket.inet_aton("10.7.0.200")),
        )
    )


async def shout(name: str, txt: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
        speaker.bind(("", 5353))
        # There is no route to the group's address, so the interface is named.
        interface = bytes(4) + struct.pack("@i", socket.if_nametoindex("eth0"))
        speaker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, bytes(4) + interface)
        speaker.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.251") + interface)
        # It answers whatever it hears; its own words would keep it, and all who listen, talking without end.
        speaker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        speaker.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(speaker, lambda: speaker.recv(9000) and speaker.sendto(packet, ("224.0.0.251", 5353)))
        packet = answer(name, bytes.fromhex(txt))
        say("shouting")
        await end_of_stdin()
        loop.remove_reader(speaker)


async def occupy() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 5353))
        say("taken")
        await end_of_stdin()


if __name__ == "__main__":
    commands: dict[str, Any] = {"advertise": advertise, "browse": browse, "discover": look}
    command = {**commands, "shout": shout, "occupy": occupy}[sys.argv[1]]
    uvloop.install()
    asyncio.run(command(*sys.argv[2:]))
