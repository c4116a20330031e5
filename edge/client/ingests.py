"""Turns in, acknowledged one by one, whatever the connection does in between."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any

import grpc

from edge.client.backoff import Backoff
from edge.client.line import Line, turned_away
from edge.client.messages import Ingested, IngestState, Item, Message
from edge.client.requests import turn_of
from edge.errors import EdgeError, InvalidArgument, Unavailable
from edge.v1.memory_pb2 import IngestResponse
from edge.v1.types_pb2 import Turn

# A message of the wire holds 4 MiB; past this the transport would end the stream for one turn's sake.
_TURN_BYTES = 4 * 1024 * 1024 - 64 * 1024
# A message is closed at this size, however few its turns: what a slow link sends again stays small.
_MESSAGE_BYTES = 1024 * 1024
_TURNS_PER_MESSAGE = 256
# Messages that are stored but not yet searchable, or not yet taken by the caller, as a multiple of the window.
_BACKLOG = 8


class IngestSession:
    """One input, from its first turn to the last acknowledgement. `offer` may run on another thread, the rest not.

    Keeps every message until the log has it: when the connection breaks, those are sent again, in order. The box
    knows them by their fingerprints, so nothing is lost and nothing is there twice. Memory is bounded by `window`
    messages on their way and eight times as many that wait to be found or to be taken.
    """

    def __init__(
        self,
        line: Line,
        *,
        batch: int,
        window: int,
        searchable: bool,
    ) -> None:
        if not 1 <= batch <= _TURNS_PER_MESSAGE:
            raise InvalidArgument(f"batch: must be 1 to {_TURNS_PER_MESSAGE}", field="batch")
        if window < 1:
            raise InvalidArgument("window: must be 1 or more", field="window")
        self._line = line
        self._batch = batch
        self._window = window
        self._searchable = searchable
        self._backoff = Backoff(line.patience)
        self._positions = itertools.count()
        self._refs = itertools.count(1)
        self._buffer: deque[Item] = deque()
        self._messages: deque[Message] = deque()
        self._open: dict[str, Message] = {}
        self._unacknowledged = 0
        self._ended = False
        self._error: EdgeError | None = None
        # More to send, or room for it; room in the buffer; something to take.
        self._work, self._room, self._news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def full(self) -> bool:
        return len(self._buffer) >= self._batch

    def offer(self, value: Turn | Mapping[str, Any]) -> None:
        """Puts a turn in the buffer; one that can never be sent is refused by itself, in its place."""
        position = next(self._positions)
        try:
            turn = turn_of(value)
            size = turn.ByteSize()
            if size > _TURN_BYTES:
                raise InvalidArgument(f"text: this turn has {size} bytes; {_TURN_BYTES} at most", field="text")
        except InvalidArgument as error:
            refused = Ingested(position, IngestState.REJECTED, error=error)
            self._buffer.append(Item(position, None, 0, refused))
        else:
            self._buffer.append(Item(position, turn, size))

    async def feed(self, turns: Iterable[Turn | Mapping[str, Any]] | AsyncIterable[Turn | Mapping[str, Any]]) -> None:
        """Adds all of them, then ends the input, also when reading them fails."""
        try:
            if isinstance(turns, AsyncIterable):
                async for turn in turns:
                    if not await self._add(turn):
                        return
            else:
                for turn in turns:
                    if not await self._add(turn):
                        return
        finally:
            self.end()

    def wake(self) -> None:
        """After offers: let them go out."""
        self._work.set()

    async def _add(self, value: Turn | Mapping[str, Any]) -> bool:
        """Waits while the buffer is full; False when the session is over, of which its results tell."""
        self.offer(value)
        self._work.set()
        while self.full and not self._task.done():
            self._room.clear()
            await self._room.wait()
        return not self._task.done()

    async def make_room(self) -> list[Ingested]:
        """Waits until the buffer has room or results are ready, and gives these. Raises what ended the session.

        Taking results makes room too: only so many messages may wait to be taken.
        """
        self._work.set()
        while self.full and not self._settled_first() and not self._task.done():
            self._room.clear()
            await self._room.wait()
        return self._ready_or_raise()

    def end(self) -> None:
        """There are no more turns."""
        self._ended = True
        self._work.set()

    async def next_results(self) -> list[Ingested]:
        """In the order of the input, at least one; empty when the last is out. Raises what ended the session."""
        while True:
            self._news.clear()
            ready = self._ready_or_raise()
            if ready or self._task.done() or self._finished():
                return ready
            await self._news.wait()

    async def close(self) -> None:
        """Leaves; what is not acknowledged may or may not be stored."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def _settled_first(self) -> bool:
        return bool(self._messages) and self._messages[0].settled

    def _ready_or_raise(self) -> list[Ingested]:
        ready: list[Ingested] = []
        while self._settled_first():
            ready += [result for result in self._messages.popleft().results if result is not None]
        if ready:
            # The place in the backlog is free.
            self._work.set()
        else:
            self._raise_if_over()
        return ready

    def _raise_if_over(self) -> None:
        if self._error is not None:
            raise self._error

    def _finished(self) -> bool:
        return self._ended and not self._buffer and not self._messages

    def _all_settled(self) -> bool:
        return self._ended and not self._buffer and not self._open

    async def _run(self) -> None:
        try:
            while not self._all_settled():
                await self._something_to_send()
                if self._all_settled():
                    return
                error = await self._converse()
                if error is None:
                    return
                wait = self._backoff.delay(error) if self._worth_another(error) else None
                if wait is None:
                    self._error = await self._line.explained(error)
                    return
                await self._line.pause(wait, error)
        except asyncio.CancelledError:
            self._error = Unavailable("the ingest was closed before its end; run it again: duplicates are recognised")
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, the one who waits for results must hear of it
            self._error = EdgeError(f"the ingest failed inside the client ({type(error).__name__}); run it again")
            self._error.__cause__ = error
        finally:
            self._room.set()
            self._news.set()

    async def _something_to_send(self) -> None:
        while not (self._buffer or self._open or self._ended):
            self._work.clear()
            await self._work.wait()

    def _worth_another(self, error: EdgeError) -> bool:
        return turned_away(error) or (self._line.was_reached and isinstance(error, Unavailable))

    async def _converse(self) -> EdgeError | None:
        """One stream; None when all is settled, else why it ended."""
        error: EdgeError
        try:
            await self._line.ready()
        except EdgeError as unfound:
            return unfound
        call = self._line.memory.Ingest(metadata=self._line.metadata)
        writer = asyncio.create_task(self._write(call))
        try:
            with self._line.talking(call):
                async for response in call:
                    self._line.reached()
                    self._backoff.progress()
                    self._take(response)
                    # Who waits for STORED alone need not sit through the rest. (Else the box closes when done.)
                    if not self._searchable and self._all_settled():
                        return None
        except EdgeError as broken:
            error = broken
        else:
            error = Unavailable("the box ended the stream early; it may be stopping: try again")
        finally:
            writer.cancel()
            call.cancel()
            await asyncio.wait([writer])
        self._settle_acknowledged()
        return None if self._all_settled() else error

    async def _write(self, call: Any) -> None:
        try:
            # What an earlier connection took along and did not answer.
            for message in [message for message in self._messages if not message.acknowledged]:
                await call.write(message.request)
            while not self._all_sent():
                fresh = self._cut()
                if fresh is not None:
                    await call.write(fresh.request)
                    continue
                self._work.clear()
                await self._work.wait()
            await call.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # A failed write does not say why; the reader, which sees the status, does.
            return
        except BaseException:
            # Without a writer the reader would wait for ever.
            call.cancel()
            raise

    def _all_sent(self) -> bool:
        return self._ended and not self._buffer

    def _cut(self) -> Message | None:
        """A message from the front of the buffer, if there is one and the windows have room."""
        if self._unacknowledged >= self._window or len(self._messages) >= self._window * _BACKLOG:
            return None
        items: list[Item] = []
        size = 0
        while self._buffer and len(items) < self._batch:
            size += self._buffer[0].bytes
            if items and size > _MESSAGE_BYTES:
                break
            items.append(self._buffer.popleft())
        if not items:
            return None
        ref = str(next(self._refs))
        message = Message(ref, items)
        self._messages.append(message)
        self._room.set()
        if message.settled:
            self._news.set()
            return self._cut()
        self._open[ref] = message
        self._unacknowledged += 1
        return message

    def _take(self, response: IngestResponse) -> None:
        message = self._open.get(response.client_ref)
        # Not ours, or the second answer to what was settled by the first.
        if message is None:
            return
        message.take(response.results)
        second = message.acknowledged
        if not second:
            message.acknowledged = True
            message.request = None
            self._unacknowledged -= 1
        if second or not self._searchable or not message.stored:
            self._settle(response.client_ref)
        self._work.set()

    def _settle(self, ref: str) -> None:
        self._open.pop(ref).close()
        self._news.set()
        self._room.set()

    def _settle_acknowledged(self) -> None:
        """The connection is gone: what the log has stays STORED, for nobody will say more of it."""
        for ref in [ref for ref, message in self._open.items() if message.acknowledged]:
            self._settle(ref)
