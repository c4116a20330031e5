"""What a box has promised, and whether a box that was killed keeps it."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from traces import files

# Every word that tells one text from all others: 14 letters and a mark. FTS5 leaves out what a term shares with the
# one before it, so the 8 letters before the mark are enough to know it.
_MARK = "qzzq"
_KNOWN_BY = 8
_WORD = re.compile(rb"([a-p]{%d})qzzq" % _KNOWN_BY)
_HANZI = "昨天今天我们去了公园散步然后吃饭回家看书想起钥匙放在阳台花盆下面"
_ENGLISH = ("memory", "box", "garden", "kettle", "window")
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def word_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:14].translate(_LETTERS) + _MARK


def text_of(key: str) -> str:
    """The text of a key, the same in every process: one piece mostly, sometimes three; its word is in every line."""
    chance = random.Random(key)
    lines = 8 if chance.random() < 0.15 else 1
    said = []
    for _ in range(lines):
        start = chance.randrange(len(_HANZI) - 12)
        numbers = " ".join(f"{chance.random():.12f}" for _ in range(4))
        said.append(f"{_HANZI[start : start + 12]} {chance.choice(_ENGLISH)} {word_of(key)} {numbers}。")
    return "\n\n".join(said)


@dataclass(frozen=True)
class Found:
    """A memory as a box shows it."""

    id: str
    text: str
    name: str
    superseded: bool
    piece: int
    pieces: int


@dataclass
class Named:
    """One turn by its name: each version's key with the ids it was acknowledged with, oldest first."""

    versions: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        return [id for ids in self.versions.values() for id in ids]


@dataclass
class Promises:
    """Read from a journal with a line before each request and a line after its answer (see chaos.Journal):

    saying {key: name} · said {key: ids} · forgetting [name] · forgot [name] · failed words
    """

    kept: dict[str, Named] = field(default_factory=dict)
    # The keys that were forgotten with their turns' names, and the ids, latest last.
    gone: dict[str, str] = field(default_factory=dict)
    gone_ids: list[str] = field(default_factory=list)
    # Asked for, and no answer yet when the box was killed.
    saying: dict[str, str] = field(default_factory=dict)
    forgetting: list[tuple[str, ...]] = field(default_factory=list)
    stored: int = 0
    forgotten: int = 0
    _read: int = 0

    def read(self, journal: Path) -> None:
        """Takes what the journal got since the last time."""
        raw = journal.read_bytes()
        end = raw.rfind(b"\n") + 1
        for line in filter(None, raw[self._read : end].splitlines()):
            what, about = json.loads(line)
            getattr(self, f"_{what}")(about)
        # A line that a kill cut off was never an answer.
        self._read = len(raw)

    def _saying(self, names: Mapping[str, str]) -> None:
        self.saying |= names

    def _said(self, answers: Mapping[str, list[str]]) -> None:
        for key, ids in answers.items():
            self.kept.setdefault(self.saying.pop(key), Named()).versions[key] = tuple(ids)
            self.stored += 1

    def _forgetting(self, names: list[str]) -> None:
        self.forgetting.append(tuple(names))

    def _forgot(self, names: list[str]) -> None:
        self.forgetting.remove(tuple(names))
        self._go(names)

    def _failed(self, words: str) -> None:
        raise AssertionError(words)

    def _go(self, names: Iterable[str]) -> None:
        for name in names:
            turn = self.kept.pop(name)
            self.gone |= dict.fromkeys(turn.versions, name)
            self.gone_ids += turn.ids
            self.forgotten += 1

    def ids(self, most: int) -> list[str]:
        """What to ask a box for: every id that must be there or may be, and `most` of those that must not."""
        return [id for turn in self.kept.values() for id in turn.ids] + self.gone_ids[-most:]

    def check(self, living: Mapping[str, Found], by_id: Mapping[str, Found]) -> None:
        """Holds what a restarted box shows against what was promised, and settles what was open.

        `living` is all that it lists; `by_id` what it gives of `ids`.
        """
        shown = {**by_id, **living}
        assert not (back := [id for id in self.gone_ids if id in shown]), f"BACK: {back}"
        for names in self.forgetting:
            there = [name for name in names if all(id in shown for id in self.kept[name].ids)]
            left = [name for name in names if any(id in shown for id in self.kept[name].ids)]
            assert there == left in ([], list(names)), f"a forget of {len(names)} turns was half done: {left}"
            if not there:
                self._go(names)
        self.forgetting.clear()
        self._adopt(living)
        expected: dict[str, tuple[str, bool]] = {}
        for name, turn in self.kept.items():
            for key, ids in turn.versions.items():
                old = key != list(turn.versions)[-1]
                expected |= dict.fromkeys(ids, (key, old))
                pieces = [shown[id].text for id in ids if id in shown]
                assert len(pieces) == len(ids), f"LOST: {len(ids) - len(pieces)} of {len(ids)} pieces of {name}, {key}"
                assert _bare("".join(pieces)) == _bare(text_of(key)), f"{name}, {key} has another text"
                assert {shown[id].superseded for id in ids} == {old}, (
                    f"{key} of {name} with {list(turn.versions)} is superseded or not, and should not or be"
                )
        back = [found.name for id, found in living.items() if id not in expected]
        assert not back, f"BACK, or never said: {back}"

    def _adopt(self, living: Mapping[str, Found]) -> None:
        """Turns that were logged while nobody was told: whole or not there, and from now on promised."""
        keys = {word_of(key): key for key in self.saying}
        pieces: dict[str, list[Found]] = {}
        for found in living.values():
            word = next((word for word in found.text.split() if word.endswith(_MARK)), "")
            if word in keys:
                pieces.setdefault(keys[word], []).append(found)
        for key, parts in pieces.items():
            assert {part.pieces for part in parts} == {len(parts)}, f"only {len(parts)} pieces of {key} are there"
            self._said({key: [part.id for part in sorted(parts, key=lambda part: part.piece)]})
        self.saying.clear()

    def words_in(self, directory: Path) -> list[str]:
        """Which files hold a word of what is gone, in UTF-8 or UTF-16."""
        gone = {word_of(key)[-_KNOWN_BY - len(_MARK) : -len(_MARK)].encode(): key for key in self.gone}
        traces = []
        for path, raw in files(directory):
            for way in (raw, raw.replace(b"\0", b"")):
                traces += [f"{gone[word]} in {path.name}" for word in _WORD.findall(way) if word in gone]
        return traces


def _bare(text: str) -> str:
    return "".join(text.split())
