"""The client of one box, for asyncio."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from google.protobuf.duration_pb2 import Duration

from edge.client.address import choose
from edge.client.finder import discover
from edge.client.household import Household
from edge.client.ingests import IngestSession
from edge.client.line import Line
from edge.client.messages import Ingested, Remembered
from edge.client.recalls import Recalls
from edge.client.requests import (
    Moment,
    Selection,
    filter_message,
    integer,
    level_number,
    recall_message,
    scope_number,
    string,
    strings,
    timestamp,
)
from edge.client.reviewing import Reviewing
from edge.client.working import Working
from edge.errors import EdgeError, InvalidArgument
from edge.v1 import appliance_pb2, memory_pb2
from edge.v1.appliance_pb2 import RebuildResponse, Status
from edge.v1.memory_pb2 import ForgetReceipt, RecallResponse
from edge.v1.types_pb2 import Memory, Turn

if TYPE_CHECKING:
    from typing_extensions import Unpack

Memories = list[Memory]


class AsyncClient(Household, Reviewing, Working):
    """Talks to one box, over one connection that comes back by itself. For one event loop.

    Every method raises edge.errors: Unavailable when no box answers, NotFound, InvalidArgument with `field`, and so on.
    Calls that change nothing are repeated when the connection breaks, for up to `patience` seconds once the box was
    reached; a box that was never reached is reported at once. Which memories an operation speaks of is told by the
    keywords of requests.Selection: since, until (datetimes with a zone, or microseconds; half-open), tags, kinds,
    sources, sessions, include_archived.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        data: Path | None = None,
        tls_fingerprint: str | None = None,
        timeout: float = 30.0,
        patience: float = 30.0,
    ) -> None:
        """address: host:port, unix:/path, or the name or id of a paired box; by default EDGE_ADDRESS, the data
        directory's socket, 127.0.0.1:7430 if a box is there, else the one box that is paired.

        token: by default EDGE_TOKEN, else a paired box's own. data: the data directory whose socket is meant.
        tls_fingerprint: the SHA-256 of the box's certificate in hex, or its six words, for a box that is not paired; by
        default EDGE_TLS_FINGERPRINT. timeout: seconds for a call that is given none. Nothing is connected before the
        first call, and no other machine is ever talked to without TLS.
        """
        self._line = Line(choose(address, data, fingerprint=tls_fingerprint), token, timeout, patience)
        self._recalls = Recalls(self._line)
        self._sessions: set[IngestSession] = set()

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        token: str | None = None,
        *,
        data: Path | None = None,
        tls_fingerprint: str | None = None,
        timeout: float = 30.0,
        patience: float = 30.0,
    ) -> AsyncClient:
        """The same as the constructor, for `async with AsyncClient.connect() as box:`."""
        return cls(address, token, data=data, tls_fingerprint=tls_fingerprint, timeout=timeout, patience=patience)

    discover = staticmethod(discover)

    @property
    def address(self) -> str:
        return self._line.address

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends everything that is open; what is in flight gets Unavailable. Closing twice is fine."""
        await self._recalls.close()
        for session in [*self._sessions]:
            await self.close_ingest(session)
        await self._line.close()

    async def recall(
        self,
        query: str,
        *,
        spaces: Sequence[str] = (),
        depth: str = "auto",
        top_k: int | None = None,
        level: str = "detail",
        with_context: bool = False,
        context_tokens: int | None = None,
        wait_for: Sequence[str] = (),
        asked_at: Moment | None = None,
        time_zone: str | None = None,
        only_relevant: bool = False,
        context_ids: bool = False,
        timeout: float | None = None,
        **which: Unpack[Selection],
    ) -> RecallResponse:
        """The memories that answer the query, best first; depth is "auto", "shallow" or "deep".

        Without `timeout` and `wait_for` it goes over one stream kept for all recalls of this client, which is three
        times quicker, and answers come in the order of asking; with either, by a call of its own, so that the box
        knows the deadline. level: "abstract", "overview" or "detail". wait_for: ids that must be searchable first.
        Times in the query are those of `time_zone` (None: this machine's) as of `asked_at` (None: now). only_relevant:
        no hits rather than the nearest, when none bears on the question. context_ids: each line of the context begins
        with its memory's id.
        """
        request = recall_message(
            query,
            spaces=spaces,
            depth=depth,
            top_k=top_k,
            filter=filter_message(which),
            level=level,
            with_context=with_context,
            context_tokens=context_tokens,
            wait_for=wait_for,
            asked_at=asked_at,
            time_zone=time_zone,
            only_relevant=only_relevant,
            context_ids=context_ids,
        )
        if timeout is None and not wait_for:
            return await self._recalls.ask(request, self._line.timeout)
        return await self._recalls.alone(request, timeout)

    async def remember(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        weight: float | None = None,
        space: str = "",
        kind: str = "",
        source: str = "",
        occurred_at: Moment | None = None,
        request_id: str = "",
        timeout: float | None = None,
    ) -> Remembered:
        """Keeps a sentence, confirmed at once; the memories it became, which can be found by then.

        Passwords, keys, cards and identity numbers are not kept: the answer's `hidden` counts them. source: who hands
        it in; occurred_at: when it was said (None: now). With a request_id, a UUID or the like, the call is repeated
        when the connection breaks, and may be by the caller: the same text of the same source is kept once.
        """
        request = memory_pb2.RememberRequest(
            text=string(text, "text"),
            tags=strings(tags, "tags"),
            weight=weight,
            space=string(space, "space"),
            kind=string(kind, "kind"),
            request_id=string(request_id, "request_id"),
            source=string(source, "source"),
            occurred_at=None if occurred_at is None else timestamp(occurred_at, "occurred_at"),
        )
        response: memory_pb2.RememberResponse = await self._line.call(
            "memory", "Remember", request, timeout, again=bool(request_id)
        )
        return Remembered(response.memories, response.hidden)

    async def get(self, id: str, *, level: str = "detail", timeout: float | None = None) -> Memory:
        """The memory of an id or an edge:// URI. Raises NotFound."""
        request = memory_pb2.GetMemoryRequest(id=string(id, "id"), level=level_number(level))
        response: memory_pb2.GetMemoryResponse = await self._line.call(
            "memory", "GetMemory", request, timeout, again=True
        )
        return response.memory

    async def forget(
        self,
        ids: Sequence[str] = (),
        *,
        spaces: Sequence[str] = (),
        dry_run: bool = False,
        now: bool = False,
        timeout: float | None = None,
        **which: Unpack[Selection],
    ) -> ForgetReceipt:
        """Erases for good, by ids (or URIs) or by selection; the receipt says what went, in numbers.

        Where the box leaves time to undo it, `erased_at` of the receipt says until when; `now` does not wait for that,
        and without ids and selection erases all that is only hidden so far. `unfinished` of the receipt names damaged
        cold files that may still have some of it, and says what to do; else it is empty.
        """
        request = memory_pb2.ForgetRequest(
            ids=strings(ids, "ids"),
            filter=filter_message(which),
            dry_run=dry_run,
            spaces=strings(spaces, "spaces"),
            now=now,
        )
        response: memory_pb2.ForgetResponse = await self._line.call("memory", "Forget", request, timeout, again=dry_run)
        return response.receipt

    async def ingest(
        self,
        turns: Iterable[Turn | Mapping[str, Any]] | AsyncIterable[Turn | Mapping[str, Any]],
        *,
        wait: str = "stored",
        batch: int = 64,
        window: int = 8,
    ) -> AsyncIterator[Ingested]:
        """Streams turns in; yields what became of each, in their order.

        wait: "stored" yields when the log has a turn, "searchable" when it can be found. batch: turns a message at
        most (1 to 256); window: messages on their way at most. A rejected turn stops nothing. When the connection
        breaks, what was not acknowledged is sent again: what the broken connection had delivered comes out as
        DUPLICATE, and what was STORED but not yet found stays STORED. A plain iterable is read on the event loop:
        give an async one if reading it may block.
        """
        session = self.open_ingest(wait=wait, batch=batch, window=window)
        feeder = asyncio.create_task(session.feed(turns))
        try:
            while results := await session.next_results():
                for result in results:
                    yield result
            # An error of the caller's own iterable is the caller's to see.
            await feeder
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)
            await self.close_ingest(session)

    def open_ingest(self, *, wait: str = "stored", batch: int = 64, window: int = 8) -> IngestSession:
        """The session below `ingest`, for callers that feed it by hand; close it with `close_ingest`."""
        if wait not in ("stored", "searchable"):
            raise InvalidArgument('wait: use "stored" or "searchable"', field="wait")
        session = IngestSession(self._line, batch=batch, window=window, searchable=wait == "searchable")
        self._sessions.add(session)
        return session

    async def close_ingest(self, session: IngestSession) -> None:
        """Ends a session; what was not acknowledged may or may not be stored."""
        self._sessions.discard(session)
        await session.close()

    async def status(self, *, timeout: float | None = None) -> Status:
        """How the box is."""
        response: appliance_pb2.GetStatusResponse = await self._line.call(
            "appliance", "GetStatus", appliance_pb2.GetStatusRequest(), timeout, again=True
        )
        return response.status

    async def watch_status(self, interval: float = 1.0) -> AsyncIterator[Status]:
        """A status now and every `interval` seconds; raises what ends the stream."""
        nanos = round(interval * 1e9) if math.isfinite(interval) else 0
        if not 0 < nanos < 86_400 * 10**9:
            raise InvalidArgument("interval: must be above 0 and below a day, in seconds", field="interval")
        request = appliance_pb2.WatchStatusRequest(
            interval=Duration(seconds=nanos // 10**9, nanos=nanos % 10**9),
        )
        await self._line.ready()
        call = self._line.appliance.WatchStatus(request, metadata=self._line.metadata)
        responses = aiter(call)
        try:
            while True:
                with self._line.talking(call):
                    response = await anext(responses, None)
                if response is None:
                    return
                self._line.reached()
                yield response.status
        except EdgeError as error:
            raise await self._line.explained(error) from None
        finally:
            call.cancel()

    async def rebuild(
        self, scope: str = "index", *, spaces: Sequence[str] = (), timeout: float | None = None
    ) -> RebuildResponse:
        """Makes the views of the log anew: "index" from the stored vectors, "log" everything. No timeout by default."""
        request = appliance_pb2.RebuildRequest(scope=scope_number(scope), spaces=strings(spaces, "spaces"))
        response: RebuildResponse = await self._line.call(
            "appliance", "Rebuild", request, math.inf if timeout is None else timeout, again=False
        )
        return response

    # The last of the class, for inside it the name hides the built-in.
    async def list(
        self,
        *,
        spaces: Sequence[str] = (),
        level: str = "detail",
        page_size: int = 100,
        timeout: float | None = None,
        **which: Unpack[Selection],
    ) -> AsyncIterator[Memory]:
        """Memories, newest first, page after page as they are taken; the timeout is for one page."""
        request = memory_pb2.ListMemoriesRequest(
            spaces=strings(spaces, "spaces"),
            filter=filter_message(which),
            page_size=integer(page_size, "page_size", 32),
            level=level_number(level),
        )
        while True:
            response: memory_pb2.ListMemoriesResponse = await self._line.call(
                "memory", "ListMemories", request, timeout, again=True
            )
            for memory in response.memories:
                yield memory
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token
