"""A real box behind the port, by the client: found, connected and given up on when it does not answer."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from edge.errors import DeadlineExceeded, EdgeError, FailedPrecondition, Unavailable
from edge.gateway.box import NEWEST, Confirmed, Found, Gone, Item, Kept, Note, Question, Rights, Saved

if TYPE_CHECKING:
    from edge.client import AsyncClient

_T = TypeVar("_T")

# A call that has no answer after the first of these is asked about: the box is away when it does not tell its status
# within the second. One that is there and busy may take its time.
_SOON, _PULSE = 0.8, 1.0
# A connection that breaks is tried again for so long; what has begun may take the second of these.
_PATIENCE, _LONGEST = 1.0, 60.0
# Calls under way at once: of many more, some would wait so long that the box seems away.
_AT_ONCE = 16
# The client's reason for a box that it cannot connect to.
_GONE = "UNREACHABLE"
_SCOPES = {1: "read", 2: "write", 3: "delete", 4: "admin"}
_STATES = {1: "heard", 2: "candidate", 3: "confirmed", 4: "superseded", 5: "rejected"}
# Of the context block, by the model's tokenizer. Three memories have to be below 400 tokens as JSON too, which says
# each one's whole URI.
_BLOCK_TOKENS, _LINE_TOKENS = 330, 80
_BLOCK_LINES = 8
# Memories of one moment that are looked through for the pieces beside one: those of the longest text, and some more.
_SIDE_BY_SIDE, _PAGE = 5000, 500


class RealBox:
    """For one event loop. The client is made at the first call, so that the first answer does not wait for gRPC's
    import.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        data: Path | None = None,
        tls_fingerprint: str | None = None,
    ) -> None:
        self._where = {"address": address, "token": token, "data": data, "tls_fingerprint": tls_fingerprint}
        self._client: AsyncClient | None = None
        self._making = asyncio.Lock()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        # Calls that each client has under way.
        self._asking: Counter[AsyncClient] = Counter()
        # How the box of a client is, asked for all calls that wait.
        self._pulses: dict[AsyncClient, asyncio.Future[Any]] = {}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def rights(self) -> Rights:
        status = await self._ask(lambda box: box.status(timeout=_SOON + _PULSE))
        scopes = {_SCOPES.get(scope, "") for scope in status.scopes}
        # A box from before it told says nothing: then it tells at the call itself.
        held = frozenset(scopes if status.caller else _SCOPES.values())
        return Rights(status.caller, held, status.language or "zh")

    async def search(self, question: Question) -> Found:
        lines = min(question.top_k, _BLOCK_LINES)

        def ask(box: AsyncClient) -> Awaitable[Any]:
            return box.recall(
                question.query,
                top_k=question.top_k,
                depth="deep" if question.deep else "auto",
                since=question.since,
                until=question.until,
                spaces=[question.space] if question.space else [],
                level=question.level,
                with_context=True,
                context_tokens=max(_BLOCK_TOKENS, lines * _LINE_TOKENS),
                context_ids=True,
                only_relevant=True,
            )

        answer = await self._ask(ask)
        # Of several, those that are only nearer than the rest are not what was asked for.
        hits = [hit for hit in answer.hits if hit.relevance >= 1]
        return Found([_item(hit.memory, hit.relevance) for hit in hits], answer.context, list(answer.notes))

    async def keep(self, note: Note) -> Kept:
        def ask(box: AsyncClient) -> Awaitable[Any]:
            return box.remember(
                note.content,
                tags=note.tags,
                # As usual: the box's own measure of what it is told to remember.
                weight=None if note.weight == 1.0 else note.weight,
                source=note.source,
                occurred_at=note.occurred_at,
                request_id=note.request_id,
            )

        kept = await self._ask(ask)
        return Kept([_item(memory) for memory in kept], dict(kept.hidden))

    async def read(self, id: str, level: str) -> Item:
        async def read(box: AsyncClient) -> Item:
            memory = await box.get(id, level=level)
            beside = await _beside(box, memory) if memory.pieces > 1 else {}
            previous, next = beside.get(memory.piece - 1, ""), beside.get(memory.piece + 1, "")
            return replace(_item(memory), previous=previous, next=next)

        return await self._ask(read)

    async def newest(self, spaces: Sequence[str], kinds: Sequence[str], states: Sequence[str]) -> Sequence[Item]:
        async def first(box: AsyncClient) -> list[Item]:
            found: list[Item] = []
            page = box.list(spaces=spaces, kinds=kinds, states=states, level="abstract", page_size=NEWEST)
            async for memory in page:
                found.append(_item(memory))
                if len(found) == NEWEST:
                    break
            return found

        return await self._ask(first)

    async def forget(self, id: str, dry_run: bool) -> Gone:
        receipt = await self._ask(lambda box: box.forget([id], dry_run=dry_run), again=dry_run)
        if receipt.unfinished:
            raise Unavailable(receipt.unfinished, reason="COLD_FILE_DAMAGED")
        until = receipt.erased_at.ToJsonString() if receipt.HasField("erased_at") else ""
        return Gone(receipt.id, receipt.turns, receipt.memories, list(receipt.memory_ids), until)

    async def confirm(self, id: str) -> Confirmed:
        reviewed = await self._ask(lambda box: box.confirm(id), again=False)
        return Confirmed(_item(reviewed.memories[0]), "".join(reviewed.event_ids[:1]))

    async def spaces(self) -> Sequence[str]:
        return [space.name for space in await self._ask(lambda box: box.list_spaces())]

    async def state(self, key: str) -> Saved:
        return _saved(await self._ask(lambda box: box.get_state(key)))

    async def states(self) -> Sequence[Saved]:
        async def first(box: AsyncClient) -> list[Saved]:
            found: list[Saved] = []
            async for state in box.list_states(page_size=NEWEST):
                found.append(_saved(state))
                if len(found) == NEWEST:
                    break
            return found

        return await self._ask(first)

    async def put_state(self, key: str, value: str) -> Saved:
        return _saved(await self._ask(lambda box: box.put_state(key, value), again=False))

    async def _ask(self, ask: Callable[[AsyncClient], Awaitable[_T]], *, again: bool = True) -> _T:
        """The answer. `again`: may be asked twice though the box may have done it already."""
        async with self._turns:
            try:
                return await self._ask_once(ask)
            except Unavailable as error:
                # A connection that failed lets seconds pass before it tries again, and the box may be back by now: the
                # next one is new.
                if error.reason != _GONE or not again:
                    raise
            return await self._ask_once(ask)

    async def _ask_once(self, ask: Callable[[AsyncClient], Awaitable[_T]]) -> _T:
        box = await self._connected()
        self._asking[box] += 1
        try:
            return await self._attended(box, ask)
        except Unavailable as error:
            if error.reason == _GONE and self._client is box:
                self._client = None
            raise
        finally:
            self._asking[box] -= 1
            # Not while others still wait for an answer of it.
            if self._client is not box and not self._asking[box]:
                del self._asking[box]
                self._pulses.pop(box, None)
                await box.close()

    async def _attended(self, box: AsyncClient, ask: Callable[[AsyncClient], Awaitable[_T]]) -> _T:
        """Raises Unavailable when the box does not even tell how it is."""
        task = asyncio.ensure_future(ask(box))
        try:
            while True:
                done, _ = await asyncio.wait([task], timeout=_SOON)
                if done and task.cancelled():
                    # Not by us: its connection was closed.
                    raise Unavailable(f"the connection to {box.address} was closed; try again", reason=_GONE)
                if done:
                    return task.result()
                try:
                    if box not in self._pulses or self._pulses[box].done():
                        self._pulses[box] = asyncio.ensure_future(box.status(timeout=_PULSE))
                    await asyncio.shield(self._pulses[box])
                except (Unavailable, DeadlineExceeded):
                    if not task.done():
                        raise Unavailable(
                            f"the box at {box.address} does not answer; is it running? Start it with `edge serve`, or "
                            "see `edge status`",
                            reason="SILENT",
                        ) from None
                except EdgeError:
                    # It is there, and what it says to the call itself is what counts.
                    continue
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _connected(self) -> AsyncClient:
        async with self._making:
            if self._client is None:
                module = await asyncio.to_thread(importlib.import_module, "edge.client")
                # What a bad EDGE_ADDRESS raises here is told at every call, and may be mended meanwhile.
                made: AsyncClient = module.AsyncClient(**self._where, timeout=_LONGEST, patience=_PATIENCE)
                if made.address.startswith("unix:") and (self._where["token"] or os.environ.get("EDGE_TOKEN")):
                    await made.close()
                    raise FailedPrecondition(
                        f"a token is set, but {made.address} trusts its owner and asks for none, so this assistant "
                        "would have every right; name the box by its port (--address 127.0.0.1:7430), or unset "
                        "EDGE_TOKEN",
                        reason="TOKEN_IGNORED",
                    )
                self._client = made
            return self._client


def _item(memory: Any, relevance: float = 1.0) -> Item:
    return Item(
        uri=memory.uri,
        text=memory.text,
        occurred_at=memory.occurred_at.ToMicroseconds(),
        source=memory.source,
        state=_STATES.get(memory.state, ""),
        tags=tuple(memory.tags),
        weight=memory.weight,
        piece=memory.piece,
        pieces=memory.pieces,
        relevance=relevance,
    )


async def _beside(box: AsyncClient, memory: Any) -> dict[int, str]:
    """The URIs of the pieces before and after one of the same turn, by their number, as far as they are still there."""
    said = memory.occurred_at.ToMicroseconds()
    found: dict[int, str] = {}
    page = box.list(
        spaces=[memory.space],
        kinds=[memory.kind],
        sources=[memory.source],
        sessions=[memory.session],
        since=said,
        until=said + 1,
        include_archived=True,
        level="abstract",
        page_size=_PAGE,
    )
    count = 0
    async for one in page:
        count += 1
        # A turn that was said anew has its number, but not its time of writing.
        same = (one.seq, one.pieces) == (memory.seq, memory.pieces) and one.created_at == memory.created_at
        if same and abs(one.piece - memory.piece) == 1:
            found[one.piece] = one.uri
        if len(found) == 2 or count == _SIDE_BY_SIDE:
            break
    return found


def _saved(state: Any) -> Saved:
    value = state.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return Saved(state.key, text, state.revision)
