"""Saying, saying anew and forgetting, all at once, until someone pulls the plug."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from promises import text_of

from edge.errors import EdgeError

SOURCE = "crash"
_PAUSE = 0.02
# Sessions that are kept, about; so that looking through everything after each kill takes little.
_MANY = 40


class Hands(Protocol):
    """How a box is reached; every method may raise EdgeError once the box is gone."""

    def say(self, turns: Sequence[tuple[str, str, int]]) -> list[list[str]]:
        """(text, session, seq) of turns that are new; the ids that each was acknowledged as STORED with."""
        ...

    def forget(self, ids: Sequence[str], session: str) -> None:
        """By ids, or by session when there are none."""
        ...

    def meddle(self, chance: random.Random) -> None:
        """Whatever else goes on in a box."""
        ...


class Journal:
    """One line before each deed and one after its answer; what is written stays, however the writer ends."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # A line that a kill cut off must not swallow this process's first.
        os.write(self._file, b"\n")

    def note(self, what: str, about: object) -> None:
        os.write(self._file, json.dumps([what, about]).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


class Chaos:
    """`kept` are the turns there are: {name: one of its ids}; a name is "<session>/<seq>"."""

    def __init__(self, hands: Hands, journal: Journal, seed: str, kept: dict[str, str], pause: float = _PAUSE) -> None:
        self._hands = hands
        self._journal = journal
        self._seed = seed
        self._pause = pause
        # Sessions in which nothing more is said: those may be forgotten from.
        self._closed: dict[str, dict[str, str]] = {}
        for name, id in kept.items():
            self._closed.setdefault(name.rpartition("/")[0], {})[name] = id
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._again_and_again, args=(deed, f"{seed}-{place}"), daemon=True)
            for place, deed in enumerate((self._talk, self._talk, self._forget, self._forget, self._meddle))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No new deeds; waits for those under way."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _again_and_again(self, deed: Callable[[random.Random, str], None], seed: str) -> None:
        chance = random.Random(seed)
        turn = 0
        while not self._over.is_set():
            turn += 1
            try:
                # A box that is being rebuilt or was killed turns deeds away; what it did not answer stays open.
                with contextlib.suppress(EdgeError):
                    deed(chance, f"{seed}-{turn}")
            except Exception as error:  # noqa: BLE001  # whatever it is, the test is to hear of it
                self._journal.note("failed", f"{deed.__name__}: {error!r}")
                return
            time.sleep(chance.uniform(0, self._pause))

    def _talk(self, chance: random.Random, session: str) -> None:
        """One session, in a few messages; now and then a turn takes the place of an earlier one."""
        if len(self._closed) > _MANY:
            return
        ids: dict[str, str] = {}
        seq = count = 0
        for _ in range(chance.randint(1, 3)):
            batch: dict[str, tuple[str, str, int]] = {}
            for _ in range(chance.randint(1, 4)):
                count += 1
                if seq and chance.random() < 0.15:
                    at = chance.randint(1, seq)
                else:
                    seq += 1
                    at = seq
                key = f"{session}-{count}"
                batch[key] = (text_of(key), session, at)
            self._journal.note("saying", {key: f"{session}/{at}" for key, (_, _, at) in batch.items()})
            answers = dict(zip(batch, self._hands.say(list(batch.values())), strict=True))
            self._journal.note("said", answers)
            ids |= {f"{session}/{batch[key][2]}": some[0] for key, some in answers.items()}
            if self._over.is_set():
                return
        with self._lock:
            self._closed[session] = ids

    def _forget(self, chance: random.Random, _: str) -> None:
        with self._lock:
            session = chance.choice(list(self._closed)) if self._closed else None
            if session is None:
                return
            names = self._closed.pop(session)
            if chance.random() < 0.5:
                some = chance.choice(list(names))
                self._closed[session] = {name: id for name, id in names.items() if name != some}
                names = {some: names[some]}
                if not self._closed[session]:
                    del self._closed[session]
                wanted = [names[some]]
            else:
                wanted = []
        self._journal.note("forgetting", list(names))
        self._hands.forget(wanted, session)
        self._journal.note("forgot", list(names))

    def _meddle(self, chance: random.Random, _: str) -> None:
        self._hands.meddle(chance)
