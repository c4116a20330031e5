"""What goes into the next transaction of the ledger's writer, and what the ones before it did."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Batch:
    """The work of one `apply`: what goes into the next transaction, and what the ones before it did."""

    actions: list[Callable[[sqlite3.Connection], object]] = field(default_factory=list)
    cost: int = 0
    # The last event that is whole with these actions.
    whole_n: int | None = None
    names: set[tuple[str, str, int]] = field(default_factory=set)
    added: dict[int, list[int]] = field(default_factory=dict)
    # As keys, in their order; what is in one is not in the other.
    removed: dict[int, None] = field(default_factory=dict)
    returned: dict[int, None] = field(default_factory=dict)
    # Whether an action may change a memory's state: what the tables say of older versions is not the last word then.
    revises: bool = False

    def remove(self, rowids: Iterable[int]) -> None:
        for rowid in rowids:
            self.removed[rowid] = None
            self.returned.pop(rowid, None)

    def bring_back(self, rowids: Iterable[int]) -> None:
        for rowid in rowids:
            self.returned[rowid] = None
            self.removed.pop(rowid, None)
