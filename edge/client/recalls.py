"""Questions over one long-lived stream, where a message costs a third of a unary call (0.3 against 0.8 ms)."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

import grpc

from edge.client.line import Line
from edge.errors import DeadlineExceeded, EdgeError, Exhausted, Unavailable
from edge.v1.memory_pb2 import RecallRequest, RecallResponse


@dataclass(eq=False, slots=True)
class _Asked:
    request: RecallRequest
    answer: asyncio.Future[RecallResponse]


class Recalls:
    """Asks in order, answers in order.

    The box ends the stream at a question it refuses: that question gets the error, and those behind it are asked
    again on a new stream. A stream that breaks by itself is not argued with: its open questions go out one by one
    through the unary call, with its retries.
    """

    def __init__(
        self,
        line: Line,
    ) -> None:
        self._line = line
        # Not yet written; written and not yet answered.
        self._waiting: deque[_Asked] = deque()
        self._written: deque[_Asked] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, request: RecallRequest, timeout: float) -> RecallResponse:
        """Raises the box's error for this question, DeadlineExceeded after `timeout` seconds."""
        await self._line.ready(timeout)
        loop = asyncio.get_running_loop()
        asked = _Asked(request, loop.create_future())
        self._waiting.append(asked)
        self._wake.set()
        if self._task is None:
            self._task = loop.create_task(self._run())
        timer = loop.call_later(timeout, _expire, asked.answer, timeout)
        try:
            return await asked.answer
        finally:
            timer.cancel()

    async def alone(self, request: RecallRequest, timeout: float | None) -> RecallResponse:
        """The same question as a call of its own, whose deadline the box knows."""
        response: RecallResponse = await self._line.call("memory", "Recall", request, timeout, again=True)
        return response

    async def close(self) -> None:
        """Ends the stream; open questions get Unavailable."""
        if self._task is not None:
            task = self._task
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        try:
            while True:
                if not self._waiting:
                    self._wake.clear()
                    await self._wake.wait()
                await self._recover(await self._converse())
        finally:
            self._task = None
            self._fail(Unavailable("the client was closed before the answer came; open a new one"))

    async def _converse(self) -> EdgeError | None:
        """One stream from its opening to its end; what ended it, or None if the box just closed it."""
        call = self._line.memory.RecallStream(metadata=self._line.metadata)
        writer = asyncio.create_task(self._write(call))
        try:
            with self._line.talking(call):
                async for response in call:
                    self._line.reached()
                    # More answers than questions: nothing to be done with them.
                    if self._written:
                        asked = self._written.popleft()
                        if not asked.answer.done():
                            asked.answer.set_result(response)
        except EdgeError as error:
            return error
        finally:
            writer.cancel()
            call.cancel()
            await asyncio.wait([writer])
        return None

    async def _write(self, call: Any) -> None:
        try:
            while True:
                while self._waiting:
                    asked = self._waiting.popleft()
                    # Its asker has left already.
                    if asked.answer.done():
                        continue
                    self._written.append(asked)
                    await call.write(asked.request)
                self._wake.clear()
                await self._wake.wait()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # A failed write does not say why; the reader, which sees the status, does.
            return
        except BaseException:
            # Without a writer the reader would wait for ever.
            call.cancel()
            raise

    async def _recover(self, error: EdgeError | None) -> None:
        # Those that were given up were written all the same: the refused one is the first of all, given up or not.
        left = [*self._written, *self._waiting]
        self._written.clear()
        self._waiting.clear()
        if error is None or isinstance(error, (Unavailable, Exhausted)):
            await self._one_by_one(left)
            return
        if left:
            first = left.pop(0)
            if not first.answer.done():
                first.answer.set_exception(error)
        self._waiting.extendleft(reversed([asked for asked in left if not asked.answer.done()]))

    async def _one_by_one(self, left: list[_Asked]) -> None:
        gone: Unavailable | None = None
        try:
            while left:
                answer = left[0].answer
                if not answer.done() and gone is not None:
                    answer.set_exception(gone)
                elif not answer.done():
                    try:
                        response = await self.alone(left[0].request, None)
                    except EdgeError as error:
                        # It was waited for as long as patience goes; the others need not wait the same again.
                        gone = error if isinstance(error, Unavailable) else None
                        if not answer.done():
                            answer.set_exception(error)
                    else:
                        if not answer.done():
                            answer.set_result(response)
                left.pop(0)
        finally:
            # Cancelled half-way: whoever is left hears of it in _fail.
            self._waiting.extendleft(reversed(left))

    def _fail(self, error: EdgeError) -> None:
        for asked in (*self._written, *self._waiting):
            if not asked.answer.done():
                asked.answer.set_exception(error)
        self._written.clear()
        self._waiting.clear()


def _expire(answer: asyncio.Future[RecallResponse], timeout: float) -> None:
    if not answer.done():
        answer.set_exception(
            DeadlineExceeded(f"no answer within {timeout:g} s; the box may be overloaded: try again, or give more time")
        )
