"""The only file that knows everyone: build, start, stop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from edge import __version__
from edge.admission.redact import Redactor
from edge.backlog import Backlog
from edge.clock import SystemClock
from edge.config import DEFAULT_PORT, Config, Embedding, models_directory
from edge.embedder import beside, calibrate, engine, heap
from edge.embedder.batcher import Batcher
from edge.embedder.calibrate import Calibration
from edge.embedder.lanes import Served
from edge.embedder.onnx import load
from edge.embedder.routing import route
from edge.errors import FailedPrecondition, InvalidArgument, NotFound
from edge.lan.tokens import Tokens
from edge.ledger.lock import DataLock
from edge.ledger.scrub import scrub
from edge.lexicon.words import WordLexicon
from edge.ports import Embedder, Governor
from edge.recall.recall import Recall
from edge.service.appliance import ApplianceService
from edge.service.memory import MemoryService
from edge.service.pairing import PairingService
from edge.service.server import Server, is_loopback, split_address
from edge.service.working import WorkingService
from edge.spaces import Rebuilt, Spaces
from edge.types import Micros, ModelInfo
from edge.upkeep.fading import Fading
from edge.upkeep.merger import Merger
from edge.upkeep.schedule import Job, Schedule
from edge.working.states import States

if TYPE_CHECKING:
    from edge.lan.presence import Presence

logger = logging.getLogger(__name__)

# Recalls that look things up at the same time; each waits for the recall lane most of its time.
_RECALL_THREADS = 4
_WORK_THREADS = 4
_GRACE = 5.0
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_FILES = 8192
# sun_path of unix(7), less its NUL.
_SOCKET_PATH_BYTES = 107


@dataclasses.dataclass(frozen=True)
class Running:
    """A model that is loaded, and what it does on this device."""

    embedder: Embedder
    calibration: Calibration

    @property
    def info(self) -> ModelInfo:
        return self.embedder.info


@dataclasses.dataclass(eq=False)
class Core:
    """Everything but the network: what serves, and what the offline commands use."""

    data: Path
    config: Config
    spaces: Spaces
    # Not started here: the offline commands leave what is kept as it is.
    merger: Merger
    tokens: Tokens
    states: States
    batcher: Batcher
    governor: Governor
    # When this device was measured with each model, None for never.
    calibrated_at: Mapping[str, Micros | None]
    recall: Recall
    clock: SystemClock

    def on_hold(self) -> str:
        """Why nothing is embedded just now; empty when something may be."""
        budget = self.governor.budget()
        if budget.duty <= 0:
            return budget.reason
        return "the model does not come back from its present work" if self.batcher.stuck() else ""


@contextlib.contextmanager
def core(data: Path, config: Config, *embedders: Embedder) -> Iterator[Core]:
    """The box without its network, open and working; closed in order at the end.

    `embedders` in the place of the configured models. Raises Locked when another process has the directory, ModelError
    when a model cannot be used.
    """
    heap.bound()
    clock = SystemClock()
    with contextlib.ExitStack() as stack:
        read_only = _prepare(data)
        stack.enter_context(DataLock(data))
        running: list[Running] = []
        for one in embedders or _load(config.embedding):
            stack.callback(one.close)
            running.append(Running(one, calibrate.load_or_measure(one, models_directory(), config.embedding, clock)))
        first, *others = running
        device = beside.together(first.calibration.device(first.info), [(o.calibration, o.info) for o in others])
        served = [Served(other.embedder, beside.cost(other.embedder, first.embedder)) for other in others]
        # What loading the model took and let go of: some 17 MB.
        heap.trim()
        batcher, governor = stack.enter_context(engine.running(first.embedder, device, config, clock, beside=served))
        models = [one.info for one in running]

        def fitting(text: str) -> tuple[str, ...]:
            return route(text, models)

        backlog = Backlog(batcher.faces, fitting)
        lexicon = WordLexicon()
        # Its dictionary takes a third of a second to load, which the first question need not wait for.
        threading.Thread(target=lexicon.query_terms, args=("记忆",), name="lexicon", daemon=True).start()
        tokens = Tokens(data / "box.sqlite", clock, read_only=bool(read_only))
        stack.callback(tokens.close)
        spaces = Spaces(data, config, clock, lexicon, backlog, models, read_only=read_only)
        stack.callback(spaces.close)
        stack.callback(backlog.close)
        merger = Merger(spaces.all, lambda: governor.budget().background)
        stack.callback(merger.close)
        if config.admission.merge:
            spaces.on_news(merger.wake)
        spaces.open_all()
        # Behind the tokens, which open the same file: closing it by hand would take this one's locks away.
        states = States(
            data / "box.sqlite",
            clock,
            config.limits,
            scrub,
            redact=_redacting(spaces.redactor),
            exists=lambda name: name in spaces.names(),
            read_only=bool(read_only),
        )
        stack.callback(states.close)
        spaces.on_delete(states.delete_space)
        backlog.start()
        recall = Recall(batcher.faces, fitting, lexicon, clock, config.recall)
        measured = {one.info.id: one.calibration.at or None for one in running}
        yield Core(data, config, spaces, merger, tokens, states, batcher, governor, measured, recall, clock)


def _redacting(redactor: Redactor | None) -> Callable[[str], str]:
    """What is kept of a text of an agent's state: it may be a key as well as a turn may."""
    return (lambda text: text) if redactor is None else (lambda text: redactor.redact(text).text)


def _load(config: Embedding) -> Iterator[Embedder]:
    """The configured models, loaded one by one."""
    if config.second == config.model:
        raise InvalidArgument(
            f"embedding.second: {config.second} runs already as embedding.model; name another, or none",
            field="embedding.second",
        )
    for model in filter(None, (config.model, config.second)):
        yield load(model, models_directory(), config)


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
    """Runs the box until SIGTERM or SIGINT; prints `ready <address> …` when it can serve. The exit status.

    With `lan` every interface is served too: with TLS and tokens, always, and published by mDNS.
    """
    logging.basicConfig(level=_log_level(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    addresses = _addresses(data, listen, lan, no_auth)
    _allow_files()
    # Short turns at the interpreter, so that a recall does not wait 5 ms for a thread that segments or parses.
    sys.setswitchinterval(0.0002)
    with core(data, config) as box:
        return uvloop.run(_serve(box, addresses, lan, no_auth))


def _log_level() -> str:
    """EDGE_LOG. Raises InvalidArgument when it names no level."""
    level = os.environ.get("EDGE_LOG", "").upper() or "INFO"
    if level not in _LOG_LEVELS:
        raise InvalidArgument(f"EDGE_LOG: {level} is no level; use {', '.join(_LOG_LEVELS)}", field="EDGE_LOG")
    return level


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


def _addresses(data: Path, listen: Sequence[str], lan: bool, no_auth: bool) -> list[str]:
    hosts = [split_address(address)[0] for address in listen if not address.startswith("unix:")]
    others = [host for host in hosts if not is_loopback(host)]
    if no_auth and (lan or others):
        raise InvalidArgument(
            "no-auth: is for loopback alone; to serve other machines start the box with --lan and without --no-auth",
            field="lan" if lan else "listen",
        )
    if others and not lan:
        raise InvalidArgument(
            f"listen: {others[0]} is not loopback, and other machines are served with TLS and tokens only; "
            "start the box with --lan",
            field="listen",
        )
    # On all interfaces the default port is taken for the loopback too, which speaks TLS then.
    everywhere = [f"{_any_host()}:{DEFAULT_PORT}"] if lan and not others else []
    here = [] if listen or lan else [_default_tcp()]
    return [f"unix:{data.absolute()}/edge.sock", *listen, *everywhere, *here]


def _any_host() -> str:
    """All interfaces: with both families where the system has IPv6."""
    return "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104  # --lan asks for exactly that


def _default_tcp() -> str:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError:
            # An IPv6-only machine.
            return f"[::1]:{DEFAULT_PORT}"
    return f"127.0.0.1:{DEFAULT_PORT}"


async def _serve(box: Core, addresses: list[str], lan: bool, no_auth: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    recalls = ThreadPoolExecutor(_RECALL_THREADS, "edge-recall")
    works = ThreadPoolExecutor(_WORK_THREADS, "edge-work")
    presence = _presence(box) if lan else None
    server = Server(
        box.config.limits, box.tokens, no_auth=no_auth, certificate=presence.certificate if presence else None
    )
    bound: list[str] = []
    server.add(
        MemoryService(box.spaces, box.recall, box.config, box.clock, recalls, works, box.on_hold),
        WorkingService(box.spaces, box.states, box.batcher.tokens, box.config.limits, works),
        ApplianceService(
            box.spaces,
            box.tokens,
            box.batcher.faces,
            box.clock,
            works,
            box.data,
            bound,
            lambda: server.door.streams,
            box.governor.state,
            box.calibrated_at,
            box.config.recall.language,
        ),
        PairingService(presence.pairings if presence else None, works),
    )
    bound += await server.start(_usable(addresses, box.spaces.read_only))
    if presence is not None:
        presence.announce(server.lan_port)
        _greet(presence, box.tokens)
    fading = Fading(box.spaces, box.config.decay, box.clock, lambda: box.governor.budget().background)
    schedule = Schedule(
        [
            Job("background work", 5.0, lambda: box.spaces.allow_background(box.governor.budget().background)),
            Job("merging that waits", 5.0, box.merger.tick),
            Job("access counts", 30.0, box.spaces.flush_accesses),
            Job("access checkpoint", 3600.0, box.spaces.checkpoint_accesses),
            Job("unfinished forgets", 60.0, box.spaces.finish_forgets),
            Job("fading", 300.0, fading.run),
            Job("idle spaces", 60.0, box.spaces.close_idle),
            Job("last uses of tokens", 60.0, box.tokens.flush),
            Job("expired task state", 60.0, box.states.tend),
        ],
        box.clock,
    )
    schedule.start()
    box.merger.start()
    # What is there now stays: a collection that walks through it each time would hold up acknowledgements.
    gc.collect()
    gc.freeze()
    print("ready", *bound, flush=True)
    await stopping.wait()
    logger.info("stopping: letting running calls finish")
    if presence is not None:
        await presence.close()
    await server.stop(_GRACE)
    fading.stop()
    await asyncio.to_thread(schedule.close)
    recalls.shutdown(cancel_futures=True)
    works.shutdown(cancel_futures=True)
    return 0


def _presence(box: Core) -> Presence:
    # Brings cryptography and zeroconf, which a box that serves nobody else need not load.
    from edge.lan.presence import Presence

    name = box.config.lan.name
    return Presence(box.data / "identity", box.tokens, box.spaces.names, name, __version__, box.clock)


def _greet(presence: Presence, tokens: Tokens) -> None:
    """At the first start, tells whoever reads the journal how to pair. Not by the log: no code is ever in one."""
    if not any(not token.revoked_at for token in tokens.listed()):
        code, seconds = presence.pairings.show()
        print(
            f"edge: no client is paired yet; on another machine run `edge pair` and type {code} "
            f"within {seconds / 60:.0f} minutes, or later `edge pair --show` here for another code",
            file=sys.stderr,
            flush=True,
        )


def _usable(addresses: list[str], read_only: str) -> list[str]:
    socket_path = addresses[0].removeprefix("unix:")
    if read_only or len(os.fsencode(socket_path)) > _SOCKET_PATH_BYTES:
        logger.warning("no unix socket: %s", read_only or f"its path is over {_SOCKET_PATH_BYTES} bytes")
        return addresses[1:]
    return addresses
