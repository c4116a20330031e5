"""Where a list goes on: per space, the last memory that was shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from edge.errors import InvalidArgument
from edge.types import Memory, Micros


@dataclass(frozen=True, slots=True)
class PageToken:
    """Keyset paging: stays right while memories come and go."""

    places: dict[str, tuple[Micros, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> PageToken:
        if not text:
            return cls()
        try:
            raw = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
            return cls({str(name): (_number(when), _number(rowid)) for name, (when, rowid) in raw.items()})
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise InvalidArgument(
                "page_token: not one that this box gave; start again without it", field="page_token"
            ) from None

    def write(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(self.places, separators=(",", ":")).encode()).decode("ascii")

    def after(self, space: str) -> tuple[Micros, int] | None:
        return self.places.get(space)

    def behind(self, page: Iterable[Memory]) -> PageToken:
        places = dict(self.places)
        for memory in page:
            places[memory.space] = (memory.occurred_at, memory.rowid)
        return PageToken(places)


def _number(value: object) -> int:
    # SQLite's integers have 64 bits.
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    raise ValueError
