"""ApplianceService: how the box is, and making its views anew."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from edge import __version__
from edge.errors import InvalidArgument, NotFound
from edge.ports import Clock, Vectorizer
from edge.service.convert import duration, timestamp
from edge.spaces import Spaces
from edge.types import check_space
from edge.v1 import appliance_pb2, appliance_pb2_grpc

_FASTEST = 0.2
_SLOWEST = 3600.0


class ApplianceService(appliance_pb2_grpc.ApplianceServiceServicer):
    """`streams` tells how many streams are open, `addresses` where the box listens."""

    def __init__(
        self,
        spaces: Spaces,
        vectorizer: Vectorizer,
        clock: Clock,
        pool: ThreadPoolExecutor,
        data: Path,
        addresses: list[str],
        streams: Callable[[], int],
    ) -> None:
        self._spaces = spaces
        self._vectorizer = vectorizer
        self._clock = clock
        self._pool = pool
        self._data = data
        self._addresses = addresses
        self._streams = streams
        self._started = clock.now()
        self._process = psutil.Process()

    async def GetStatus(self, request: appliance_pb2.GetStatusRequest, context: Any) -> appliance_pb2.GetStatusResponse:
        return appliance_pb2.GetStatusResponse(status=await self._run(self._status))

    async def WatchStatus(self, request: appliance_pb2.WatchStatusRequest, context: Any) -> None:
        interval = request.interval.seconds + request.interval.nanos / 1e9 if request.HasField("interval") else 1.0
        if not _FASTEST <= interval <= _SLOWEST:
            raise InvalidArgument(f"interval: must be {_FASTEST} to {_SLOWEST:.0f} seconds", field="interval")
        while True:
            await context.write(appliance_pb2.WatchStatusResponse(status=await self._run(self._status)))
            await asyncio.sleep(interval)

    async def Rebuild(self, request: appliance_pb2.RebuildRequest, context: Any) -> appliance_pb2.RebuildResponse:
        started = time.monotonic()
        names = [check_space(name, "spaces") for name in request.spaces] or self._spaces.names()
        for name in names:
            if self._spaces.get(name) is None:
                raise NotFound("spaces: the box has no such space; `edge status` lists them", field="spaces")
        if request.scope not in appliance_pb2.RebuildScope.values():
            raise InvalidArgument(f"scope: {request.scope} is not known to this version", field="scope")
        from_log = request.scope == appliance_pb2.REBUILD_SCOPE_LOG
        memories = vectors = 0
        for name in names:
            counts = await self._run(self._spaces.rebuild, name, from_log)
            memories += counts.memories
            vectors += counts.vectors
        return appliance_pb2.RebuildResponse(
            memories=memories, vectors=vectors, took=duration(time.monotonic() - started)
        )

    def _status(self) -> appliance_pb2.Status:
        info, queue = self._vectorizer.info, self._vectorizer.status()
        return appliance_pb2.Status(
            version=__version__,
            started_at=timestamp(self._started),
            now=timestamp(self._clock.now()),
            ready=True,
            read_only=self._spaces.read_only,
            model=appliance_pb2.ModelStatus(
                id=info.id, dimension=info.dimension, device=info.device, workers=info.workers, bytes=info.bytes
            ),
            queue=appliance_pb2.QueueStatus(
                recalls=queue.recalls,
                ingests=queue.ingests,
                ingest_tokens=queue.ingest_tokens,
                estimated_drain=duration(queue.drain_seconds),
                tokens_per_second=queue.tokens_per_second,
            ),
            spaces=[appliance_pb2.SpaceStatus(**dataclasses.asdict(facts)) for facts in self._spaces.facts()],
            resident_bytes=self._process.memory_info().rss,
            addresses=self._addresses,
            data_directory=str(self._data),
            warnings=self._spaces.warnings(),
            streams=self._streams(),
        )

    async def _run(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
