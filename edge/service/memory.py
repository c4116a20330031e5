"""MemoryService: turns, questions, memories."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from edge.admission.check import check_query, check_turn
from edge.admission.tiers import EXPLICIT_WEIGHT
from edge.config import Config
from edge.errors import DeadlineExceeded, Exhausted, InvalidArgument, NotFound
from edge.ports import Clock
from edge.recall import zones
from edge.recall.recall import Recall
from edge.service import convert, permissions
from edge.service.ingesting import IngestStream, Window
from edge.service.paging import PageToken
from edge.service.reach import address
from edge.service.review import Reviews, in_cold_file
from edge.space import Space
from edge.spaces import Spaces
from edge.types import NOTE_KIND, Answer, MemoryState, Question, Scope, Turn, check_kind, check_space
from edge.v1 import memory_pb2, memory_pb2_grpc, types_pb2

_DEFAULT_TOP_K = 5
_DEFAULT_CONTEXT_TOKENS = 400
_DEFAULT_PAGE = 100
_REMEMBERED = "remember"
_REQUEST_ID = 64
# Seconds that one who says "remember" waits for the vector at most.
_SEARCHABLE_SECONDS = 2.0
# Seconds that a refused recall is told to wait, least and most; how much the newest answer weighs in the mean.
_SOONEST, _LATEST = 0.1, 60.0
_SMOOTHING = 0.2


class MemoryService(Reviews, memory_pb2_grpc.MemoryServiceServicer):
    """Thin: permits, converts, hands over.

    Recalls run in threads of their own, all other blocking work in `works`; nothing blocks on the event loop.
    """

    def __init__(
        self,
        spaces: Spaces,
        recall: Recall,
        config: Config,
        clock: Clock,
        recalls: ThreadPoolExecutor,
        works: ThreadPoolExecutor,
        on_hold: Callable[[], str] = str,
    ) -> None:
        """`on_hold` says why nothing is embedded just now, or is empty."""
        super().__init__(spaces, works, config, clock)
        self._on_hold = on_hold
        self._recall = recall
        self._recall_threads = recalls
        self._bytes = Window(config.limits.inflight_bytes)
        self._recalls = 0
        # Seconds from asking to answer: under a flood, what those that wait now will take.
        self._recall_seconds = 0.0

    async def Ingest(self, requests: AsyncIterator[memory_pb2.IngestRequest], context: Any) -> None:
        stream = IngestStream(
            self._turn,
            lambda space, turns: self._spaces.open(space).ingest.store(turns),
            lambda space: self._spaces.get(space) is not None,
            self._bytes,
            self._limits.stream_window,
            self._limits.turns_per_message,
            self._on_hold,
        )
        await stream.run(requests, context.write)

    async def Recall(self, request: memory_pb2.RecallRequest, context: Any) -> memory_pb2.RecallResponse:
        return await self._answer(request, _deadline(context))

    async def RecallStream(self, requests: AsyncIterator[memory_pb2.RecallRequest], context: Any) -> None:
        async for request in requests:
            await context.write(await self._answer(request, _deadline(context)))

    async def Remember(self, request: memory_pb2.RememberRequest, context: Any) -> memory_pb2.RememberResponse:
        name = _writable(request.space)
        now = self._clock.now()
        if len(request.request_id) > _REQUEST_ID:
            raise InvalidArgument(f"request_id: has more than {_REQUEST_ID} characters; use a UUID", field="request_id")
        occurred_at = convert.optional_micros(request, "occurred_at", "occurred_at")
        # Its own session, so that the same words said again later are a new memory.
        turn = check_turn(
            source=request.source or _REMEMBERED,
            session=f"{_REMEMBERED}-{request.request_id or now}",
            seq=0,
            role="user",
            occurred_at=now if occurred_at is None else occurred_at,
            text=request.text,
            tags=tuple(request.tags),
            attributes=b"",
            kind=check_kind(request.kind or NOTE_KIND),
            state=MemoryState.CONFIRMED,
            weight=request.weight if request.HasField("weight") else EXPLICIT_WEIGHT,
            limits=self._limits,
        )
        space = await self._run(self._spaces.open, name)
        said = replace(turn, by=permissions.author())
        stored = await asyncio.wrap_future(await self._run(space.ingest.store, [said]))
        # Behind a long backlog it is found by its words first.
        await asyncio.wait([asyncio.wrap_future(stored.searchable)], timeout=_SEARCHABLE_SECONDS)
        memories = await self._run(space.by_ids, stored.results[0].memory_ids)
        return memory_pb2.RememberResponse(
            memories=[convert.memory_message(memory, now, rules=self._fading) for memory in memories],
            hidden=stored.results[0].hidden,
        )

    async def GetMemory(self, request: memory_pb2.GetMemoryRequest, context: Any) -> memory_pb2.GetMemoryResponse:
        level = convert.level_of(request.level)
        name, memory_id = address(request.id, "id")
        for space in await self._named([name] if name else [], Scope.READ, "id"):
            for memory in await self._run(space.by_ids, (memory_id,)):
                message = convert.memory_message(memory, self._clock.now(), level, self._fading)
                message.replaces.extend(await self._run(space.queries.history_of, memory_id))
                return memory_pb2.GetMemoryResponse(memory=message)
            if moved := await self._run(space.cold.moved_by, memory_id):
                raise in_cold_file(moved, "id")
        raise NotFound("id: there is no such memory; `edge ls` or a recall gives ids", field="id")

    async def ListMemories(
        self, request: memory_pb2.ListMemoriesRequest, context: Any
    ) -> memory_pb2.ListMemoriesResponse:
        size = request.page_size or _DEFAULT_PAGE
        if not 1 <= size <= self._limits.page_size:
            raise InvalidArgument(f"page_size: must be 1 to {self._limits.page_size}", field="page_size")
        level, wanted = convert.level_of(request.level), convert.filter_of(request.filter, self._limits)
        token = PageToken.read(request.page_token)
        found = []
        for space in await self._named(request.spaces, Scope.READ):
            found += await self._run(space.list_page, wanted, size + 1, token.after(space.name))
        found.sort(key=lambda memory: (memory.occurred_at, memory.rowid), reverse=True)
        page, more = found[:size], found[size:]
        now = self._clock.now()
        return memory_pb2.ListMemoriesResponse(
            memories=[convert.memory_message(memory, now, level, self._fading) for memory in page],
            next_page_token=token.behind(page).write() if more else "",
        )

    async def _answer(self, request: memory_pb2.RecallRequest, deadline: float | None) -> memory_pb2.RecallResponse:
        if self._recalls >= self._limits.recalls_in_flight:
            wait = min(_LATEST, max(_SOONEST, self._recall_seconds))
            raise Exhausted(
                f"{self._recalls} recalls are already in flight; ask again in {wait:.1f} seconds", retry_after=wait
            )
        question = self._question(request, deadline)
        self._recalls += 1
        try:
            spaces = await self._named(request.spaces, Scope.READ)
            if request.wait_for:
                convert.at_most(self._limits.filter_values, request.wait_for, "wait_for")
                await self._wait_for(request.wait_for, spaces, deadline)
            begun = self._clock.monotonic()
            looking = asyncio.get_running_loop().run_in_executor(self._recall_threads, self._look, question, spaces)
            answer: Answer = await looking
            self._recall_seconds += _SMOOTHING * (self._clock.monotonic() - begun - self._recall_seconds)
        finally:
            self._recalls -= 1
        return convert.answer_message(answer, [space.name for space in spaces], self._clock.now(), self._fading)

    def _look(self, question: Question, spaces: Sequence[Space]) -> Answer:
        views: Mapping[str, Any] = {space.name: space for space in spaces}
        answer = self._recall.recall(question, views)
        for hit in answer.hits:
            # What was only nearest is not what was remembered.
            if hit.relevance >= self._config.recall.floor:
                views[hit.memory.space].touch([hit.memory.rowid])
        return answer

    def _question(self, request: memory_pb2.RecallRequest, deadline: float | None) -> Question:
        limits = self._limits
        top_k = request.top_k if request.HasField("top_k") else _DEFAULT_TOP_K
        if not 1 <= top_k <= limits.top_k:
            raise InvalidArgument(f"top_k: must be 1 to {limits.top_k}", field="top_k")
        tokens = request.context_tokens if request.HasField("context_tokens") else _DEFAULT_CONTEXT_TOKENS
        if not 1 <= tokens <= limits.context_tokens:
            raise InvalidArgument(f"context_tokens: must be 1 to {limits.context_tokens}", field="context_tokens")
        return Question(
            query=check_query(request.query, limits),
            spaces=tuple(request.spaces),
            depth=convert.depth_of(request.depth),
            top_k=top_k,
            filter=convert.filter_of(request.filter, self._limits),
            level=convert.level_of(request.level),
            with_context=request.with_context,
            context_tokens=tokens,
            context_ids=request.context_ids,
            deadline=deadline,
            asked_at=convert.optional_micros(request, "asked_at", "asked_at"),
            zone=zones.known(request.time_zone),
            only_relevant=request.only_relevant,
        )

    async def _wait_for(self, ids: Sequence[str], spaces: Sequence[Space], deadline: float | None) -> None:
        waits = [await self._run(space.found, tuple(ids)) for space in spaces]
        try:
            await asyncio.wait_for(
                asyncio.gather(*map(asyncio.wrap_future, waits)),
                None if deadline is None else max(0.0, deadline - time.monotonic()),
            )
        except asyncio.TimeoutError:
            raise DeadlineExceeded(
                "wait_for: not all of these were searchable in time; allow more", field="wait_for"
            ) from None

    def _turn(self, wire: types_pb2.Turn) -> tuple[str, Turn]:
        space = _writable(wire.space)
        occurred_at = convert.optional_micros(wire, "occurred_at", "occurred_at")
        turn = check_turn(
            source=wire.source,
            session=wire.session,
            seq=wire.seq,
            role=wire.role,
            occurred_at=self._clock.now() if occurred_at is None else occurred_at,
            text=wire.text,
            tags=tuple(wire.tags),
            attributes=wire.attributes,
            limits=self._limits,
        )
        return space, replace(turn, by=permissions.author())


def _writable(name: str) -> str:
    """The space that is named, or the caller's own; raises PermissionDenied where the caller may not write."""
    caller = permissions.current.get()
    return permissions.check_space_right(caller, Scope.WRITE, check_space(name or caller.home), "space")


def _deadline(context: Any) -> float | None:
    """As a time.monotonic() value. grpc.aio's time_remaining is None without a deadline."""
    remaining = context.time_remaining()
    return None if remaining is None else time.monotonic() + float(remaining)
