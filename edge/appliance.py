"""The only file that knows everyone: build, start, stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvloop

from edge.backlog import Backlog
from edge.clock import SystemClock
from edge.config import DEFAULT_PORT, Config, models_directory
from edge.embedder.batcher import Batcher
from edge.embedder.governor import FixedGovernor
from edge.embedder.onnx import load
from edge.errors import FailedPrecondition, InvalidArgument, NotFound
from edge.ledger.lock import DataLock
from edge.lexicon.words import WordLexicon
from edge.ports import Embedder
from edge.recall.shallow import ShallowRecall
from edge.service.appliance import ApplianceService
from edge.service.memory import MemoryService
from edge.service.server import Server, is_loopback, split_address
from edge.spaces import Rebuilt, Spaces
from edge.upkeep.schedule import Job, Schedule

logger = logging.getLogger(__name__)

# Recalls that look things up at the same time; each waits for the recall lane most of its time.
_RECALL_THREADS = 4
_WORK_THREADS = 4
_GRACE = 5.0
_FILES = 8192
# sun_path of unix(7), less its NUL.
_SOCKET_PATH_BYTES = 107


@dataclasses.dataclass(eq=False)
class Core:
    """Everything but the network: what serves, and what the offline commands use."""

    data: Path
    config: Config
    spaces: Spaces
    batcher: Batcher
    recall: ShallowRecall
    clock: SystemClock


@contextlib.contextmanager
def core(data: Path, config: Config, embedder: Embedder | None = None) -> Iterator[Core]:
    """The box without its network, open and working; closed in order at the end.

    Raises Locked when another process has the directory, ModelError when the model cannot be used.
    """
    clock = SystemClock()
    with contextlib.ExitStack() as stack:
        read_only = _prepare(data)
        stack.enter_context(DataLock(data))
        embedder = embedder or load(config.embedding.model, models_directory(), config.embedding)
        stack.callback(embedder.close)
        _give_back()
        batcher = Batcher(embedder, FixedGovernor(config.embedding), clock, config.embedding)
        batcher.start()
        stack.callback(batcher.close)
        backlog = Backlog(batcher)
        lexicon = WordLexicon()
        spaces = Spaces(data, config, clock, lexicon, backlog, batcher.info, read_only=read_only)
        stack.callback(spaces.close)
        stack.callback(backlog.close)
        spaces.open_all()
        backlog.start()
        yield Core(data, config, spaces, batcher, ShallowRecall(batcher, lexicon, clock, config.recall), clock)


def _give_back() -> None:
    """What loading the model took and let go of: some 17 MB, which glibc would keep for itself."""
    if sys.platform == "linux":
        # Another C library has no such function, and perhaps no such need.
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


def _prepare(data: Path) -> str:
    """Makes the directory; why it cannot be written to, or nothing."""
    probe = data / f".probe-{os.getpid()}"
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        if not data.is_dir():
            raise FailedPrecondition(
                f"cannot make the data directory {data} ({error.strerror}); choose another with --data or EDGE_DATA",
                reason="DATA_DIRECTORY_UNUSABLE",
            ) from None
        # A full disk refuses the probe too, but writes come back without a restart once there is room.
        return "" if error.errno == errno.ENOSPC else f"{data} cannot be written ({error.strerror})"
    return ""


def serve(data: Path, listen: Sequence[str], lan: bool, no_auth: bool, config: Config) -> int:
    """Runs the box until SIGTERM or SIGINT; prints `ready <address> …` when it can serve. The exit status."""
    logging.basicConfig(
        level=os.environ.get("EDGE_LOG", "INFO").upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    if lan:
        raise InvalidArgument("lan: TLS, pairing and mDNS come in a later version; leave --lan out", field="lan")
    addresses = _addresses(data, listen, no_auth)
    _allow_files()
    # Short turns at the interpreter, so that a recall does not wait 5 ms for a thread that segments or parses.
    sys.setswitchinterval(0.0002)
    with core(data, config) as box:
        return uvloop.run(_serve(box, addresses, no_auth))


def _allow_files() -> None:
    """A thousand streams may come over as many connections; many systems start a program with room for 1,024 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (_FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES), hard)
        )


def rebuild(data: Path, from_log: bool, config: Config) -> Rebuilt:
    """Makes the views of a stopped box anew, and waits until every memory has its vector.

    Raises NotFound when there is no box's data in the directory.
    """
    if not (data / "spaces").is_dir():
        raise NotFound(f"{data} holds no memories; name the data directory with --data or EDGE_DATA", field="data")
    with core(data, config) as box:
        for name in box.spaces.names():
            box.spaces.rebuild(name, from_log)
        for space in box.spaces.all():
            space.drained().result()
        facts = box.spaces.facts()
    return Rebuilt(sum(one.memories for one in facts), sum(one.vectors for one in facts))


def _addresses(data: Path, listen: Sequence[str], no_auth: bool) -> list[str]:
    for address in listen:
        if address.startswith("unix:"):
            continue
        host, _ = split_address(address)
        if not is_loopback(host):
            raise InvalidArgument(
                f"listen: {address} is not loopback, and this version serves other machines only with TLS, which "
                "comes with --lan later; use 127.0.0.1" + (" (--no-auth is for loopback alone)" if no_auth else ""),
                field="listen",
            )
    return [f"unix:{data.absolute()}/edge.sock", *(listen or [_default_tcp()])]


def _default_tcp() -> str:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError:
            # An IPv6-only machine.
            return f"[::1]:{DEFAULT_PORT}"
    return f"127.0.0.1:{DEFAULT_PORT}"


async def _serve(box: Core, addresses: list[str], no_auth: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    recalls = ThreadPoolExecutor(_RECALL_THREADS, "edge-recall")
    works = ThreadPoolExecutor(_WORK_THREADS, "edge-work")
    server = Server(box.config.limits, no_auth=no_auth)
    bound: list[str] = []
    server.add(
        MemoryService(box.spaces, box.recall, box.config, box.clock, recalls, works),
        ApplianceService(box.spaces, box.batcher, box.clock, works, box.data, bound, lambda: server.door.streams),
    )
    bound += await server.start(_usable(addresses, box.spaces.read_only))
    schedule = Schedule(
        [
            Job("access counts", 30.0, box.spaces.flush_accesses),
            Job("access checkpoint", 3600.0, box.spaces.checkpoint_accesses),
            Job("unfinished forgets", 60.0, box.spaces.finish_forgets),
        ],
        box.clock,
    )
    schedule.start()
    # What is there now stays: a collection that walks through it each time would hold up acknowledgements.
    gc.collect()
    gc.freeze()
    print("ready", *bound, flush=True)
    await stopping.wait()
    logger.info("stopping: letting running calls finish")
    await server.stop(_GRACE)
    await asyncio.to_thread(schedule.close)
    recalls.shutdown(cancel_futures=True)
    works.shutdown(cancel_futures=True)
    return 0


def _usable(addresses: list[str], read_only: str) -> list[str]:
    socket_path = addresses[0].removeprefix("unix:")
    if read_only or len(os.fsencode(socket_path)) > _SOCKET_PATH_BYTES:
        logger.warning("no unix socket: %s", read_only or f"its path is over {_SOCKET_PATH_BYTES} bytes")
        return addresses[1:]
    return addresses
