"""The C library's heap: what it keeps of freed memory, and giving that back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import sys

# mallopt(3).
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE = 1024 * 1024
_ARENAS = 2


def bound() -> None:
    """Keeps freed memory from staying for ever. To be called once, before threads and large objects are made.

    glibc makes a heap a thread, and puts larger and larger blocks into them as it learns sizes, where one small block
    behind them holds them. Here: two heaps, and blocks over 1 MB outside of them for good. In
    benchmarks/memory_limit.py the box had 241 MB of its own at some 10,000 memories before, and 192 MB with it; no
    difference in speed was seen.
    """
    _tell("mallopt", _M_ARENA_MAX, _ARENAS)
    _tell("mallopt", _M_MMAP_THRESHOLD, _LARGE)


def trim() -> None:
    """Freed memory of all heaps goes back to the system, at once. Takes some milliseconds."""
    _tell("malloc_trim", 0)


def _tell(function: str, *arguments: int) -> None:
    if sys.platform == "linux":
        # Another C library has no such function, and perhaps no such need.
        with contextlib.suppress(AttributeError, OSError):
            getattr(ctypes.CDLL(None), function)(*arguments)
