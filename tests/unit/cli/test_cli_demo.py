"""The demo's box does not outlive the demo. (That the demo succeeds is `make demo`'s own to show.)"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from edge.cli.demo import box as demo_box
from edge.errors import Unavailable

READY = "import signal, time; print('ready unix:x 127.0.0.1:1', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY


@pytest.fixture
def box_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes `python -m edge.cli serve …` run the given program instead."""

    def give(program: str) -> None:
        launcher = tmp_path / "python"
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}"\n')
        launcher.chmod(0o700)
        monkeypatch.setattr(demo_box.sys, "executable", str(launcher))

    return give


def gone(box: demo_box.Box) -> bool:
    return box._process.poll() is not None


def test_the_box_tells_where_it_listens_and_stops_when_told(box_is: Any) -> None:
    box_is(READY)
    with demo_box.running() as box:
        assert box.address == "127.0.0.1:1"
        assert box.stop() == -signal.SIGTERM
    assert gone(box)


def test_a_box_that_does_not_start_is_reported_with_its_last_words(box_is: Any) -> None:
    box_is("import sys; sys.exit('no model here; get one')")
    with pytest.raises(Unavailable, match="no model here; get one"), demo_box.running():
        pytest.fail("it never was ready")


def test_a_box_that_does_not_stop_is_killed(box_is: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_box, "_STOP", 0.05)
    box_is(STUBBORN)
    with demo_box.running() as box:
        assert box.stop() == -signal.SIGKILL


def test_an_error_in_the_demo_takes_the_box_along(box_is: Any) -> None:
    box_is(STUBBORN)
    with pytest.raises(ZeroDivisionError), demo_box.running() as box:
        raise ZeroDivisionError
    assert gone(box)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_demo_takes_the_box_along(box_is: Any, number: signal.Signals) -> None:
    box_is(STUBBORN)
    with pytest.raises(SystemExit) as caught, demo_box.running() as box:
        os.kill(os.getpid(), number)
        # The handler runs between two instructions of this thread, at the latest while it waits.
        threading.Event().wait(10)
    assert caught.value.code == 128 + number
    assert gone(box)
