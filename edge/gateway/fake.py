"""A box in memory, for tests: what it keeps it finds by any word of it, and it can be told to be away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edge.errors import EdgeError, FailedPrecondition, NotFound
from edge.gateway.box import NEWEST, Confirmed, Found, Gone, Item, Kept, Note, Question, Rights, Saved


class FakeBox:
    """`away`: raised by every call while it is set. `lost`: raised once, after the note was kept. `notes` are those
    that came, also the repeated ones.
    """

    def __init__(self, *scopes: str) -> None:
        self.scopes = frozenset(scopes or ("read", "write", "delete"))
        self.away: EdgeError | None = None
        self.lost: EdgeError | None = None
        self.notes: list[Note] = []
        self.items: dict[str, Item] = {}
        self._states: dict[str, Saved] = {}
        self._requests: dict[str, str] = {}

    def _check(self) -> None:
        if self.away is not None:
            raise self.away

    async def close(self) -> None:
        return

    async def rights(self) -> Rights:
        self._check()
        return Rights("desk", self.scopes)

    async def search(self, question: Question) -> Found:
        self._check()
        words = question.query.split()
        found = [item for item in self.items.values() if any(word in item.text for word in words)][: question.top_k]
        lines = [f"- {item.id} ({item.day}, {item.source}) {item.text}" for item in found]
        return Found(found, "\n".join(("[相关记忆开始]", *lines, "[相关记忆结束]")) if lines else "")

    async def keep(self, note: Note) -> Kept:
        self._check()
        self.notes.append(note)
        if note.request_id not in self._requests:
            id = f"00000000-0000-7000-8000-{len(self.items):012d}"
            item = Item(f"edge://public/note/{id}", note.content, note.occurred_at, note.source, "confirmed", note.tags)
            self._requests[note.request_id] = id
            self.items[id] = item
        if self.lost is not None:
            lost, self.lost = self.lost, None
            raise lost
        return Kept([self.items[self._requests[note.request_id]]], {})

    async def read(self, id: str, level: str) -> Item:  # noqa: ARG002  # the port's
        self._check()
        if id.rpartition("/")[2] not in self.items:
            raise NotFound("id: there is no such memory", field="id")
        return self.items[id.rpartition("/")[2]]

    async def newest(self, spaces: Sequence[str], kinds: Sequence[str], states: Sequence[str]) -> Sequence[Item]:
        self._check()
        wanted = [
            item
            for item in reversed(self.items.values())
            if (not spaces or item.uri.removeprefix("edge://").rsplit("/", 2)[0] in spaces)
            and (not kinds or item.uri.rsplit("/", 2)[1] in kinds)
            and (not states or item.state in states)
        ]
        return wanted[:NEWEST]

    async def forget(self, id: str, dry_run: bool) -> Gone:
        item = await self.read(id, "detail")
        if not dry_run:
            del self.items[item.id]
        return Gone("" if dry_run else "receipt", 1, 1, [item.id])

    async def confirm(self, id: str) -> Confirmed:
        item = await self.read(id, "detail")
        if item.state != "candidate":
            raise FailedPrecondition("id: this is no candidate", field="id", reason="NOT_A_CANDIDATE")
        self.items[item.id] = replace(item, state="confirmed")
        return Confirmed(self.items[item.id], "event-1")

    async def spaces(self) -> Sequence[str]:
        self._check()
        return ["public"]

    async def state(self, key: str) -> Saved:
        self._check()
        if key not in self._states:
            raise NotFound("key: there is no such state", field="key")
        return self._states[key]

    async def states(self) -> Sequence[Saved]:
        self._check()
        return list(self._states.values())

    async def put_state(self, key: str, value: str) -> Saved:
        self._check()
        before = self._states.get(key)
        self._states[key] = Saved(key, value, 1 + (before.revision if before else 0))
        return self._states[key]
