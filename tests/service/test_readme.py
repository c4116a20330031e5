"""Every command of the README, executed as it stands there: its reader must not be the first to try it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = [line for language, body in FENCE.findall(README) if language == "sh" for line in body.splitlines()]
# Runs until it is stopped.
SERVING = [line for line in LINES if " serve " in line or line == "make run"]
# The suite that is running; what scripts/smoke executes in CI, with a tool that is not Python's; and a variable that
# the tests set themselves.
ELSEWHERE = [line for line in LINES if line == "make test" or line.startswith(("grpcurl ", "export "))]
# Wants a box on the network, and a code.
PAIRING = [line for line in LINES if " pair" in line]
WATCHING = [line for line in LINES if "--watch" in line]
ONCE = [line for line in LINES if line not in (*SERVING, *ELSEWHERE, *PAIRING, *WATCHING)]


def as_run(line: str) -> str:
    """The line with this very interpreter's `edge`; make's targets as what they run once the set-up is done."""
    ours = f"{sys.executable} -m edge.cli"
    return (
        line.replace("make demo", f"{ours} demo").replace("make run", f"{ours} serve").replace(".venv/bin/edge", ours)
    )


def sh(line: str, environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", as_run(line)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path, model_directory: Path) -> dict[str, str]:
    """A newcomer's environment: a home with nothing in it, and the model."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "EDGE_MODELS": str(model_directory), "PYTHONPATH": str(ROOT)}


def test_the_commands_of_the_readme_work_one_after_another(box, home, tmp_path) -> None:
    environment = {**home, "EDGE_ADDRESS": box.unix, "EDGE_DATA": str(box.data)}
    said = ""
    for line in ONCE:
        if "rebuild --from-log" in line:
            assert box.stop() == 0
            environment.pop("EDGE_ADDRESS")
        if "ID" in line:
            (found,) = re.findall(
                r"[0-9a-f]{8}-[0-9a-f-]{27}",
                sh(".venv/bin/edge recall 备用钥匙 --top-k 1", environment, tmp_path).stdout,
            )
            line = line.replace("ID", found)
        done = sh(line, environment, tmp_path)
        # A doctor that finds something to mend says so with 1; what it finds depends on the machine.
        assert done.returncode == 0 or "doctor" in line, f"{line}: {done.stderr}"
        said += done.stdout
    assert "备用钥匙放在阳台第三个花盆下面" in said
    assert "6 of 6 questions" in said


@pytest.mark.parametrize("line", SERVING)
def test_a_box_of_the_readme_serves_until_it_is_stopped(line, home, tmp_path) -> None:
    # Its port may be another's on this machine; everything else is as it stands.
    command = as_run(line).replace("127.0.0.1:7430", "127.0.0.1:0")
    if "--listen" not in command:
        command += f" --listen {'[::]' if '--lan' in command else '127.0.0.1'}:0"
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"], env=home, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready unix:")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_the_pairing_of_the_readme_pairs(start_box, home, tmp_path) -> None:
    box = start_box("--lan", "--listen", "[::]:0")
    (show, pair) = PAIRING
    assert show == f"{pair} --show"
    shown = sh(show, {**home, "EDGE_DATA": str(box.data)}, tmp_path)
    (code,) = re.findall(r"[0-9A-Z]{4}-[0-9A-Z]{4}", shown.stdout)
    # On this machine, so that what mDNS finds besides plays no part.
    address = box.address.replace("[::]", "127.0.0.1")
    paired = sh(f"{pair} {address} --code {code} --name desk", home, tmp_path)
    assert paired.returncode == 0, paired.stderr
    told = sh(".venv/bin/edge status --json", {**home, "EDGE_ADDRESS": address}, tmp_path)
    assert told.returncode == 0, told.stderr


def test_the_watching_of_the_readme_goes_on_until_it_is_stopped(box, home, tmp_path) -> None:
    (line,) = WATCHING
    with subprocess.Popen(
        ["sh", "-c", f"exec {as_run(line)}"],
        env={**home, "EDGE_ADDRESS": box.unix},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        # A suite that runs in the background has it ignored, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(30) == 0


def test_the_python_of_the_readme_stores_and_finds(box, home, tmp_path) -> None:
    (program,) = [body for language, body in FENCE.findall(README) if language == "python"]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**home, "EDGE_ADDRESS": box.address},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "SEARCHABLE" in done.stdout
    assert "The billing database is PostgreSQL 16." in done.stdout


def test_the_jq_lines_of_the_architecture_read_a_real_log(box, home, tmp_path) -> None:
    sh(".venv/bin/edge remember 我把备用钥匙放在阳台第三个花盆下面", {**home, "EDGE_ADDRESS": box.unix}, tmp_path)
    architecture = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    lines = [line for _, body in FENCE.findall(architecture) for line in body.splitlines() if line.startswith("jq ")]
    assert lines
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=box.data, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
