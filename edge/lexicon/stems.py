"""English words without their endings."""

from __future__ import annotations

import functools
import threading
from typing import Any

# A stemmer keeps the word it works on in itself: one thread at a time.
_LOCK = threading.Lock()


def stem(word: str) -> str:
    """The Snowball stem (Porter 2) of a word of a-z: painted, painting and paints are paint. Others stay as they are.

    What holds a digit or another script is a number, a code or a name and has no endings: v1.5, iphone15, café.
    """
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return _stem(word)


@functools.lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    with _LOCK:
        return str(_stemmer().stemWord(word))


@functools.cache
def _stemmer() -> Any:
    # Here, so that importing the room costs nothing.
    import Stemmer

    return Stemmer.Stemmer("english", 0)
