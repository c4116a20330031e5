"""The same client for code without an event loop: one background thread runs one, for all clients of the process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from edge.client.asynchronous import AsyncClient
from edge.client.finder import discover
from edge.client.household import NewToken
from edge.client.ingests import IngestSession
from edge.client.messages import Ingested, Remembered
from edge.client.reviewing import Reviewed
from edge.client.working import State
from edge.errors import EdgeError
from edge.v1.appliance_pb2 import RebuildResponse, Space, Status, Token
from edge.v1.memory_pb2 import Deed, ForgetReceipt, RecallResponse, UndoResponse
from edge.v1.types_pb2 import Memory, Turn
from edge.v1.working_pb2 import RecentTurnsResponse

if TYPE_CHECKING:
    from edge.lan.discover import Found

_T = TypeVar("_T")

_starting = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
# Seconds that one who was interrupted waits at most for the call to have ended.
_LEAVING = 1.0


def _shared_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, running as long as it does: grpc.aio polls once a process, and minds loops that end."""
    with _starting:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = _new_loop()
            threading.Thread(target=loop.run_forever, name="edge-client", daemon=True).start()
        return loop


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform != "win32":
        try:
            import uvloop
        except ImportError:
            pass
        else:
            # A quarter off a gRPC round trip.
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """What it gives, from the event loop that all clients of this process share."""
    ended = threading.Event()

    async def whole() -> _T:
        try:
            return await work
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(whole(), _shared_loop())
    try:
        return future.result()
    except BaseException:
        # The caller was interrupted (Ctrl-C): the call must not go on without it.
        if future.cancel():
            ended.wait(_LEAVING)
        raise


class Client:
    """AsyncClient's methods, blocking; safe from any thread. See there for what they take, give and raise."""

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
        self._client = AsyncClient(
            address, token, data=data, tls_fingerprint=tls_fingerprint, timeout=timeout, patience=patience
        )
        self._loop = _shared_loop()
        self._closed = False

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
    ) -> Client:
        """The same as the constructor, for `with Client.connect() as box:`."""
        return cls(address, token, data=data, tls_fingerprint=tls_fingerprint, timeout=timeout, patience=patience)

    @staticmethod
    def discover(seconds: float = 3.0) -> Sequence[Found]:
        """See edge.client.discover."""
        return run(discover(seconds))

    @property
    def address(self) -> str:
        return self._client.address

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything that this client has open. Closing twice is fine."""
        if self._closed:
            return
        try:
            self._run(self._client.close())
        finally:
            self._closed = True

    def recall(self, query: str, **options: Any) -> RecallResponse:
        """See AsyncClient.recall."""
        return self._run(self._client.recall(query, **options))

    def remember(self, text: str, **options: Any) -> Remembered:
        """See AsyncClient.remember."""
        return self._run(self._client.remember(text, **options))

    def get(self, id: str, **options: Any) -> Memory:
        """See AsyncClient.get."""
        return self._run(self._client.get(id, **options))

    def forget(self, ids: Iterable[str] = (), **options: Any) -> ForgetReceipt:
        """See AsyncClient.forget."""
        return self._run(self._client.forget(tuple(ids), **options))

    def candidates(self, **options: Any) -> Iterator[Memory]:
        """See AsyncClient.candidates."""
        return self._each(self._client.candidates(**options))

    def confirm(self, ids: str | Sequence[str], **options: Any) -> Reviewed:
        """See AsyncClient.confirm."""
        return self._run(self._client.confirm(ids, **options))

    def reject(self, ids: str | Sequence[str], **options: Any) -> Reviewed:
        """See AsyncClient.reject."""
        return self._run(self._client.reject(ids, **options))

    def archive(self, ids: str | Sequence[str], **options: Any) -> Reviewed:
        """See AsyncClient.archive."""
        return self._run(self._client.archive(ids, **options))

    def undo(self, event_id: str = "", **options: Any) -> UndoResponse:
        """See AsyncClient.undo."""
        return self._run(self._client.undo(event_id, **options))

    def deeds(self, **options: Any) -> Sequence[Deed]:
        """See AsyncClient.deeds."""
        return self._run(self._client.deeds(**options))

    def status(self, **options: Any) -> Status:
        """See AsyncClient.status."""
        return self._run(self._client.status(**options))

    def watch_status(self, interval: float = 1.0) -> Iterator[Status]:
        """See AsyncClient.watch_status."""
        return self._each(self._client.watch_status(interval))

    def rebuild(self, scope: str = "index", **options: Any) -> RebuildResponse:
        """See AsyncClient.rebuild."""
        return self._run(self._client.rebuild(scope, **options))

    def create_token(self, name: str, grants: Mapping[str, Iterable[str]]) -> NewToken:
        """See AsyncClient.create_token."""
        return self._run(self._client.create_token(name, grants))

    def list_tokens(self) -> Sequence[Token]:
        """See AsyncClient.list_tokens."""
        return self._run(self._client.list_tokens())

    def revoke_token(self, id_or_name: str) -> Token:
        """See AsyncClient.revoke_token."""
        return self._run(self._client.revoke_token(id_or_name))

    def list_spaces(self) -> Sequence[Space]:
        """See AsyncClient.list_spaces."""
        return self._run(self._client.list_spaces())

    def create_space(self, name: str) -> Space:
        """See AsyncClient.create_space."""
        return self._run(self._client.create_space(name))

    def delete_space(self, name: str) -> None:
        """See AsyncClient.delete_space."""
        return self._run(self._client.delete_space(name))

    def put_state(self, key: str, value: Any, **options: Any) -> State:
        """See AsyncClient.put_state."""
        return self._run(self._client.put_state(key, value, **options))

    def get_state(self, key: str, **options: Any) -> State:
        """See AsyncClient.get_state."""
        return self._run(self._client.get_state(key, **options))

    def list_states(self, prefix: str = "", **options: Any) -> Iterator[State]:
        """See AsyncClient.list_states."""
        return self._each(self._client.list_states(prefix, **options))

    def delete_state(self, key: str, **options: Any) -> None:
        """See AsyncClient.delete_state."""
        return self._run(self._client.delete_state(key, **options))

    def recent_turns(self, session: str, source: str = "", **options: Any) -> RecentTurnsResponse:
        """See AsyncClient.recent_turns."""
        return self._run(self._client.recent_turns(session, source, **options))

    def list(self, **options: Any) -> Iterator[Memory]:
        """See AsyncClient.list."""
        return self._each(self._client.list(**options))

    def ingest(
        self,
        turns: Iterable[Turn | Mapping[str, Any]],
        *,
        wait: str = "stored",
        batch: int = 64,
        window: int = 8,
    ) -> Iterator[Ingested]:
        """See AsyncClient.ingest. The turns are read on the calling thread, between results."""
        session = self._run(self._open_ingest(wait, batch, window))
        try:
            for turn in turns:
                session.offer(turn)
                if session.full:
                    yield from self._run(session.make_room())
                else:
                    # A slow input's turns go out as they come; a fast one's gather into a batch meanwhile.
                    self._loop.call_soon_threadsafe(session.wake)
            self._loop.call_soon_threadsafe(session.end)
            while results := self._run(session.next_results()):
                yield from results
        finally:
            self._run(self._client.close_ingest(session))

    async def _open_ingest(self, wait: str, batch: int, window: int) -> IngestSession:
        return self._client.open_ingest(wait=wait, batch=batch, window=window)

    def _each(self, source: AsyncIterator[_T]) -> Iterator[_T]:
        reading: asyncio.Task[Any] | None = None

        async def following() -> tuple[_T] | None:
            nonlocal reading
            reading = asyncio.current_task()
            try:
                return (await source.__anext__(),)
            except StopAsyncIteration:
                return None

        async def leave() -> None:
            # An interruption may come just before `run` can see it, or while a cancelled call takes its time to end.
            if reading is not None and not reading.done():
                reading.cancel()
                await asyncio.wait([reading])
            # Only a generator holds anything open.
            if hasattr(source, "aclose"):
                await source.aclose()

        try:
            while item := self._run(following()):
                yield item[0]
        finally:
            # Of a closed client too: one who stopped reading may let go of the series after that.
            run(leave())

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._closed:
            work.close()
            raise EdgeError("this client is closed; open a new one")
        return run(work)
