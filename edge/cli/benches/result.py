"""What a bench found: ratios with their targets and what they were measured against. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """`target` is the bound that issues ask for ("at least" or "at most" it), None for a figure without one."""

    name: str
    value: float
    target: float | None = None
    at_least: bool = True
    against: str = ""

    @property
    def met(self) -> bool | None:
        """None where there is no target."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True, slots=True)
class Result:
    bench: str
    ratios: Sequence[Ratio]
    figures: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The one object of `edge bench NAME --json`."""
        return {
            "bench": self.bench,
            "ratios": {ratio.name: rounded(float(ratio.value)) for ratio in self.ratios},
            "figures": rounded(self.figures),
            "machine": rounded(self.machine),
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A line a ratio, under the heads."""
        return [("ratio", "measured", "target", "", "measured against"), *(_row(ratio) for ratio in self.ratios)]


def _row(ratio: Ratio) -> tuple[str, ...]:
    target = "" if ratio.target is None else f"{'at least' if ratio.at_least else 'at most'} {ratio.target:g}"
    verdict = {True: "met", False: "MISSED", None: ""}[ratio.met]
    return ratio.name, f"{ratio.value:.2f}", target, verdict, ratio.against


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of them do not exceed ("nearest rank"). NaN for no values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def quotient(value: float, by: float) -> float:
    """NaN instead of an error when there is nothing to divide by: the rest of the bench is still worth reading."""
    return value / by if by else math.nan


def rounded(value: Any) -> Any:
    """The same with every float to four significant digits, and NaN, which JSON cannot hold, as None."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return value
