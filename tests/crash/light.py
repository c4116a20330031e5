"""A box without network and model, which starts in a blink: for many kills in little time."""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from chaos import SOURCE, Chaos, Journal
from promises import Found

from edge import space as space_module
from edge.appliance import Core, core
from edge.config import Config, Storage
from edge.embedder.fake import HashEmbedder
from edge.index.live import Tuning
from edge.types import Depth, Filter, Memory, MemoryState, Question, Turn, TurnState

SPACE = "public"
# Everything that happens rarely in a box happens all the time here.
STORAGE = Storage(segment_bytes=32 * 1024, snapshot_interval=0.01)
SMALL = functools.partial(Tuning, flat_rows=32, overlay_rows=8, bulk_rows=16, threads=1, retry_seconds=0.05)


class LightHands:
    def __init__(self, box: Core) -> None:
        self._box = box

    def say(self, turns: Sequence[tuple[str, str, int]]) -> list[list[str]]:
        said = [Turn(SOURCE, session, seq, "user", 1_700_000_000_000_000, text) for text, session, seq in turns]
        stored = self._box.spaces.open(SPACE).ingest.store(said).result()
        assert {result.state for result in stored.results} == {TurnState.STORED}
        return [list(result.memory_ids) for result in stored.results]

    def forget(self, ids: Sequence[str], session: str) -> None:
        by_session = None if ids else Filter(sessions=(session,))
        receipt = self._box.spaces.open(SPACE).forget(ids, by_session, False)
        assert receipt.turns, "nothing was forgotten"

    def meddle(self, chance: random.Random) -> None:
        deed = chance.random()
        if deed < 0.02:
            self._box.spaces.rebuild(SPACE, True)
        elif deed < 0.1:
            self._box.spaces.rebuild(SPACE, False)
        elif deed < 0.3:
            for index in self._box.spaces.open(SPACE).indexes.values():
                index.save()


def serve(data: Path, journal: Path, line: Connection) -> None:
    """The process: says "ready", answers questions, and is busy from "go" until it is killed or told to stop."""
    logging.basicConfig(level="ERROR")
    space_module.Tuning = SMALL  # type: ignore[misc,assignment]  # the index's sizes are in no configuration
    with core(data, Config(storage=STORAGE), HashEmbedder()) as box:
        chaos: Chaos | None = None
        line.send("ready")
        while True:
            what, about = line.recv()
            if what == "stop":
                if chaos is not None:
                    chaos.stop()
                line.send(None)
                return
            if what == "go":
                chaos = Chaos(LightHands(box), Journal(journal), *about)
                chaos.start()
            else:
                line.send(_answer(box, what, about))


def _answer(box: Core, what: str, about: Sequence[object]) -> object:
    space = box.spaces.open(SPACE)
    if what == "look":
        living = [_found(memory) for memory in space.list_page(Filter(), 1_000_000, None)]
        return living, [_found(memory) for memory in space.by_ids([str(id) for id in about])]
    if what == "recall":
        space.drained().result()
        return [
            [hit.memory.id for hit in box.recall.recall(Question(str(q), (SPACE,), Depth.SHALLOW), {SPACE: space}).hits]
            for q in about
        ]
    assert what == "again"
    turns = [Turn(SOURCE, session, seq, "user", 1, text) for text, session, seq in about]  # type: ignore[misc]  # "again" brings triples
    return [result.state for result in space.ingest.store(turns).result().results]


def _found(memory: Memory) -> Found:
    name = f"{memory.session}/{memory.seq}"
    return Found(memory.id, memory.text, name, memory.state is MemoryState.SUPERSEDED, memory.piece, memory.pieces)
