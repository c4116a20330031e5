"""A box of a command's own (demo, bench): on a temporary folder and a free port, gone when the command is."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from edge.errors import Unavailable

# The model is loaded and checked in this time, on a slow device.
_START = 120.0
_STOP = 30.0
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
# What would lead the command to the reader's own box.
_PERSONAL = ("EDGE_DATA", "EDGE_ADDRESS", "EDGE_TOKEN", "EDGE_CONFIG", "STATE_DIRECTORY")


class Box:
    """`address` is host:port, `addresses` all that it listens on, `pid` its process; `stop` ends it as systemd does and
    gives its exit status."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid
        self.address = ""
        self.addresses: list[str] = []

    def wait_until_ready(self) -> None:
        """Raises Unavailable with the last words of its log when it does not get there."""
        said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()
        try:
            words = said.get(timeout=_START).split()
        except queue.Empty:
            raise Unavailable(f"the box was not ready in {_START:.0f} s; {self._last_words()}") from None
        tcp = [word for word in words if not word.startswith("unix:")]
        if not tcp:
            raise Unavailable(f"the box did not start; {self._last_words()}")
        self.address, self.addresses = tcp[0], words

    def _listen(self, said: queue.SimpleQueue[str]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("ready "):
                said.put(line.removeprefix("ready "))
        # It ended: whoever waits need not wait longer.
        said.put("")

    def _last_words(self) -> str:
        words = self._log.read_text("utf-8", "replace").strip().splitlines()
        return f"it said: {words[-1]}" if words else "it said nothing; run `edge doctor`"

    def stop(self) -> int:
        """SIGTERM, then its exit status; it is killed if it takes longer than half a minute."""
        self._process.terminate()
        try:
            return self._process.wait(_STOP)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def running(data: Path | None = None, *how: str) -> Iterator[Box]:
    """A box that is ready, on the given data or on none, started with `how`: by default without tokens, on loopback.
    However the block is left, the process and its temporary folder are gone afterwards.
    """
    how = how or ("--no-auth", "--listen", "127.0.0.1:0")
    environment = {name: value for name, value in os.environ.items() if name not in _PERSONAL}
    with _signals_as_exit(), tempfile.TemporaryDirectory(prefix="edge-demo-") as folder:
        log = Path(folder) / "box.log"
        data = data or Path(folder) / "data"
        with log.open("w") as errors:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-m", "edge.cli", "serve", "--data", str(data), *how],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        box = Box(process, log)
        try:
            box.wait_until_ready()
            yield box
        finally:
            box.kill()


@contextlib.contextmanager
def _signals_as_exit() -> Iterator[None]:
    """A signal that would end this process at once unwinds it instead, so that the box does not outlive it."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
