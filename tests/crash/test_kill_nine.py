"""kill -9 at random moments of ingest, forget and snapshot: what was promised holds after every one of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chaos import SOURCE, Chaos, Journal
from conftest import Box, BoxFactory
from light import serve
from promises import Found, Promises, text_of
from traces import found, stretches

from edge.client import Client
from edge.embedder.fake import HashEmbedder
from edge.errors import NotFound, Unavailable
from edge.types import Lane, TurnState
from edge.upkeep.verify import verify_data
from edge.v1.types_pb2 import MEMORY_STATE_SUPERSEDED, Memory

KILLS = int(os.environ.get("EDGE_CRASH_KILLS", "100"))
SEED = os.environ.get("EDGE_CRASH_SEED") or secrets.token_hex(4)
# Of five kills one hits a whole box with the real model, which takes two seconds to start.
BOXES = KILLS // 5
_PATIENCE = 60.0


# How long a start takes, and how long a box is busy, at the most, before it is killed.
_LIGHT_START, _LIGHT_BUSY = 0.3, 0.4
_BOX_BUSY = 0.8


class Light:
    """The driver in a process of its own, forked by a server that has imported everything."""

    def __init__(self, data: Path, journal: Path) -> None:
        self._data, self._journal = data, journal
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["edge.appliance"])

    def start(self) -> None:
        self._line, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(self._data, self._journal, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        assert self._line.poll(_PATIENCE), "the driver did not start"
        assert self._line.recv() == "ready"

    def go(self, seed: str, kept: dict[str, str]) -> None:
        self._line.send(("go", (seed, kept)))

    def look(self, ids: list[str]) -> tuple[list[Found], list[Found]]:
        return self._ask("look", ids)

    def recall(self, queries: list[str]) -> list[list[str]]:
        return self._ask("recall", queries)

    def again(self, turns: list[tuple[str, str, int]]) -> list[TurnState]:
        return self._ask("again", turns)

    def explained(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._line.close()

    def stop(self) -> None:
        self._ask("stop", None)
        self._process.join(_PATIENCE)
        assert self._process.exitcode == 0

    def _ask(self, what: str, about: object) -> Any:
        self._line.send((what, about))
        assert self._line.poll(_PATIENCE), f"the driver did not answer {what!r}"
        return self._line.recv()


class Whole:
    """A box with its model, as its owner runs it, reached by the client."""

    def __init__(self, box: Box, journal: Path) -> None:
        self._box, self._journal = box, journal

    def start(self) -> None:
        self._box.start()

    def wait(self) -> None:
        # Whatever a killed box did not answer is the chaos' business, not to be tried again for long.
        self._client = Client(self._box.address, patience=0.1)
        self._chaos: Chaos | None = None

    def go(self, seed: str, kept: dict[str, str]) -> None:
        self._chaos = Chaos(self, Journal(self._journal), seed, kept, pause=0.1)
        self._chaos.start()

    def look(self, ids: list[str]) -> tuple[list[Found], list[Found]]:
        by_id = []
        for id in ids:
            with contextlib.suppress(NotFound):
                by_id.append(_found(self._client.get(id)))
        return [_found(memory) for memory in self._client.list(page_size=1000)], by_id

    def recall(self, queries: list[str]) -> list[list[str]]:
        while sum(space.pending for space in self._client.status().spaces):
            time.sleep(0.02)
        return [[hit.memory.id for hit in self._client.recall(query).hits] for query in queries]

    def again(self, turns: list[tuple[str, str, int]]) -> list[TurnState]:
        return [TurnState(result.state) for result in self._client.ingest(_turns(turns))]

    def say(self, turns: Sequence[tuple[str, str, int]]) -> list[list[str]]:
        results = list(self._client.ingest(_turns(turns)))
        if any(isinstance(result.error, Unavailable) for result in results):
            raise Unavailable("it was killed meanwhile")
        assert {result.state for result in results} == {TurnState.STORED}, results
        return [list(result.memory_ids) for result in results]

    def forget(self, ids: Sequence[str], session: str) -> None:
        receipt = self._client.forget(ids) if ids else self._client.forget(sessions=[session])
        assert receipt.turns, "nothing was forgotten"

    def meddle(self, chance: random.Random) -> None:
        if chance.random() < 0.1:
            self._client.rebuild("log" if chance.random() < 0.2 else "index")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """A box that ends by itself tells why."""
        try:
            yield
        except Unavailable as error:
            end = f"it runs on, as process {self._box.pid}" if self._box.running else f"it ended: {self._box.wait(0)}"
            raise AssertionError(f"{error.message}\n{end}\n{self._box.log[-5000:]}") from error

    def kill(self) -> None:
        self._box.kill()
        if self._chaos is not None:
            self._chaos.stop()
        self._client.close()

    def stop(self) -> None:
        self._client.close()
        assert self._box.stop() == 0


def _turns(turns: Sequence[tuple[str, str, int]]) -> list[dict[str, object]]:
    return [{"source": SOURCE, "session": session, "seq": seq, "text": text} for text, session, seq in turns]


def _found(memory: Memory) -> Found:
    name = f"{memory.session}/{memory.seq}"
    superseded = memory.state == MEMORY_STATE_SUPERSEDED
    return Found(memory.id, memory.text, name, superseded, memory.piece, memory.pieces)


def check(subject: Light | Whole, promises: Promises, data: Path, chance: random.Random) -> None:
    """After a restart, before anything else goes on."""
    before = len(promises.gone)
    living, by_id = subject.look(promises.ids(200))
    promises.check({one.id: one for one in living}, {one.id: one for one in by_id})
    assert verify_data(data).problems == []
    assert promises.words_in(data) == []
    some = chance.sample(sorted(promises.kept), min(5, len(promises.kept)))
    newest = [list(promises.kept[name].versions.items())[-1] for name in some]
    for (key, ids), recalled in zip(newest, subject.recall([text_of(key) for key, _ in newest]), strict=True):
        assert set(recalled) & set(ids), f"LOST to recalls: {key}"
    # What was forgotten last, half of it by a box that did not live to say so.
    last = list(promises.gone.items())[-5:]
    states = subject.again([(text_of(key), *_place(name)) for key, name in last])
    assert set(states) <= {TurnState.FILTERED}, "BACK by its source"
    if isinstance(subject, Light):
        for key in list(promises.gone)[-(3 + len(promises.gone) - before) :]:
            assert found(data, vector_of(key)) == []


def _place(name: str) -> tuple[str, int]:
    session, _, seq = name.rpartition("/")
    return session, int(seq)


def vector_of(key: str) -> dict[str, bytes]:
    """The vector of a text that is one piece, as it would be on the disk."""
    text = text_of(key)
    if "\n" in text:
        return {}
    embedder = HashEmbedder()
    return stretches(embedder.embed(embedder.encode([text], Lane.INGEST))[0])


def torment(
    subject: Light | Whole, data: Path, journal: Path, kills: int, seed: str, start: float, busy: float
) -> Promises:
    """Kills it so often, looks after each restart, and in the end stops it in peace and looks once more."""
    chance = random.Random(seed)
    promises = Promises()
    journal.touch()
    for place in range(kills):
        subject.start()
        if start and chance.random() < 0.25:
            # A start has work of its own: replaying, finishing forgets, bringing the index up to date.
            time.sleep(chance.uniform(0, start))
        else:
            subject.wait()
            with subject.explained():
                check(subject, promises, data, chance)
            subject.go(f"{seed}-{place}", {name: turn.ids[-1] for name, turn in promises.kept.items()})
            time.sleep(chance.uniform(0, busy))
        subject.kill()
        promises.read(journal)
    subject.start()
    subject.wait()
    with subject.explained():
        check(subject, promises, data, chance)
    subject.stop()
    assert verify_data(data).problems == []
    assert promises.words_in(data) == []
    return promises


Tell = Callable[[str, object], None]


@pytest.mark.timeout(1200)
def test_the_heart_of_a_box_that_is_killed_again_and_again_loses_nothing_and_brings_nothing_back(
    tmp_path: Path, record_property: Tell
) -> None:
    data, journal = tmp_path / "data", tmp_path / "journal"
    kills = KILLS - BOXES
    print(f"EDGE_CRASH_SEED={SEED}")
    promises = torment(Light(data, journal), data, journal, kills, SEED, _LIGHT_START, _LIGHT_BUSY)
    summed_up(promises, kills, record_property)


@pytest.mark.timeout(1200)
def test_a_box_that_is_killed_again_and_again_loses_nothing_and_brings_nothing_back(
    start_box: BoxFactory, tmp_path: Path, record_property: Tell
) -> None:
    box = start_box()
    assert box.stop() == 0
    journal = tmp_path / "journal"
    print(f"EDGE_CRASH_SEED={SEED}")
    summed_up(torment(Whole(box, journal), box.data, journal, BOXES, SEED, 0, _BOX_BUSY), BOXES, record_property)


def summed_up(promises: Promises, kills: int, tell: Tell) -> None:
    stored, forgotten = promises.stored, promises.forgotten
    assert forgotten > kills // 2 and stored > kills, "too little happened for the kills to mean anything"
    tell("told", f"{kills} kills: {stored} turns stored, {forgotten} forgotten, 0 lost, 0 back, verify clean")
