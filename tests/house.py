"""A house with three machines on its LAN, each with a home of its own, and the real commands run on them.

Built on netns: each machine is a network namespace. Whatever runs on one ends with the test, or with the test run when
that is killed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import netns
from conftest import PERSONAL

GUEST = Path(__file__).with_name("house_guest.py")
# mDNS on a LAN, of a test that is about something else.
LAN_HOST = Path(__file__).with_name("lan_host.py")
# Generous: waited for only when something is broken.
CAP_SECONDS = 90.0
PORT = 7430
_CODE = re.compile(r"^code +(\S+)", re.MULTILINE)


class Program:
    """What runs on a machine, with the lines that it says on stdout and stderr."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [*_TIED, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            env=environment,
        )
        self._lines: list[str] = []
        self._read_to = 0
        self._news = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    @property
    def log(self) -> str:
        return "".join(self._lines)

    def wait_for(self, wanted: Callable[[str], Any]) -> Any:
        """What `wanted` makes of the first line from now on of which it makes anything."""
        until = time.monotonic() + CAP_SECONDS
        with self._news:
            while True:
                while self._read_to < len(self._lines):
                    self._read_to += 1
                    if found := wanted(self._lines[self._read_to - 1]):
                        return found
                left = until - time.monotonic()
                assert not self._ended, f"it ended; it said:\n{self.log}"
                assert left > 0, f"it never said it; it said:\n{self.log}"
                self._news.wait(left)

    def hear(self, kind: str, wanted: Callable[[Any], Any] = lambda _: True) -> Any:
        """The first {kind: value} from now on whose value is wanted: the value."""

        def take(line: str) -> Any:
            said = json.loads(line) if line.startswith("{") else {}
            return [said[kind]] if kind in said and wanted(said[kind]) else None

        return self.wait_for(take)[0]

    def skip(self) -> None:
        """What it said up to now is of no interest."""
        with self._news:
            self._read_to = len(self._lines)

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM, as systemd does it; the exit status."""
        self.signal(signal.SIGTERM)
        return self._process.wait(CAP_SECONDS)

    def kill(self) -> None:
        # A stopped process dies of it too.
        self._process.kill()
        self._process.wait()


# A test run that is killed leaves nothing running.
_TIED = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


class Machine:
    """One machine: its user's home, and the box's data if it is a box."""

    def __init__(self, host: netns.Host, home: Path, models: Path) -> None:
        self._host = host
        self.home = home
        self.data = home / "box"
        self.address = f"10.7.0.{host.number}"
        self._programs: list[Program] = []
        inherited = {
            name: value for name, value in os.environ.items() if name not in PERSONAL and not name.startswith("XDG_")
        }
        self.environment = {
            **inherited,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "share"),
            "EDGE_MODELS": str(models),
            "PYTHONPATH": str(GUEST.parents[1]),
            # A desktop's keyring would be the tester's own.
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }

    @property
    def place(self) -> str:
        return f"{self.address}:{PORT}"

    def ip(self, *arguments: str) -> str:
        return self._host.ip(*arguments)

    def move(self, address: str) -> None:
        """As when the router gives it another address: the old one is gone at once."""
        self.ip("addr", "del", f"{self.address}/24", "dev", "eth0")
        self.ip("addr", "add", f"{address}/24", "dev", "eth0")
        self.address = address

    def edge(self, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """What a command says, on stdout and then on stderr; asserts its exit status."""
        command = [*_TIED, *self._host.command(sys.executable, "-m", "edge.cli", *arguments)]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=CAP_SECONDS, env=self.environment, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"edge {' '.join(arguments)}: {done.returncode}, {said}"
        assert "Traceback" not in said
        return said

    def json(self, *arguments: str) -> Any:
        return json.loads(self.edge(*arguments, "--json"))

    def owner(self, *arguments: str, status: int = 0) -> str:
        """A command of the box's owner, on the box."""
        return self.edge(*arguments, "--data", str(self.data), status=status)

    def lists(self, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """The boxes that `edge discover` lists, as soon as they are those that are wanted."""
        until = time.monotonic() + CAP_SECONDS
        # On an idle machine a tenth of it is enough.
        seconds = 1
        while True:
            boxes: list[dict[str, Any]] = self.json("discover", "--seconds", str(seconds))["boxes"]
            if wanted(boxes):
                return boxes
            assert time.monotonic() < until, f"found {boxes}"
            seconds = 3

    def finds(self, *names: str) -> list[dict[str, Any]]:
        """The boxes of these names, as soon as exactly they are listed."""
        return self.lists(lambda boxes: sorted(box["name"] for box in boxes) == sorted(names))

    def serve(self, *, name: str = "", settings: str = "", edge: Sequence[str] = ("-m", "edge.cli")) -> Program:
        """A box for the whole LAN; ready when this returns. `settings`: more TOML; `edge`: how Python is to run it."""
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What is fastest on this device is of no interest here.
        lines = [
            "[embedding]",
            "calibrate = false",
            "[lan]",
            f"name = {json.dumps(name, ensure_ascii=False)}",
            settings,
        ]
        (self.data / "config.toml").write_text("\n".join(lines), "utf-8")
        box = self.start(sys.executable, *edge, "serve", "--data", str(self.data), "--lan")
        box.wait_for(lambda line: line.startswith("ready "))
        return box

    def code(self) -> str:
        """What `edge pair --show` says is to be typed on the other machine."""
        found = _CODE.search(self.owner("pair", "--show"))
        assert found is not None
        return found.group(1)

    def stream(self, turns: int = 1000) -> Program:
        """An ingest that goes on until told `end`, past its first turns, with recalls beside it."""
        streaming = self.guest("stream", str(turns))
        streaming.hear("stored", lambda stored: stored["turns"] >= turns)
        streaming.hear("recalled", lambda recalled: recalled["hits"])
        return streaming

    def guest(self, *arguments: str) -> Program:
        """One of the programs of house_guest.py."""
        return self.start(sys.executable, str(GUEST), *arguments)

    def start(self, *command: str) -> Program:
        program = Program(self._host.command(*command), self.environment)
        self._programs.append(program)
        return program

    def log(self, space: str) -> list[dict[str, Any]]:
        """Every event in the log of a space of this machine's box, in order."""
        files = (self.data / "spaces" / space / "log").glob("*.jsonl")
        in_order = sorted(files, key=lambda file: int(file.stem.rpartition("-")[2]))
        return [json.loads(line) for file in in_order for line in file.read_text("utf-8").splitlines()]

    def stop_all(self) -> None:
        for program in self._programs:
            program.kill()


def goes_on(stream: Program, address: str = "") -> None:
    """Waits until turns are stored and recalls answered, from now on and at this address."""
    stream.skip()
    stream.hear("stored", lambda stored: stored["address"].startswith(address))
    stream.hear("recalled", lambda recalled: recalled["address"].startswith(address) and recalled["hits"])


def ended(stream: Program) -> int:
    """How many turns it stored, after all: each acknowledged in its place, and no recall without an answer."""
    stream.tell("end")
    done = stream.hear("done")
    assert done["in_order"]
    assert set(done["states"]) <= {"STORED", "DUPLICATE"}
    assert '"failed"' not in stream.log
    turns: int = done["turns"]
    return turns


@contextmanager
def house(models: Path, *, ipv4: bool = True, ipv6: bool = True) -> Iterator[tuple[Machine, Machine, Machine]]:
    """Three machines, at 10.7.0.1 to 10.7.0.3 unless without IPv4."""
    # Short, for the paths of unix sockets.
    homes = Path(tempfile.mkdtemp(prefix="edge-house-"))
    machines: list[Machine] = []
    try:
        with netns.lan(hosts=0) as lan:
            try:
                for _ in range(3):
                    host = lan.add_host(ipv4=ipv4, ipv6=ipv6)
                    home = homes / str(host.number)
                    home.mkdir()
                    machines.append(Machine(host, home, models))
                first, second, third = machines
                yield first, second, third
            finally:
                for machine in machines:
                    machine.stop_all()
    finally:
        shutil.rmtree(homes, ignore_errors=True)
