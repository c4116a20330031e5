"""Finds the secrets of a text and puts typed placeholders in their place."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import ahocorasick_rs

from edge.admission.redact import codes, connections, credentials, keys, tokens
from edge.admission.redact.cards import cards
from edge.admission.redact.custom import Patterns
from edge.admission.redact.fold import BARRIER, View, view
from edge.admission.redact.identities import identities
from edge.admission.redact.kinds import PLACEHOLDERS, RANK, Span
from edge.admission.redact.optional import addresses, phones
from edge.admission.redact.runs import runs
from edge.errors import InvalidArgument

_OPTIONAL: Mapping[str, Callable[[View], Iterator[Span]]] = {"phone": phones, "address": addresses}
# What is left after a redaction is looked at again, since it may read differently then. The second look finds nothing
# nearly always; the bound is for texts made to come out new each time.
_ROUNDS = 8
_NO_PATTERNS: Mapping[str, str] = MappingProxyType({})
_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Redacted:
    """`counts`: secrets hidden, by the name of their class (`bank_card`) or of the owner's pattern. `text` is the very
    object that came in when nothing was found.
    """

    text: str
    counts: Mapping[str, int]


class Redactor:
    """Pure and safe from any thread. Linear in the text's length, but for the owner's patterns: they have a time limit.

    Hides the five classes always; of `optional`, `phone` and `address`, those that are named. `patterns` are the
    owner's own, by the name that their placeholder and their count get. Raises InvalidArgument, whose field
    is `recall.language`, `admission.optional` or `admission.patterns.NAME`. The rules are written down at the top of
    each module of this package. Redacting again changes nothing.
    """

    def __init__(
        self,
        language: str = "zh",
        optional: Sequence[str] = (),
        patterns: Mapping[str, str] = _NO_PATTERNS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if language not in PLACEHOLDERS:
            raise InvalidArgument("recall.language: must be zh or en", field="recall.language")
        for name in optional:
            if name not in _OPTIONAL:
                raise InvalidArgument(
                    f"admission.optional: no class {name!r}; there are {', '.join(_OPTIONAL)}",
                    field="admission.optional",
                )
        self._placeholders = PLACEHOLDERS[language] | {name: f"[{name}]" for name in patterns}
        self._more = [_OPTIONAL[name] for name in dict.fromkeys(optional)]
        if patterns:
            self._more.append(Patterns(patterns, clock).find)
        known = {p for words in PLACEHOLDERS.values() for p in words.values()} | set(self._placeholders.values())
        self._known = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
        self._search, self._finders = _keywords()

    def redact(self, text: str) -> Redacted:
        counts: dict[str, int] = {}
        changed = text
        for _ in range(_ROUNDS):
            seen = view(changed, self._known)
            found = self._spans(seen)
            # What an earlier round hid is no secret again; only a private key may enclose it.
            spans = found and _merged(
                s for s in found if s.name == "private_key" or BARRIER not in seen.text[s.start : s.end]
            )
            if not spans:
                break
            for span in spans:
                counts[span.name] = counts.get(span.name, 0) + 1
            changed = self._replaced(changed, seen, spans)
        return Redacted(changed, MappingProxyType(counts)) if counts else Redacted(text, _NOTHING)

    def placeholder(self, name: str) -> str:
        """What stands in the place of a secret of this class or pattern."""
        return self._placeholders[name]

    def _spans(self, seen: View) -> list[Span]:
        found: list[Span] = []
        until = 0
        for index, start, end in self._search.find_matches_as_indexes(seen.low, overlapping=True):
            # The inside of a key begins like many things; what lies in one that was found is not looked at again.
            if end > until and (span := self._finders[index](seen, start, end)):
                until = span.end if span.name in ("private_key", "token") else until
                found.append(span)
        for run in runs(seen.text):
            taken = list(identities(run))
            found += [span for span, _, _ in taken]
            found += cards(run, [(first, stop) for _, first, stop in taken])
        for finder in self._more:
            found += finder(seen)
        return found

    def _replaced(self, text: str, seen: View, spans: Sequence[Span]) -> str:
        parts: list[str] = []
        at = 0
        for span in spans:
            start, end = seen.original(span.start, span.end)
            parts += (text[at:start], self._placeholders[span.name])
            at = end
        return "".join((*parts, text[at:]))


@lru_cache(maxsize=1)
def _keywords() -> tuple[ahocorasick_rs.AhoCorasick, list[tokens.Finder]]:
    """One automaton of every word that announces a secret: one pass, whatever their number (Aho and Corasick, 1975)."""
    table = [pair for room in (keys, tokens, credentials, connections, codes) for pair in room.finders().items()]
    search = ahocorasick_rs.AhoCorasick(
        [word for word, _ in table], implementation=ahocorasick_rs.Implementation.DFA, store_patterns=False
    )
    return search, [finder for _, finder in table]


def _merged(found: Iterable[Span]) -> list[Span]:
    """In order and disjoint; those that overlap become one, named after the highest in rank."""
    merged: list[Span] = []
    for span in sorted(found):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            name = min(last.name, span.name, key=lambda name: RANK.get(name, len(RANK)))
            merged[-1] = Span(last.start, max(last.end, span.end), name)
        elif span.end > span.start:
            merged.append(span)
    return merged
