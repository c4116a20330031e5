"""What the box needs on this machine, looked at one by one, without starting it."""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from edge.config import DEFAULT_MODEL, DEFAULT_PORT, models_directory
from edge.errors import EdgeError

_OLDEST_PYTHON = (3, 10)
_LEAST_FREE = 1 << 30
_LOCK = "edge.lock"
_SOCKET = "edge.sock"
_PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: how it is, and what to do when it is not right."""

    ok: bool
    what: str
    next_step: str = ""


def examine(data: Path, models: Sequence[str] = (DEFAULT_MODEL,), directory: Path | None = None) -> list[Finding]:
    """Every finding, good ones too. Looks only: nothing is created, fetched or locked for longer than the look.

    `models` are those that the box is to run, `directory` is where they lie.
    """
    owner = _owner(data / _LOCK)
    checks: list[Callable[[], Finding]] = [
        _python,
        _sqlite,
        _onnxruntime,
        *[functools.partial(_model, model, directory or models_directory()) for model in models],
        lambda: _directory(data),
        lambda: _space(data),
        lambda: _lock(data, owner),
        lambda: _socket(data / _SOCKET, owner is not None),
        lambda: _port(owner is not None),
        _clock,
    ]
    return [check() for check in checks]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= _OLDEST_PYTHON
    return Finding(ok, f"Python {version}", "" if ok else "install Python 3.10 or newer, then run: make setup")


def _sqlite() -> Finding:
    what = f"SQLite {sqlite3.sqlite_version}"
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.Error:
        return Finding(
            False, f"{what} without FTS5", "use a Python whose SQLite has FTS5, such as the distribution's own"
        )
    finally:
        connection.close()
    return Finding(True, f"{what} with FTS5")


def _onnxruntime() -> Finding:
    try:
        import onnxruntime
    except ImportError as error:
        return Finding(
            False,
            f"onnxruntime cannot be imported ({error})",
            "install it: pip install onnxruntime, or run: make setup",
        )
    providers = ", ".join(
        provider.removesuffix("ExecutionProvider") for provider in onnxruntime.get_available_providers()
    )
    return Finding(True, f"onnxruntime {onnxruntime.__version__} offers {providers}")


def _model(model: str, directory: Path) -> Finding:
    from edge.embedder import store

    step = f"get a good copy with: edge model pull {model}"
    try:
        ok = store.installed(model, directory)
    except EdgeError as error:
        return Finding(False, f"model {model}: {error.message}", "choose one of: edge model list")
    if ok:
        return Finding(True, f"model {model} is in {directory}, its digests match")
    return Finding(False, f"model {model} is missing from {directory}, or damaged", step)


def _directory(data: Path) -> Finding:
    place = data
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return Finding(False, f"{place} is in the way of the data directory", "choose another with --data or EDGE_DATA")
    if not os.access(place, os.W_OK | os.X_OK):
        step = "give this user the right to write there, or choose another with --data or EDGE_DATA"
        return Finding(False, f"data directory {data} cannot be written", step)
    return Finding(True, f"data directory {data} {'can be written' if place == data else 'can be made'}")


def _space(data: Path) -> Finding:
    place = data
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(False, f"free space at {place} is unknown ({error.strerror})", "look at the disk")
    what = f"{free / (1 << 30):.1f} GiB free at {place}"
    return Finding(free >= _LEAST_FREE, what, "" if free >= _LEAST_FREE else "free some space: below 1 GiB is tight")


def _owner(lock: Path) -> str | None:
    """Who holds the data directory, if anyone: the flock decides, the file's words name."""
    try:
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            words = json.loads(os.pread(file, 4096, 0))
            return f"process {int(words['pid'])}, since {words['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"
    except OSError:
        return None
    finally:
        # Closing drops what was locked for the look.
        os.close(file)
    return None


def _lock(data: Path, owner: str | None) -> Finding:
    return Finding(True, f"{data} is held by {owner}" if owner else f"no box runs on {data}")


def _socket(path: Path, running: bool) -> Finding:
    if not path.exists():
        if not running:
            return Finding(True, "no socket, as no box runs; start one with: edge serve")
        return Finding(
            False, f"a box runs, but without its socket {path}", "its log says why; a long path is one reason"
        )
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_PATIENCE)
            probe.connect(str(path))
    except OSError as error:
        if not running and error.errno == errno.ECONNREFUSED:
            return Finding(True, f"{path} is left from a box that is gone; the next one replaces it")
        return Finding(False, f"{path} cannot be reached ({error.strerror or error})", "restart the box: edge serve")
    return Finding(True, f"{path} answers")


def _port(running: bool) -> Finding:
    try:
        with socket.create_connection(("127.0.0.1", DEFAULT_PORT), _PATIENCE):
            pass
    except OSError:
        return Finding(True, f"port {DEFAULT_PORT} is free")
    if running:
        return Finding(True, f"port {DEFAULT_PORT} answers")
    step = "another program, or a box on another data directory, has it: serve elsewhere with --listen 127.0.0.1:PORT"
    return Finding(False, f"port {DEFAULT_PORT} is taken, and no box runs on this data directory", step)


def _clock() -> Finding:
    now = datetime.now(timezone.utc)
    ok = 2024 <= now.year < 2100
    step = "" if ok else "set it (timedatectl set-ntp true): memories are dated by it"
    return Finding(ok, f"the clock says {now:%Y-%m-%d %H:%M} UTC", step)
