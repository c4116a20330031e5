"""A small box that speaks the real wire over a real socket and misbehaves on request."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from edge.v1 import (
    appliance_pb2,
    appliance_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    pairing_pb2,
    pairing_pb2_grpc,
    types_pb2,
)


def rich(code: str, message: str, *, field: str = "", reason: str = "", retry_after: float | None = None) -> Any:
    details: list[Any] = [error_details_pb2.ErrorInfo(reason=reason or code, domain="edge-memory")]
    if field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=message)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if retry_after is not None:
        delay = duration_pb2.Duration(nanos=int(retry_after * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    status = status_pb2.Status(code=code_pb2.Code.Value(code), message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


async def abort(context: Any, status: Any) -> None:
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    await context.abort(code, status.message, (("grpc-status-details-bin", status.SerializeToString()),))


def fingerprint(turn: types_pb2.Turn) -> str:
    return hashlib.sha256(repr((turn.source, turn.session, turn.seq, turn.role, turn.text)).encode()).hexdigest()


class ScriptedBox(
    memory_pb2_grpc.MemoryServiceServicer,
    appliance_pb2_grpc.ApplianceServiceServicer,
    pairing_pb2_grpc.PairingServiceServicer,
):
    """Keeps turns in a dict. The lists of what to do wrong are used up from the front."""

    def __init__(self) -> None:
        self.addresses = ["unix:x"]
        self.log: dict[str, types_pb2.Turn] = {}
        self.memories: dict[str, types_pb2.Memory] = {}
        self.calls: list[str] = []
        self.questions: list[str] = []
        self.levels: list[str] = []
        self.batches: list[int] = []
        self.metadata: dict[str, str] = {}
        # Ingest: break the stream after so many messages were stored, unacknowledged.
        self.break_ingest_after: list[int] = []
        # Unary calls: answer with these first.
        self.turn_away: list[Any] = []
        # RecallStream: break without a word at these queries, each once.
        self.break_at: list[str] = []
        self.open_streams = 0
        # Second answers wait until so many messages were stored.
        self.second_after = 0
        # Texts that get no vector.
        self.by_words: set[str] = set()
        self.spaces = {"public": appliance_pb2.Space(name="public", memories=3, bytes=2048)}
        self.tokens: dict[str, appliance_pb2.Token] = {}
        self.silent = asyncio.Event()
        self.silent.set()

    # --- memory service

    async def Ingest(self, requests: AsyncIterator[memory_pb2.IngestRequest], context: Any) -> None:  # noqa: N802  # gRPC's name
        self._seen("Ingest", context)
        budget = self.break_ingest_after.pop(0) if self.break_ingest_after else None
        held: list[memory_pb2.IngestResponse] = []
        async for request in requests:
            await self.silent.wait()
            self.batches.append(len(request.turns))
            results = [self._store(index, turn) for index, turn in enumerate(request.turns)]
            if budget is not None:
                budget -= 1
                if budget < 0:
                    await abort(context, rich("UNAVAILABLE", "the box is stopping", retry_after=0.001))
            await context.write(memory_pb2.IngestResponse(client_ref=request.client_ref, results=results))
            for result in results:
                if result.state == memory_pb2.INGEST_STATE_STORED:
                    result.state = memory_pb2.INGEST_STATE_SEARCHABLE
                    if request.turns[result.index].text in self.by_words:
                        result.error.CopyFrom(rich("FAILED_PRECONDITION", "memory is short", reason="WORDS_ONLY"))
            held.append(memory_pb2.IngestResponse(client_ref=request.client_ref, results=results))
            if len(self.batches) >= self.second_after:
                for response in held:
                    await context.write(response)
                held = []

    def _store(self, index: int, turn: types_pb2.Turn) -> memory_pb2.IngestResult:
        if not turn.text.strip():
            error = rich("INVALID_ARGUMENT", "text: is empty; send words", field="text", reason="INVALID_FIELD")
            return memory_pb2.IngestResult(index=index, state=memory_pb2.INGEST_STATE_REJECTED, error=error)
        key = fingerprint(turn)
        state = memory_pb2.INGEST_STATE_DUPLICATE if key in self.log else memory_pb2.INGEST_STATE_STORED
        self.log[key] = turn
        memory = self.add(turn.text, source=turn.source, session=turn.session, seq=turn.seq, id=key[:32])
        return memory_pb2.IngestResult(index=index, state=state, fingerprint=key, memory_ids=[memory.id])

    def add(self, text: str, **fields: Any) -> types_pb2.Memory:
        id_ = fields.pop("id", f"id-{len(self.memories)}")
        memory = types_pb2.Memory(
            id=id_,
            uri=f"edge://public/turn/{id_}",
            space="public",
            kind=fields.pop("kind", "turn"),
            text=text,
            **fields,
        )
        memory.occurred_at.FromSeconds(1_767_225_600)
        self.memories[id_] = memory
        return memory

    async def _answer(self, request: memory_pb2.RecallRequest, context: Any) -> memory_pb2.RecallResponse:
        self.questions.append(request.query)
        if not request.query.strip():
            await abort(context, rich("INVALID_ARGUMENT", "query: is empty; ask something", field="query"))
        response = memory_pb2.RecallResponse(depth=memory_pb2.DEPTH_SHALLOW, context=f"asked {request.query}")
        response.timing.total.FromMilliseconds(1)
        for memory in self.memories.values():
            if request.query in memory.text:
                response.hits.add(memory=memory, score=0.5).signals.semantic = 0.5
        return response

    async def Recall(self, request: memory_pb2.RecallRequest, context: Any) -> memory_pb2.RecallResponse:  # noqa: N802  # gRPC's name
        await self._unary("Recall", context)
        return await self._answer(request, context)

    async def RecallStream(self, requests: AsyncIterator[memory_pb2.RecallRequest], context: Any) -> None:  # noqa: N802  # gRPC's name
        self._seen("RecallStream", context)
        self.open_streams += 1
        try:
            async for request in requests:
                await self.silent.wait()
                if request.query in self.break_at:
                    self.break_at.remove(request.query)
                    await context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
                await context.write(await self._answer(request, context))
        finally:
            self.open_streams -= 1

    async def Remember(self, request: memory_pb2.RememberRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("Remember", context)
        memory = self.add(request.text, kind=request.kind or "note", tags=request.tags)
        return memory_pb2.RememberResponse(memories=[memory])

    async def GetMemory(self, request: memory_pb2.GetMemoryRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("GetMemory", context)
        self.levels.append(types_pb2.Level.Name(request.level))
        memory = self.memories.get(request.id.rpartition("/")[2])
        if memory is None:
            await abort(context, rich("NOT_FOUND", "id: there is no such memory; `edge ls` gives ids", field="id"))
        return memory_pb2.GetMemoryResponse(memory=memory)

    async def ListMemories(self, request: memory_pb2.ListMemoriesRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("ListMemories", context)
        self.levels.append(types_pb2.Level.Name(request.level))
        start = int(request.page_token or 0)
        found = [
            memory
            for memory in self.memories.values()
            if not request.filter.kinds or memory.kind in request.filter.kinds
        ]
        end = start + request.page_size
        token = str(end) if end < len(found) else ""
        return memory_pb2.ListMemoriesResponse(memories=found[start:end], next_page_token=token)

    async def Forget(self, request: memory_pb2.ForgetRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("Forget", context)
        gone = [id_ for id_ in request.ids if id_ in self.memories]
        if not gone:
            await abort(context, rich("NOT_FOUND", "ids: none of these is a memory", field="ids"))
        if not request.dry_run:
            for id_ in gone:
                del self.memories[id_]
        receipt = memory_pb2.ForgetReceipt(
            id="" if request.dry_run else "receipt-1", dry_run=request.dry_run, memories=len(gone), memory_ids=gone
        )
        return memory_pb2.ForgetResponse(receipt=receipt)

    # --- appliance service

    def _status(self) -> appliance_pb2.Status:
        status = appliance_pb2.Status(version="0.1.0", ready=True, addresses=self.addresses, warnings=["low on space"])
        status.spaces.add(name="public", memories=len(self.memories))
        return status

    async def GetStatus(self, request: appliance_pb2.GetStatusRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("GetStatus", context)
        return appliance_pb2.GetStatusResponse(status=self._status())

    async def WatchStatus(self, request: appliance_pb2.WatchStatusRequest, context: Any) -> None:  # noqa: N802  # gRPC's name
        self._seen("WatchStatus", context)
        for _ in range(3):
            await context.write(appliance_pb2.WatchStatusResponse(status=self._status()))

    async def Rebuild(self, request: appliance_pb2.RebuildRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("Rebuild", context)
        return appliance_pb2.RebuildResponse(memories=len(self.memories), vectors=request.scope)

    async def ListSpaces(self, request: appliance_pb2.ListSpacesRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("ListSpaces", context)
        return appliance_pb2.ListSpacesResponse(spaces=self.spaces.values())

    async def CreateSpace(self, request: appliance_pb2.CreateSpaceRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("CreateSpace", context)
        space = self.spaces.setdefault(request.name, appliance_pb2.Space(name=request.name))
        return appliance_pb2.CreateSpaceResponse(space=space)

    async def DeleteSpace(self, request: appliance_pb2.DeleteSpaceRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("DeleteSpace", context)
        if self.spaces.pop(request.name, None) is None:
            await abort(context, rich("NOT_FOUND", "name: there is no such space", field="name"))
        return appliance_pb2.DeleteSpaceResponse()

    async def CreateToken(self, request: appliance_pb2.CreateTokenRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("CreateToken", context)
        token = appliance_pb2.Token(id=f"T-{request.name}", name=request.name, grants=request.grants)
        self.tokens[token.id] = token
        return appliance_pb2.CreateTokenResponse(token=token, secret="edge_s3cret")

    async def ListTokens(self, request: appliance_pb2.ListTokensRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("ListTokens", context)
        return appliance_pb2.ListTokensResponse(tokens=self.tokens.values())

    async def RevokeToken(self, request: appliance_pb2.RevokeTokenRequest, context: Any) -> Any:  # noqa: N802  # gRPC's name
        await self._unary("RevokeToken", context)
        token = self.tokens.get(request.id) or self.tokens.get(f"T-{request.id}")
        if token is None:
            await abort(context, rich("NOT_FOUND", "id: no token has this id or name", field="id"))
        assert token is not None
        token.revoked_at.FromSeconds(1_767_225_600)
        return appliance_pb2.RevokeTokenResponse(token=token)

    # --- pairing service

    async def Pair(self, requests: AsyncIterator[pairing_pb2.PairRequest], context: Any) -> None:  # noqa: N802  # gRPC's name
        """Shows a code, as on the socket."""
        self._seen("Pair", context)
        async for request in requests:
            self.questions.append(request.start.name)
            code = pairing_pb2.PairCode(code="7K2M-9QXD", fingerprint="ab" * 32, words="one two three four five six")
            code.lives.FromSeconds(600)
            await context.write(pairing_pb2.PairResponse(code=code))
            return

    # --- below

    async def _unary(self, name: str, context: Any) -> None:
        self._seen(name, context)
        await self.silent.wait()
        if self.turn_away:
            await abort(context, self.turn_away.pop(0))

    def _seen(self, name: str, context: Any) -> None:
        self.calls.append(name)
        self.metadata = {key: str(value) for key, value in context.invocation_metadata()}


@contextlib.asynccontextmanager
async def serving(box: ScriptedBox, socket: Path) -> AsyncIterator[str]:
    """The address of the box, while it serves."""
    server = grpc.aio.server()
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(box, server)
    appliance_pb2_grpc.add_ApplianceServiceServicer_to_server(box, server)
    pairing_pb2_grpc.add_PairingServiceServicer_to_server(box, server)
    socket.unlink(missing_ok=True)  # noqa: ASYNC240  # a moment, in a test
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield f"unix:{socket}"
    finally:
        await server.stop(None)
