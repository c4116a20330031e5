"""The kept segmenter: jieba's dictionary, in Rust."""

from __future__ import annotations

import threading
from typing import Any

from edge.lexicon.runs import GLUED_RUN, HAN_RUN, LONGEST, bigrams, runs, singles

# Part of the schema of every keyword index: when this number changes, terms made before are not found by terms made
# after, and the index must be made anew.
LEXICON_VERSION = 1

# The segmenter holds the interpreter while it works (0.3 µs a character): a long run goes in slices, so that a recall
# on another thread waits a millisecond at most.
_SLICE = 2000

# Left out of a query (never of the index) while it has other terms: every memory has them.
_ENGLISH = (
    "a an and are as at be been but by can could did do does for from had has have he her him his how i if in is it "
    "its me my of on or our she so that the their them they this to was we were what when where which who why will "
    "with would you your dont didnt doesnt isnt im ive whats"
)
_CHINESE = "的了在是我你您他她它们吗呢吧啊呀么和与就都也很不有这那个过着得地"
_STOP = frozenset(_ENGLISH.split()) | frozenset(_CHINESE)


class WordLexicon:
    """ports.Lexicon with a dictionary of Chinese. Safe from any thread; the dictionary is loaded at first use (0.3 s).

    Index: of a Chinese run every character, every pair of neighbours, and the dictionary's words of three and more
    (shorter ones are among the former, and are not counted twice); of other scripts without spaces the run in the
    place of words; of any other word itself and its parts.

    Query: of a run longer than one character its pairs and its words of three and more, not its single characters:
    each of those is in a large part of all memories and would drown the rest (measured: NDCG@10 of the fused order on
    madial with noise .534 without, .498 with them). A run of one character is that character. Of a compound the
    whole and its parts of two characters and more. Function words are left out while anything else remains.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segmenter: Any = None

    def index_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        for run, whole, parts in runs(text):
            if whole:
                terms.append(whole)
            terms.extend(parts)
            if run:
                terms.extend(singles(run))
                terms.extend(bigrams(run))
                terms.extend(self._long_words(run))
        return terms

    def query_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        common: list[str] = []
        for run, whole, parts in runs(text):
            if len(run) > 1:
                terms.extend(bigrams(run))
                terms.extend(self._long_words(run))
                continue
            into = common if (run or whole) in _STOP else terms
            into.extend(term for term in (run or whole, *(part for part in parts if len(part) > 1)) if term)
            common.extend(parts)
        return list(dict.fromkeys(terms or common))

    def _long_words(self, run: str) -> list[str]:
        words = [match[0] for match in GLUED_RUN.finditer(run) if 2 < len(match[0]) <= LONGEST]
        for match in HAN_RUN.finditer(run):
            han = match[0]
            if len(han) < 3:
                continue
            for at in range(0, len(han), _SLICE):
                # Without the hidden Markov model, which guesses words by their surroundings: a query's are others.
                words.extend(w for w in self._jieba().cut_for_search(han[at : at + _SLICE], False) if len(w) > 2)
        return words

    def _jieba(self) -> Any:
        if self._segmenter is None:
            with self._lock:
                if self._segmenter is None:
                    import rjieba  # here, so that importing the room costs nothing

                    # The one it makes at import in any case: a second holds another 26 MB.
                    self._segmenter = rjieba
        return self._segmenter


class CharacterLexicon:
    """ports.Lexicon without a dictionary, for tests: characters of scripts without spaces, the words of others."""

    def index_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        for run, whole, parts in runs(text):
            if whole:
                terms.append(whole)
            terms.extend(parts)
            terms.extend(singles(run))
        return terms

    def query_terms(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.index_terms(text)))
