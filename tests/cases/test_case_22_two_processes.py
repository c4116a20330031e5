"""Case 22 (modelcontextprotocol/servers#4797, MemPalace/mempalace#1401): one process at a time on a data directory, a
lock that dies with its owner, and an end in good order."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from conftest import Box, BoxFactory

from edge.client import Client, Ingested, IngestState
from edge.errors import Unavailable

DRAIN_SECONDS = 15.0


def edge(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("EDGE_ADDRESS", "EDGE_DEBUG")}
    return subprocess.run(
        [sys.executable, "-m", "edge.cli", *arguments], capture_output=True, text=True, timeout=60, env=environment
    )


def turns(session: str = "s") -> Iterator[dict[str, object]]:
    for seq in itertools.count():
        yield {"source": "test", "session": session, "seq": seq, "text": f"第{seq}句话，说的是晚饭、花园和天气。"}


def test_the_second_process_ends_at_once_and_names_the_first(box: Box) -> None:
    with Client(box.address) as client:
        client.remember("备用钥匙在花盆下面。")

        second = edge("serve", "--no-auth", "--listen", "127.0.0.1:0", "--data", str(box.data))

        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr.count("\n") == 1 and second.stderr.startswith("edge: ")
        assert f"process {box.pid}" in second.stderr and str(box.data) in second.stderr
        assert client.recall("钥匙").hits
        assert client.remember("窗户关好了。")


def test_commands_that_need_the_directory_for_themselves_end_the_same_way(box: Box) -> None:
    # As when its socket cannot be reached: the command would do it itself, and must not beside the box.
    (box.data / "edge.sock").unlink()

    done = edge("rebuild", "--from-log", "--data", str(box.data))

    assert done.returncode == 1
    assert f"process {box.pid}" in done.stderr


def test_a_killed_box_leaves_no_lock_that_blocks_even_when_its_pid_lives_again(start_box: BoxFactory) -> None:
    box = start_box()
    box.kill()
    lock = box.data / "edge.lock"
    words = json.loads(lock.read_text())
    assert words["pid"] == box.pid and (box.data / "edge.sock").exists()
    # The number may be another process's by now, such as this one's.
    lock.write_text(json.dumps({**words, "pid": os.getpid()}))

    box.start()

    assert json.loads(lock.read_text())["pid"] == box.pid
    with Client(box.unix) as client:
        assert client.status().ready


@pytest.mark.parametrize("words", ["", "nonsense", "[]", '{"pid": "x"}'])
def test_whatever_the_lock_file_says_only_the_lock_counts(box: Box, words: str) -> None:
    (box.data / "edge.lock").write_text(words)

    second = edge("serve", "--no-auth", "--listen", "127.0.0.1:0", "--data", str(box.data))
    assert second.returncode == 1 and "in use by another process" in second.stderr

    box.restart()
    assert box.running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("times", [1, 3])
def test_a_signal_ends_it_in_good_order_while_turns_come_in(
    start_box: BoxFactory, number: signal.Signals, times: int
) -> None:
    box = start_box()
    results: list[Ingested] = []
    enough = threading.Event()

    def talk() -> None:
        with Client(box.address, patience=0.1) as client:
            try:
                for result in client.ingest(turns(), batch=16):
                    results.append(result)
                    if len(results) >= 200:
                        enough.set()
            except Unavailable:
                pass

    talker = threading.Thread(target=talk)
    talker.start()
    assert enough.wait(60)
    start = time.monotonic()
    for _ in range(times):
        box.signal(number)
        time.sleep(0.2)
    status = box.wait(DRAIN_SECONDS)
    took = time.monotonic() - start
    talker.join(60)

    assert status == 0, box.log
    assert took < DRAIN_SECONDS
    assert not talker.is_alive()
    assert "Traceback" not in box.log
    assert not (box.data / "edge.sock").exists()
    assert edge("verify", "--data", str(box.data)).returncode == 0

    stored = [result for result in results if result.state is IngestState.STORED]
    assert len(stored) >= 200
    assert all(isinstance(result.error, Unavailable) for result in results if result not in stored)
    box.start()
    with Client(box.address) as client:
        there = {memory.id for memory in client.list(page_size=1000)}
        assert there >= {id for result in stored for id in result.memory_ids}


def test_a_message_that_was_read_before_the_signal_gets_its_answers(start_box: BoxFactory) -> None:
    box = start_box()
    # A second, idle stream, as every client that once recalled holds open.
    with Client(box.address, patience=0.1) as idle, Client(box.address, patience=0.1) as client:
        idle.recall("在吗")
        gate = threading.Event()

        def slowly() -> Iterator[dict[str, object]]:
            yield from itertools.islice(turns(), 64)
            gate.wait(30)

        got: list[Ingested] = []

        def talk() -> None:
            with contextlib.closing(client.ingest(slowly(), batch=64, wait="searchable")) as results:
                got.extend(itertools.islice(results, 64))

        first = threading.Thread(target=talk)
        first.start()
        time.sleep(0.05)
        box.signal(signal.SIGTERM)
        status = box.wait(DRAIN_SECONDS)
        gate.set()
        first.join(60)

    assert status == 0
    assert [result.state for result in got if result.state is not IngestState.SEARCHABLE] == [], got
    box.start()
    with Client(box.address) as client:
        assert len(list(client.list(page_size=1000))) == 64
