"""What runs on a machine of tests/house.py beside the commands: it says what happens in lines of JSON.

house_guest.py stream TURNS          ingests so many at once, then a few at a time until told `end`; recalls meanwhile
house_guest.py impostor FOLDER       a box with another certificate, on port 7430
house_guest.py middle FOLDER HOST    carries to port 7430 of HOST what comes to its own, with another certificate
house_guest.py listen                the machines that probe for a name by mDNS (RFC 6762, 8.1)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from edge.client import AsyncClient, turn
from edge.errors import EdgeError
from edge.lan.tls import Identity

PORT = 7430
# Enough that the stream is under way at every moment, and little enough that the box embeds along.
PORTION, PAUSE_SECONDS = 20, 0.2
# Longer than a busy machine takes to start a box.
PATIENCE = 120.0


def say(**what: Any) -> None:
    print(json.dumps(what, ensure_ascii=False), flush=True)


async def told() -> str:
    """The next line on stdin, empty at its end."""
    # Not in a thread, which would keep a program alive that has failed.
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, readable.set)
    await readable.wait()
    loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip()


async def stream(first: str) -> None:
    ending = asyncio.create_task(told())

    async def turns() -> AsyncIterator[Any]:
        seq = 0
        while not ending.done():
            for _ in range(PORTION if seq else int(first)):
                yield turn(f"第{seq}句话，说的是花园和天气。", source="house", session="stream", seq=seq)
                seq += 1
            await asyncio.wait([ending], timeout=PAUSE_SECONDS)

    async def recalls(box: AsyncClient) -> None:
        while True:
            try:
                answer = await box.recall("花园")
            except EdgeError as error:
                say(failed=[error.reason, error.message])
            else:
                say(recalled={"hits": len(answer.hits), "address": box.address})
            await asyncio.sleep(PAUSE_SECONDS)

    async with AsyncClient.connect(timeout=PATIENCE, patience=PATIENCE) as box:
        asking = asyncio.create_task(recalls(box))
        states: Counter[str] = Counter()
        positions = []
        async for result in box.ingest(turns(), batch=PORTION):
            states[result.state.name] += 1
            positions.append(result.position)
            if len(positions) % PORTION == 0:
                say(stored={"turns": len(positions), "address": box.address})
        asking.cancel()
        await asyncio.wait([asking])
        say(done={"states": states, "in_order": positions == list(range(len(positions))), "turns": len(positions)})


class _Anything(grpc.GenericRpcHandler):
    """Answers nothing, and says what it was asked."""

    def service(self, details: Any) -> Any:
        say(called=[details.method, [key for key, _ in details.invocation_metadata]])


async def impostor(folder: str) -> None:
    identity = Identity.open(Path(folder))
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Anything(),))
    server.add_secure_port(f"[::]:{PORT}", grpc.ssl_server_credentials([(identity.key, identity.certificate)]))
    await server.start()
    say(fingerprint=identity.fingerprint)
    await told()
    await server.stop(None)


async def middle(folder: str, host: str) -> None:
    identity = Identity.open(Path(folder))
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(Path(folder, "certificate.pem"), Path(folder, "key.pem"))
    own.set_alpn_protocols(["h2"])
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.check_hostname = False
    theirs.verify_mode = ssl.CERT_NONE
    theirs.set_alpn_protocols(["h2"])
    seen = bytearray()

    async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                seen.extend(data)
                sink.write(data)
                await sink.drain()
        sink.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(
            host, PORT, ssl=theirs, server_hostname="edge-memory.box"
        )
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))

    async with await asyncio.start_server(connect, "0.0.0.0", PORT, ssl=own):
        say(fingerprint=identity.fingerprint)
        while await told():
            say(seen=seen.hex())


async def listen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        # Beside the machine's own client.
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        ear.bind(("", 5353))
        interface = socket.inet_aton("224.0.0.251") + bytes(4) + struct.pack("@i", socket.if_nametoindex("eth0"))
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, interface)
        ear.setblocking(False)
        say(listening=True)
        while True:
            packet, (host, _) = await asyncio.get_running_loop().sock_recvfrom(ear, 9000)
            _, flags, _, _, authorities, _ = struct.unpack("!6H", packet[:12])
            # Only who is about to claim a name sends a question with an authority section.
            if not flags & 0x8000 and authorities:
                say(probe=host)


if __name__ == "__main__":
    programs: dict[str, Any] = {"stream": stream, "impostor": impostor, "middle": middle, "listen": listen}
    asyncio.run(programs[sys.argv[1]](*sys.argv[2:]))
