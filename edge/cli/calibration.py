"""What `edge model calibrate` shows of its comparison."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from edge.cli.show import size

if TYPE_CHECKING:
    from edge.embedder.variants import Comparison

_HEADS = ("variant", "size", "tokens/s, 1 thread", "all", "times stock", "mean", "worst", "in batches", "")


def rows(compared: Comparison) -> list[dict[str, Any]]:
    """For programs: sizes in bytes, speeds in tokens a second."""
    return [{**dataclasses.asdict(row), "independent": row.independent} for row in compared.rows]


def text_rows(compared: Comparison) -> list[tuple[str, ...]]:
    """The table with its heads; "times stock" is of the speed with all threads."""
    stock = next((row.best for row in compared.rows if row.variant == "stock"), 0.0)
    return [
        _HEADS,
        *(
            (
                row.variant,
                size(row.bytes),
                f"{row.single:,.0f}",
                f"{row.best:,.0f}",
                f"{row.best / stock:.2f}" if stock else "-",
                _cosine(row.mean),
                _cosine(row.worst),
                _cosine(row.batch),
                row.verdict,
            )
            for row in compared.rows
        ),
    ]


def sentence(model: str, before: str, after: str) -> str:
    """What taking that variant means for the owner."""
    if before == after:
        return f"{model} goes on as {after}"
    return (
        f"{model} runs as {after} from the box's next start on (it was {before}); its vectors are others, so every "
        "memory gets a new one in the background then, and is found by its words until it has it"
    )


def _cosine(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
