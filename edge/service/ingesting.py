"""One ingest stream: reads as fast as the box can keep up, answers each message twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from edge.errors import EdgeError, InvalidArgument, Unavailable
from edge.futures import promise
from edge.ingest import Stored, TurnResult
from edge.service.convert import status_message
from edge.types import Turn, TurnState
from edge.v1 import memory_pb2, types_pb2

logger = logging.getLogger(__name__)

EMBEDDED_LATER = "EMBEDDED_LATER"

# What is no more than this is checked, redacted and cut on the event loop, some 3 ms; more goes to a thread, so that
# other streams stay quick.
_INLINE_BYTES = 16 * 1024
_INLINE_TURNS = 16
# Seconds that embedding has to stand still before turns get their second answer without it.
_ON_HOLD = 10.0
_LOOK = 1.0


class Window:
    """Counts what is under way; `take` waits while there is too much, and lets one oversized portion through alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._waiters: list[asyncio.Future[None]] = []

    async def take(self, amount: int) -> None:
        while self._used and self._used + amount > self._size:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self._used += amount

    def give(self, amount: int) -> None:
        self._used -= amount
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


@dataclass(eq=False)
class _Message:
    request: memory_pb2.IngestRequest
    # For each turn: a rejected result, or where its result will be: (space, place in that space's batch).
    slots: list[TurnResult | tuple[str, int]]
    batches: dict[str, list[Turn]]
    stored: dict[str, Future[Stored]] = field(default_factory=dict)


class IngestStream:
    """`check` makes a Turn and its space of a message or raises; `store` hands a space's turns to its write path.

    Where `is_open` says no, `store` first has to open the space, which takes a thread's time.

    `on_hold` says why nothing is embedded at present (heat, memory), or is empty. When it lasts, what is STORED is
    answered so a second time, with that reason beside it, and the stream reads on: such turns are found by their words,
    and get their vectors when the device allows.

    `inline`: whether a small message may be looked at on the event loop, since that takes no time to speak of.
    """

    def __init__(
        self,
        check: Callable[[types_pb2.Turn], tuple[str, Turn]],
        store: Callable[[str, Sequence[Turn]], Future[Stored]],
        is_open: Callable[[str], bool],
        bytes_window: Window,
        turns_window: int,
        turns_per_message: int,
        on_hold: Callable[[], str] = str,
        *,
        inline: bool = True,
    ) -> None:
        self._inline = inline
        self._check = check
        self._store = store
        self._is_open = is_open
        self._bytes = bytes_window
        self._turns = Window(turns_window)
        self._per_message = turns_per_message
        self._on_hold = on_hold
        self._writing = asyncio.Lock()

    async def run(self, requests: AsyncIterator[memory_pb2.IngestRequest], write: Callable[[Any], Any]) -> None:
        messages: asyncio.Queue[_Message | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read_all(requests, messages))
        acknowledging = asyncio.create_task(self._acknowledge(messages, write))
        try:
            # What was taken in is answered, also when the message after it is unusable.
            await acknowledging
            await reading
        finally:
            reading.cancel()
            acknowledging.cancel()
            await asyncio.gather(reading, acknowledging, return_exceptions=True)

    async def _read_all(
        self, requests: AsyncIterator[memory_pb2.IngestRequest], messages: asyncio.Queue[_Message | None]
    ) -> None:
        try:
            async for request in requests:
                if not 1 <= len(request.turns) <= self._per_message:
                    raise InvalidArgument(
                        f"turns: a message carries 1 to {self._per_message} turns, this one {len(request.turns)}",
                        field="turns",
                    )
                # Not reading on is the back-pressure: the client's writes wait in its own flow control.
                await self._turns.take(len(request.turns))
                messages.put_nowait(await self._read(request))
        finally:
            messages.put_nowait(None)

    async def _read(self, request: memory_pb2.IngestRequest) -> _Message:
        message = _Message(request, [], {})
        size = request.ByteSize()
        await self._bytes.take(size)
        try:
            small = self._inline and size <= _INLINE_BYTES and len(request.turns) <= _INLINE_TURNS
            if small:
                self._sort(message)
            else:
                await asyncio.to_thread(self._sort, message)
            for space, turns in message.batches.items():
                if small and self._is_open(space):
                    message.stored[space] = self._try_store(space, turns)
                else:
                    message.stored[space] = await asyncio.to_thread(self._try_store, space, turns)
        finally:
            # Given back when the log has answered, whether or not this stream is still there to hear it.
            waiting = [asyncio.wrap_future(future) for future in message.stored.values()]
            answered = asyncio.gather(*waiting, return_exceptions=True)
            answered.add_done_callback(lambda _: self._bytes.give(size))
        return message

    def _sort(self, message: _Message) -> None:
        for wire in message.request.turns:
            try:
                space, turn = self._check(wire)
            except EdgeError as error:
                message.slots.append(TurnResult(TurnState.REJECTED, error=error))
                continue
            batch = message.batches.setdefault(space, [])
            message.slots.append((space, len(batch)))
            batch.append(turn)

    def _try_store(self, space: str, turns: Sequence[Turn]) -> Future[Stored]:
        try:
            return self._store(space, turns)
        except Unavailable:
            # In passing: the stream ends, and its client comes again.
            raise
        except EdgeError as error:
            refused: Future[Stored] = promise()
            refused.set_exception(error)
            return refused

    async def _acknowledge(self, messages: asyncio.Queue[_Message | None], write: Callable[[Any], Any]) -> None:
        finishing: set[asyncio.Task[None]] = set()
        try:
            while (message := await messages.get()) is not None:
                stored = {space: await _outcome(future) for space, future in message.stored.items()}
                await self._write(write, message, {space: _first(batch) for space, batch in stored.items()})
                task = asyncio.create_task(self._finish(message, stored, write))
                finishing.add(task)
                task.add_done_callback(finishing.discard)
            await asyncio.gather(*finishing)
        finally:
            for task in finishing:
                task.cancel()

    async def _finish(
        self, message: _Message, stored: dict[str, Stored | EdgeError], write: Callable[[Any], Any]
    ) -> None:
        await self._write(write, message, {space: await self._second(batch) for space, batch in stored.items()})
        self._turns.give(len(message.slots))

    async def _second(self, batch: Stored | EdgeError) -> Sequence[TurnResult] | EdgeError:
        """As found; where that failed, what is STORED stays so, with the reason beside it: the log has it."""
        if isinstance(batch, EdgeError):
            return batch
        try:
            await self._searchable(batch)
        except Exception as error:  # noqa: BLE001  # as in _outcome
            why = _told(error)
            return [
                replace(result, error=why) if result.state is TurnState.STORED else result for result in batch.results
            ]
        return batch.found()

    async def _searchable(self, batch: Stored) -> None:
        """Raises Unavailable when embedding has stood still for a while; the turns are embedded all the same, later."""
        found = asyncio.wrap_future(batch.searchable)
        held = 0.0
        while True:
            done, _ = await asyncio.wait([found], timeout=_LOOK)
            if done:
                found.result()
                return
            reason = self._on_hold()
            held = held + _LOOK if reason else 0.0
            if held >= _ON_HOLD:
                raise Unavailable(
                    f"kept, and found by its words; its vector follows when the device allows ({reason})",
                    reason=EMBEDDED_LATER,
                )

    async def _write(
        self, write: Callable[[Any], Any], message: _Message, answers: dict[str, Sequence[TurnResult] | EdgeError]
    ) -> None:
        results = [slot if isinstance(slot, TurnResult) else _at(slot[1], answers[slot[0]]) for slot in message.slots]
        response = memory_pb2.IngestResponse(
            client_ref=message.request.client_ref,
            results=[result_message(index, result) for index, result in enumerate(results)],
        )
        async with self._writing:
            await write(response)


async def _outcome(future: Future[Stored]) -> Stored | EdgeError:
    try:
        return await asyncio.wrap_future(future)
    except Exception as error:  # noqa: BLE001  # whatever it is, these turns' sender hears of it, and the stream goes on
        return _told(error)


def _first(batch: Stored | EdgeError) -> Sequence[TurnResult] | EdgeError:
    return batch if isinstance(batch, EdgeError) else batch.results


def _told(error: Exception) -> EdgeError:
    if isinstance(error, EdgeError):
        return error
    # The text of an unforeseen error may hold a memory's words.
    logger.error("an ingest failed: %s", type(error).__name__)
    return EdgeError(f"the box failed inside ({type(error).__name__}); see its log")


def _at(index: int, answer: Sequence[TurnResult] | EdgeError) -> TurnResult:
    return TurnResult(TurnState.REJECTED, error=answer) if isinstance(answer, EdgeError) else answer[index]


def result_message(index: int, result: TurnResult) -> memory_pb2.IngestResult:
    return memory_pb2.IngestResult(
        index=index,
        state=int(result.state),  # type: ignore[arg-type]  # the enums share their numbers
        fingerprint=result.fingerprint.hex(),
        memory_ids=result.memory_ids,
        error=status_message(result.error) if result.error is not None else None,
        rule=result.rule,
        hidden=result.hidden,
    )
