"""The same pieces through the bare model and through what is measured, in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from edge.cli.benches.result import median, quotient


@dataclass(frozen=True, slots=True)
class Round:
    """The bare model, what is measured, and the bare model again; seconds."""

    before: float
    measured: float
    after: float

    @property
    def bare(self) -> tuple[float, float]:
        return self.before, self.after

    @property
    def ratio(self) -> float:
        """What else the machine does meanwhile falls on both sides."""
        return quotient((self.before + self.after) / 2, self.measured)


async def alternate(
    bare: Callable[[], float], work: Callable[[int], Awaitable[float]], count: int, say: Callable[[str], None]
) -> list[Round]:
    """`count` rounds; `bare` and `work(number)` give the seconds they took."""
    rounds: list[Round] = []
    before = bare()
    for number in range(count):
        took = await work(number)
        rounds.append(Round(before, took, after := bare()))
        say(f"  {rounds[-1].ratio:.2f}: {took:.1f} s, between {before:.1f} s and {after:.1f} s of the ceiling")
        before = after
    return rounds


def ratio(rounds: Sequence[Round]) -> float:
    """The median round's."""
    return median([one.ratio for one in rounds])


def figures(rounds: Sequence[Round]) -> list[list[float]]:
    """Their spread tells whether something else ran: [before, measured, after] in seconds."""
    return [[one.before, one.measured, one.after] for one in rounds]
