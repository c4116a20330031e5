"""Evaluation sets from disk: who said what, what is asked about it, and which memories answer.

A set is a folder; its name is the set's. `memories.jsonl` has a memory a line: id, session, role, ts, text, and `sub`,
the conversation within the session. `queries.jsonl` has a question a line: id, scope, text, relevant, category, and
perhaps groups, ts. `scope` is the session whose memories are searched, or "all". `groups` are facts that several
memories tell: each counts once. Other fields, `weak` among them, do not count. `ts` is ISO 8601, in UTC where it names
no zone.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from edge.admission.check import check_text, check_time, check_turn
from edge.config import Limits
from edge.errors import InvalidArgument, NotFound
from edge.types import Micros, Turn

ALL = "all"
# When what has no time was written (2000-01-01): long before anything that has one.
LONG_AGO: Micros = 946_684_800_000_000
# Questions about what nobody said; no memory can answer them, so no ranking of memories is right.
LEFT_OUT = "adversarial"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Told:
    """A memory. `turn.seq` is its place in its conversation, `turn.source` the name of its set."""

    id: str
    session: str
    turn: Turn


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; each of `groups` holds the ids of memories of its scope of which one is enough."""

    id: str
    scope: str
    text: str
    at: Micros | None
    category: str
    groups: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class EvalSet:
    """`queries` are those that are asked, `of` is how many there are."""

    name: str
    folder: Path
    memories: tuple[Told, ...]
    queries: tuple[Asked, ...]
    of: int

    @property
    def scopes(self) -> list[str]:
        """Those that are asked about, each once, in order."""
        return list(dict.fromkeys(query.scope for query in self.queries))

    def within(self, scope: str) -> list[Told]:
        return [told for told in self.memories if scope in (ALL, told.session)]

    def asked_of(self, scope: str) -> list[Asked]:
        return [query for query in self.queries if query.scope == scope]

    def limited(self, most: int | None, seed: int) -> EvalSet:
        """With `most` of its queries: the same ones for the same seed, in their order."""
        if most is None or most >= len(self.queries):
            return self
        return replace(self, queries=sample(self.queries, most, f"{seed}/{self.name}"))


def sample(queries: Sequence[Asked], most: int, seed: str) -> tuple[Asked, ...]:
    """At most so many of them, in their order."""
    if most >= len(queries):
        return tuple(queries)
    places = random.Random(seed).sample(range(len(queries)), most)  # noqa: S311  # a seed, not a secret
    return tuple(queries[place] for place in sorted(places))


def load(folder: Path) -> EvalSet:
    """Raises NotFound for a file that is missing; InvalidArgument that names file, line and field."""
    name = folder.resolve().name
    memories, queries = folder / "memories.jsonl", folder / "queries.jsonl"
    told = _memories(memories, name)
    if not told:
        raise InvalidArgument(f"{memories}: has no memory; a set needs one at least", field="DIR")
    pools = {ALL: {one.id for one in told}}
    for one in told:
        pools.setdefault(one.session, set()).add(one.id)
    asked = list(_each(queries, lambda row: _query(row, pools)))
    kept = tuple(query for query in asked if query is not None)
    if not kept:
        raise InvalidArgument(f"{queries}: has no question that could be scored; a set needs one at least", field="DIR")
    return EvalSet(name, folder.resolve(), tuple(told), kept, len(kept))


def _memories(path: Path, name: str) -> list[Told]:
    places: Counter[str] = Counter()
    seen: set[str] = set()

    def told(row: Mapping[str, Any]) -> Told:
        id_, session, sub = _string(row, "id"), _string(row, "session"), row.get("sub")
        if id_ in seen:
            raise InvalidArgument("id: another memory has it too; give each its own", field="id")
        if session == ALL:
            raise InvalidArgument(f'session: "{ALL}" means every session; use another name', field="session")
        if sub is not None and not isinstance(sub, str):
            raise InvalidArgument("sub: must be a string", field="sub")
        seen.add(id_)
        conversation = session if not sub else sub if sub.startswith(session) else f"{session}/{sub}"
        turn = check_turn(
            source=name,
            session=conversation,
            seq=places[conversation],
            role=row.get("role") or "",
            occurred_at=LONG_AGO if (at := _time(row)) is None else at,
            text=row.get("text"),
            limits=_LIMITS,
        )
        places[conversation] += 1
        return Told(id_, session, turn)

    return list(_each(path, told))


def _query(row: Mapping[str, Any], pools: Mapping[str, set[str]]) -> Asked | None:
    """None for one that is left out."""
    category = row.get("category") or ""
    if not isinstance(category, str):
        raise InvalidArgument("category: must be a string", field="category")
    if category == LEFT_OUT:
        return None
    scope = _string(row, "scope")
    if scope not in pools:
        raise InvalidArgument(f'scope: no memory has this session; name one that has, or "{ALL}"', field="scope")
    groups = _groups(row)
    for field, group in groups:
        if not group <= pools[scope]:
            raise InvalidArgument(f"{field}: names a memory that is not in the question's scope", field=field)
    text = check_text(row.get("text"), _LIMITS.query_bytes, "text")
    return Asked(_string(row, "id"), scope, text, _time(row), category, tuple(group for _, group in groups))


def _groups(row: Mapping[str, Any]) -> list[tuple[str, frozenset[str]]]:
    """Each with its field; `relevant` stands for groups of one."""
    given = row.get("groups")
    if given is not None and not isinstance(given, list):
        raise InvalidArgument("groups: must be a list of lists of memory ids", field="groups")
    if given:
        return [(f"groups[{place}]", frozenset(_ids(group, f"groups[{place}]"))) for place, group in enumerate(given)]
    return [("relevant", frozenset((id_,))) for id_ in dict.fromkeys(_ids(row.get("relevant"), "relevant"))]


def _ids(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise InvalidArgument(f"{field}: must be a list of memory ids, one at least", field=field)
    return value


def _string(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{field}: must be a string that is not empty", field=field)
    return value


def _time(row: Mapping[str, Any]) -> Micros | None:
    raw = row.get("ts")
    if raw is None:
        return None
    try:
        # Python 3.10 knows no Z.
        when = datetime.fromisoformat(raw.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        raise InvalidArgument(
            "ts: must be a date or time as in 2026-01-31 or 2026-01-31T09:30:00Z, or null", field="ts"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return check_time((when - _EPOCH) // timedelta(microseconds=1), "ts")


def _each(path: Path, make: Callable[[Mapping[str, Any]], Any]) -> Iterator[Any]:
    """What `make` makes of each line that is not blank; its errors with file and line."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                row = _object(raw, number)
                if row is not None:
                    yield make(row)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}, line {number}: {error.message}", field=error.field) from None
    except FileNotFoundError:
        raise NotFound(
            f"{path} is missing; a set is a folder with memories.jsonl and queries.jsonl", field="DIR"
        ) from None
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read ({error.strerror}); check its permissions", field="DIR") from None


def _object(raw: bytes, number: int) -> Mapping[str, Any] | None:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        row = json.loads(text) if text else None
    except UnicodeDecodeError:
        raise InvalidArgument("line: is not UTF-8; save the file as UTF-8", field="line") from None
    except (ValueError, RecursionError):
        raise InvalidArgument("line: is not JSON; write one object a line", field="line") from None
    if not text:
        return None
    if not isinstance(row, dict):
        raise InvalidArgument("line: must be a JSON object", field="line")
    return row
