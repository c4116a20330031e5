"""What fits into the memory that is left: predicted before anything is allocated. Pure.

Fewer threads come before shorter rows, and shorter rows before none: a text embedded slowly is better than half a text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Tokens of a row that is worth running: most questions are shorter.
SHORT_ROW = 32
# Seconds in which freed memory is believed in: others free and take it in turns, and so do our own runs.
_BELIEVE = 30.0


@dataclass(frozen=True, slots=True)
class Fit:
    """`threads` is 0 when ingests have to wait; `row_tokens` 0 when not even a short question fits.

    `batch_tokens` is what each of the threads may take at once.
    """

    threads: int
    batch_tokens: int
    row_tokens: int


def follow(room: float | None, available: int, reserve: int, elapsed: float | None) -> float:
    """Bytes to reckon with: less at once, more only slowly. No `room`: nobody said before."""
    now = float(max(0, available) - reserve)
    if room is None or elapsed is None or now <= room:
        return now
    return room + (now - room) * (1 - math.exp(-elapsed / _BELIEVE))


def fit(room: float | None, threads: int, window: int, batch: int, per_token: float, base: float) -> Fit:
    """The most that fits into `room` bytes besides one recall: a run of n tokens takes base + n * per_token bytes.

    More room never gives less.
    """
    if room is None:
        return Fit(threads, batch, window)

    def tokens(runs: int) -> int:
        # No further than can be needed, so that huge rooms stay whole numbers. No token is free.
        return int(max(0.0, min(2.0 * (window + batch), (room / runs - base) / max(1.0, per_token))))

    for count in range(threads, 0, -1):
        if tokens(count + 1) >= window:
            # Batches longer than a row come last: only when all threads run.
            return Fit(count, min(batch, tokens(count + 1) if count == threads else window), window)
    shared = tokens(2)
    if shared >= SHORT_ROW:
        return Fit(1, min(batch, shared), shared)
    alone = min(SHORT_ROW, tokens(1))
    return Fit(0, 0, alone if alone >= SHORT_ROW // 2 else 0)
