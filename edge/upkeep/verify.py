"""Whether a data directory is whole: every space's log against its checksums and its views."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from edge.errors import NotFound
from edge.ledger.verify import verify


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong, a sentence each; and how much was looked at."""

    problems: list[str]
    counts: dict[str, int]


def verify_data(data: Path) -> Verdict:
    """Reads only; the box may be running. Raises NotFound when this is no data directory."""
    root = data / "spaces"
    if not root.is_dir():
        raise NotFound(f"{data} holds no memories; name the data directory with --data or EDGE_DATA", field="data")
    spaces = [directory.parent for directory in (*root.glob("*/log"), *root.glob("private/*/log"))]
    problems: list[str] = []
    counts: dict[str, int] = {"spaces": len(spaces)}
    for space in sorted(spaces):
        report = verify(space)
        problems += [f"{space.relative_to(root)}: {problem}" for problem in report.problems]
        for name, value in dataclasses.asdict(report).items():
            if isinstance(value, int) and name not in ("applied", "last_n"):
                counts[name] = counts.get(name, 0) + value
    return Verdict(problems, counts)
