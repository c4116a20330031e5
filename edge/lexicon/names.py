"""The names that the box knows, found in a text."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from edge.lexicon.runs import LONGEST, runs


class Names:
    """A set of names in scripts without spaces, keyed by their first two characters. Safe from any thread.

    A look-up a pair of characters finds every name in a text, also one inside another. (An Aho-Corasick automaton
    would have to be built anew for each name that is added.)
    """

    def __init__(self) -> None:
        self._by_start: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def add(self, names: Iterable[str]) -> None:
        """Names as they are written; of one in several scripts the parts without spaces (豆包AI: 豆包).

        A part of one character, or of more than LONGEST, is passed over: the one is a term as it is, the other no name.
        """
        parts = {run for name in names for run, _, _ in runs(name) if 1 < len(run) <= LONGEST}
        with self._lock:
            # A reader has the old tuple or the new one.
            for part in parts:
                known = self._by_start.get(part[:2], ())
                if part not in known:
                    self._by_start[part[:2]] = (*known, part)

    def within(self, run: str, pairs: Sequence[str]) -> Iterator[tuple[int, str]]:
        """(place, name) of every name in a folded run; `pairs` are its pairs of neighbours, in order."""
        if self._by_start.keys().isdisjoint(pairs):
            return
        for at, pair in enumerate(pairs):
            for name in self._by_start.get(pair, ()):
                if run.startswith(name, at):
                    yield at, name
