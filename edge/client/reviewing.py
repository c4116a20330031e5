"""Deciding on what was proposed, archiving, and taking back what was done. A part of AsyncClient."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edge.client.line import Line
from edge.client.requests import integer, string, strings
from edge.errors import NotFound
from edge.v1 import memory_pb2
from edge.v1.memory_pb2 import Deed, UndoResponse
from edge.v1.types_pb2 import Memory

# Ids of one call.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Memories that were decided on, or moved; ids that are passed over; and what to undo it by."""

    memories: Sequence[Memory]
    passed_over: Sequence[str]
    event_ids: Sequence[str]


class Reviewing:
    """What a token needs for these is READ to list and WRITE to decide; to undo what others handed in, DELETE."""

    _line: Line
    # AsyncClient.list
    list: Any

    def candidates(self, *, page_size: int = 1000, **options: Any) -> AsyncIterator[Memory]:
        """What was proposed and nobody has decided on yet, newest first; more keywords are those of `list`."""
        found: AsyncIterator[Memory] = self.list(states=["candidate"], page_size=page_size, **options)
        return found

    async def confirm(self, ids: str | Sequence[str], *, timeout: float | None = None) -> Reviewed:
        """Candidates are confirmed. One id that is no candidate raises NotFound, or FailedPrecondition with the state
        it is in; of several, those are passed over. Each thousand is an event of its own."""
        return await self._review(ids, memory_pb2.VERDICT_CONFIRM, timeout)

    async def reject(self, ids: str | Sequence[str], *, timeout: float | None = None) -> Reviewed:
        """Candidates are turned down: out of recalls and lists. See `confirm`."""
        return await self._review(ids, memory_pb2.VERDICT_REJECT, timeout)

    async def archive(
        self, ids: str | Sequence[str], *, restore: bool = False, timeout: float | None = None
    ) -> Reviewed:
        """Takes memories (ids or URIs) out of normal recalls and lists; with `restore` brings them back. Those that are
        so already, are replaced or rejected, or are not here, are passed over; raises NotFound where none is here. Each
        thousand is an event of its own."""
        wanted = [string(ids, "ids")] if isinstance(ids, str) else strings(ids, "ids")
        memories: list[Memory] = []
        passed_over: list[str] = []
        event_ids: list[str] = []
        found, missing = not wanted, NotFound("ids: none of these is here", field="ids")
        for start in range(0, len(wanted), _AT_ONCE):
            request = memory_pb2.ArchiveRequest(ids=wanted[start : start + _AT_ONCE], restore=restore)
            response: memory_pb2.ArchiveResponse
            try:
                response = await self._line.call("memory", "Archive", request, timeout, again=False)
            except NotFound as error:
                # Another thousand may be here, and what was done with it has to be told.
                missing = error
                passed_over += request.ids
                continue
            found = True
            memories += response.memories
            passed_over += response.passed_over
            event_ids += response.event_ids
        if not found:
            raise missing
        return Reviewed(memories, passed_over, event_ids)

    async def undo(self, event_id: str = "", *, dry_run: bool = False, timeout: float | None = None) -> UndoResponse:
        """Takes back what was done; empty: the caller's own last that can be undone. `deeds` gives ids.

        To undo the handing in of a turn is to forget it; the answer has its receipt. Raises NotFound, and
        FailedPrecondition where it cannot be undone, and why.
        """
        request = memory_pb2.UndoRequest(event_id=string(event_id, "event_id"), dry_run=dry_run)
        response: UndoResponse = await self._line.call("memory", "Undo", request, timeout, again=dry_run)
        return response

    async def deeds(
        self, *, spaces: Sequence[str] = (), limit: int = 20, mine: bool = False, timeout: float | None = None
    ) -> Sequence[Deed]:
        """What was done to memories, and what was handed in, newest first; `mine`: by this caller only."""
        request = memory_pb2.ListDeedsRequest(
            spaces=strings(spaces, "spaces"), limit=integer(limit, "limit", 32), mine=mine
        )
        response: memory_pb2.ListDeedsResponse = await self._line.call(
            "memory", "ListDeeds", request, timeout, again=True
        )
        return [*response.deeds]

    async def _review(
        self, ids: str | Sequence[str], verdict: memory_pb2.Verdict.ValueType, timeout: float | None
    ) -> Reviewed:
        memories: Sequence[Memory] = []
        passed_over: Sequence[str] = []
        event_ids: Sequence[str] = []
        for request in _requests(ids, verdict):
            response: memory_pb2.ReviewCandidateResponse = await self._line.call(
                "memory", "ReviewCandidate", request, timeout, again=False
            )
            memories = [*memories, *([response.memory] if request.id else response.memories)]
            passed_over = [*passed_over, *response.passed_over]
            event_ids = [*event_ids, *response.event_ids]
        return Reviewed(memories, passed_over, event_ids)


def _requests(
    ids: str | Sequence[str], verdict: memory_pb2.Verdict.ValueType
) -> Iterator[memory_pb2.ReviewCandidateRequest]:
    if isinstance(ids, str):
        yield memory_pb2.ReviewCandidateRequest(id=string(ids, "id"), verdict=verdict)
        return
    wanted = strings(ids, "ids")
    for start in range(0, len(wanted), _AT_ONCE):
        yield memory_pb2.ReviewCandidateRequest(ids=wanted[start : start + _AT_ONCE], verdict=verdict)
