"""What tests share: the real model's folder, and real boxes, each a process of its own that ends with its test."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import alone
import hypothesis
import pytest
from grpc_calls import Wire

from edge.config import DEFAULT_MODEL, models_directory

# No deadline: a slow moment of a shared machine is not a failure. HYPOTHESIS_PROFILE=deep looks longer.
hypothesis.settings.register_profile("edge", deadline=None, max_examples=50, print_blob=True)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "edge"))

START_SECONDS = 60.0
STOP_SECONDS = 30.0
# What would make a box or a client under test reach for the tester's own box.
PERSONAL = ("EDGE_DATA", "EDGE_ADDRESS", "EDGE_TOKEN", "EDGE_TLS_FINGERPRINT", "EDGE_CONFIG", "STATE_DIRECTORY")


# First, so that the time a test may take begins with its turn.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with alone.turn(item):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests tell with record_property("told", …): a print of another process's test is seen by nobody."""
    for report in terminalreporter.getreports("passed"):
        for name, what in report.user_properties:
            if name == "told":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {what}")


class Box:
    """A box as its owner starts it: `edge serve` in a process of its own, on a free port and a socket in `data`."""

    def __init__(self, data: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.data = data
        self.address = ""
        self.unix = ""
        self._arguments = arguments
        self._environment = dict(environment)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[str] = []
        self._ready = threading.Event()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the box was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All it said so far, on stdout and stderr, over all its starts."""
        return "".join(self._lines)

    def start(self) -> Box:
        """Starts it and waits until it is ready; an AssertionError with its log when it does not get there."""
        assert not self.running
        self._ready = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edge.cli", "serve", "--data", str(self.data), *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            env=self._environment,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process, self._ready), daemon=True)
        self._reader.start()
        in_time = self._ready.wait(START_SECONDS)
        if not in_time:
            self.kill()
        assert in_time, f"not ready within {START_SECONDS:.0f} s:\n{self.log}"
        assert self.address or self.unix, f"ended before it was ready:\n{self.log}"
        return self

    def _read(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stdout is not None
        self.address = self.unix = ""
        for line in process.stdout:
            self._lines.append(line)
            if line.startswith("ready ") and not ready.is_set():
                words = line.split()[1:]
                self.unix = next((word for word in words if word.startswith("unix:")), "")
                self.address = next((word for word in words if re.fullmatch(r"\S+:\d+", word)), "")
                ready.set()
        # It ended, or was never ready: whoever waits for it shall not wait longer.
        ready.set()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """SIGTERM, as systemd does it; the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self.signal(signal.SIGKILL)
        self.wait(STOP_SECONDS)

    def wait(self, timeout: float) -> int:
        assert self._process is not None and self._reader is not None
        status = self._process.wait(timeout)
        self._reader.join(timeout)
        return status

    def restart(self) -> Box:
        """Stops it if it runs, and starts it on the same data; its port may be another one then."""
        if self.running:
            self.stop()
        return self.start()


BoxFactory = Callable[..., Box]


def default_model() -> Path | None:
    """Where the default model's files are, None when they were never fetched."""
    directory = models_directory() / DEFAULT_MODEL
    return directory if (directory / "model.onnx").is_file() else None


@pytest.fixture(scope="session")
def model_directory() -> Path:
    """The folder that holds the models, with the default one in it. Its absence fails, so that nothing is left out."""
    if default_model() is None:
        pytest.fail(f"no {DEFAULT_MODEL} in {models_directory()}; run: make setup", pytrace=False)
    return models_directory()


def _factory(model_directory: Path) -> Iterator[BoxFactory]:
    boxes: list[Box] = []
    # Short, and not under tmp_path: the path of a unix socket may have 107 bytes (103 on macOS).
    directory = Path(tempfile.mkdtemp(prefix="edge-"))

    def start(*arguments: str, data: Path | None = None, environment: Mapping[str, str] | None = None) -> Box:
        inherited = {name: value for name, value in os.environ.items() if name not in PERSONAL}
        wanted = {**inherited, "EDGE_MODELS": str(model_directory), **(environment or {})}
        arguments = arguments or ("--no-auth", "--listen", "127.0.0.1:0")
        box = Box(data or directory / str(len(boxes)), arguments, wanted)
        boxes.append(box)
        return box.start()

    try:
        yield start
    finally:
        for box in boxes:
            if box.running:
                box.kill()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def start_box(model_directory: Path) -> Iterator[BoxFactory]:
    """Starts boxes: start_box(*arguments, data=…, environment=…); without arguments --no-auth on a free port."""
    yield from _factory(model_directory)


@pytest.fixture
def box(start_box: BoxFactory) -> Box:
    """A fresh, empty box of this test's own."""
    return start_box()


@pytest.fixture(scope="session")
def start_lasting_box(model_directory: Path) -> Iterator[BoxFactory]:
    """As start_box; its boxes run until the last test is done."""
    yield from _factory(model_directory)


@pytest.fixture(scope="session")
def shared_box(start_lasting_box: BoxFactory) -> Box:
    """One box for all tests that do not mind what others put into it."""
    return start_lasting_box()


@pytest.fixture(scope="session")
def wire(shared_box: Box) -> Iterator[Wire]:
    """A plain connection to the shared box."""
    with Wire(shared_box.address) as connected:
        yield connected


@pytest.fixture
def space() -> str:
    """A space's name that no other test has."""
    return f"private/{uuid.uuid4().hex[:12]}"
