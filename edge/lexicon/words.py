"""The kept segmenter, stemmer and converter, and the names that the box knows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from edge.lexicon.names import Names
from edge.lexicon.runs import DOT, GLUED_RUN, LONGEST, PARTS, bigrams, fold, runs, singles
from edge.lexicon.stems import stem
from edge.lexicon.stop import CHINESE, ENGLISH

# Part of the schema of every keyword index: when this number changes, terms made before are not found by terms made
# after, and the index must be made anew. (1: no stems, traditional characters as they were, words of a dictionary.)
LEXICON_VERSION = 2

# The segmenter holds the interpreter while it works (0.3 µs a character): a long run goes in slices, so that a recall
# on another thread waits a millisecond at most.
_SLICE = 2000


class WordLexicon:
    """ports.Lexicon with a dictionary of Chinese and the stems of English. Safe from any thread; the dictionary is
    loaded by the first query in Chinese (0.3 s).

    Index: of a run without spaces every character and every pair of neighbours, the names in it, and where it is not
    Han the run in the place of words; of any other word itself, its parts and their stems. What was stored before a
    name became known is found by the name's pairs.

    Query: the same, and a term that ought to count double twice. In Chinese the dictionary says which pairs lie
    inside a word (电影) and which only touch (影的): the former count double, as do names. An English word and its
    stem count once each, so one that is its own stem counts double. Function words and the words that only make a
    question are left out while anything else remains.

    Measured (BM25 alone, mean NDCG@10 of seven pools): the dictionary's words as terms of the index .651, without
    them .652; with what the dictionary says of a query's pairs, and without its function words, .669.
    """

    version = LEXICON_VERSION

    def __init__(self, user_terms: Iterable[str] = ()) -> None:
        self._names = Names()
        self._names.add(user_terms)
        self._lock = threading.Lock()
        self._segmenter: Any = None

    def add_terms(self, terms: Iterable[str]) -> None:
        """Names (of people, pets, things) that are words from now on, in what is stored after and in queries."""
        self._names.add(terms)

    def index_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        for run, whole, parts in runs(text):
            for word in (whole, *parts):
                if word:
                    terms.append(word)
                    if (root := stem(word)) != word:
                        terms.append(root)
            if run:
                pairs = bigrams(run)
                terms.extend(singles(run))
                terms.extend(pairs)
                terms.extend(_glued(run))
                terms.extend(name for _, name in self._names.within(run, pairs) if len(name) > 2)
        return terms

    def share(self, terms: Sequence[str], text: str) -> float:
        return share(terms, text)

    def query_terms(self, text: str) -> list[str]:
        """The terms to look for: those that count double are given twice, each term's first place before any second."""
        once: dict[str, None] = {}
        twice: dict[str, None] = {}
        common: dict[str, None] = {}
        for run, whole, parts in runs(text):
            if len(run) > 1:
                self._dense(run, once, twice, common)
            elif run:
                (common if run in CHINESE else once)[run] = None
            else:
                into = common if whole in ENGLISH else once
                for word in (whole, *(part for part in parts if len(part) > 1)):
                    if word:
                        root = stem(word)
                        into[word] = into[root] = None
                        if root == word and into is once:
                            twice[word] = None
                common.update(dict.fromkeys(parts))
        return [*once, *twice] if once else list(common)

    def _dense(self, run: str, once: dict[str, None], twice: dict[str, None], common: dict[str, None]) -> None:
        """The terms of a run of two characters and more."""
        pairs = bigrams(run)
        known = list(self._names.within(run, pairs))
        within = {place for at, name in known for place in range(at, at + len(name))}
        empty: set[int] = set()
        edges: set[int] = set()
        at = 0
        for word in self._segments(run):
            if word in CHINESE:
                empty.update(place for place in range(at, at + len(word)) if place not in within)
            at += len(word)
            edges.add(at)
        for at, name in known:
            edges.difference_update(range(at + 1, at + len(name)))
        for at, pair in enumerate(pairs):
            if at in empty and at + 1 in empty:
                common[pair] = None
                continue
            once[pair] = None
            if at + 1 not in edges:
                twice[pair] = None
        for whole in (*_glued(run), *(name for _, name in known if len(name) > 2)):
            once[whole] = twice[whole] = None
        for at, char in enumerate(run):
            if singles(char):
                (common if at in empty else once)[char] = None

    def _segments(self, run: str) -> Iterator[str]:
        """The words of a run, in order and without a gap."""
        for part in PARTS.finditer(run):
            if part["han"] is None:
                yield part[0]
                continue
            for at in range(0, len(part[0]), _SLICE):
                # Without the hidden Markov model, which guesses words by their surroundings: a memory's are others.
                yield from self._jieba().cut(part[0][at : at + _SLICE], False)

    def _jieba(self) -> Any:
        if self._segmenter is None:
            with self._lock:
                if self._segmenter is None:
                    import rjieba  # here, so that importing the room costs nothing

                    # The one it makes at import in any case: a second holds another 26 MB.
                    self._segmenter = rjieba
        return self._segmenter


def _glued(run: str) -> list[str]:
    """What of a run is no Han, whole: the nearest to a word that kana, Hangul or Thai have here."""
    return [part[0] for part in GLUED_RUN.finditer(run) if 2 < len(part[0]) <= LONGEST]


def share(terms: Sequence[str], text: str) -> float:
    """See ports.Lexicon. By the letters alone, which costs a third of making the text's terms: "art" is in "start".
    Function words, which only a query of nothing else has, say nothing of any text.
    """
    folded = fold(text)
    telling = [term for term in terms if term not in ENGLISH and term not in CHINESE]
    return sum(term.replace(DOT, ".") in folded for term in telling) / len(telling) if telling else 0.0


class CharacterLexicon:
    """ports.Lexicon without a dictionary, for tests: characters of scripts without spaces, the words of others."""

    version = 1

    def index_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        for run, whole, parts in runs(text):
            if whole:
                terms.append(whole)
            terms.extend(parts)
            terms.extend(singles(run))
        return terms

    def share(self, terms: Sequence[str], text: str) -> float:
        return share(terms, text)

    def query_terms(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.index_terms(text)))
