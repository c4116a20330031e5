"""ApplianceService: how the box is, and making its views anew."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from edge import __version__
from edge.errors import InvalidArgument, NotFound
from edge.lan.tokens import Tokens
from edge.ports import Clock, GovernorState, QueueStatus, Vectorizer
from edge.service import permissions
from edge.service.convert import duration, governor_message, model_message, timestamp
from edge.service.household import Household
from edge.spaces import Spaces
from edge.types import Caller, Micros, Scope, check_space
from edge.v1 import appliance_pb2

_FASTEST = 0.2
_SLOWEST = 3600.0
_READ_ONLY = "the box's data directory cannot be written; its owner sees why with `edge status` on the box itself"


class ApplianceService(Household):
    """`streams` tells how many streams are open, `addresses` where the box listens, `state` what the governor decided.

    `vectorizers` are the running models by id, and `calibrated_at` is when this device was measured with each, None
    for never.
    """

    def __init__(
        self,
        spaces: Spaces,
        tokens: Tokens,
        vectorizers: Mapping[str, Vectorizer],
        clock: Clock,
        pool: ThreadPoolExecutor,
        data: Path,
        addresses: list[str],
        streams: Callable[[], int],
        state: Callable[[], GovernorState],
        calibrated_at: Mapping[str, Micros | None],
        language: str,
    ) -> None:
        super().__init__(spaces, tokens, pool)
        self._vectorizers = vectorizers
        self._clock = clock
        self._data = data
        self._addresses = addresses
        self._streams = streams
        self._state = state
        self._calibrated_at = calibrated_at
        self._language = language
        self._started = clock.now()
        self._process = psutil.Process()

    async def GetStatus(self, request: appliance_pb2.GetStatusRequest, context: Any) -> appliance_pb2.GetStatusResponse:
        caller = permissions.current.get()
        return appliance_pb2.GetStatusResponse(status=await self._run(self._status, caller))

    async def WatchStatus(self, request: appliance_pb2.WatchStatusRequest, context: Any) -> None:
        interval = request.interval.seconds + request.interval.nanos / 1e9 if request.HasField("interval") else 1.0
        if not _FASTEST <= interval <= _SLOWEST:
            raise InvalidArgument(f"interval: must be {_FASTEST} to {_SLOWEST:.0f} seconds", field="interval")
        caller = permissions.current.get()
        while True:
            await context.write(appliance_pb2.WatchStatusResponse(status=await self._run(self._status, caller)))
            await asyncio.sleep(interval)

    async def Rebuild(self, request: appliance_pb2.RebuildRequest, context: Any) -> appliance_pb2.RebuildResponse:
        started = time.monotonic()
        names = [check_space(name, "spaces") for name in request.spaces] or self._spaces.names()
        for name in names:
            if name not in self._spaces.names():
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

    def _status(self, caller: Caller) -> appliance_pb2.Status:
        """The box as this caller may see it: to a client, its directories and others' spaces are not there."""
        first, *_ = self._vectorizers.values()
        queue = first.status()
        models = [model_message(one.info, self._calibrated_at[model]) for model, one in self._vectorizers.items()]
        status = appliance_pb2.Status(
            version=__version__,
            started_at=timestamp(self._started),
            now=timestamp(self._clock.now()),
            ready=True,
            read_only=_READ_ONLY if self._spaces.read_only else "",
            model=models[0],
            models=models,
            queue=appliance_pb2.QueueStatus(
                recalls=queue.recalls,
                ingests=queue.ingests,
                ingest_tokens=queue.ingest_tokens,
                estimated_drain=duration(queue.drain_seconds),
                tokens_per_second=queue.tokens_per_second,
            ),
            spaces=[
                appliance_pb2.SpaceStatus(**dataclasses.asdict(facts))
                for facts in self._spaces.facts()
                if caller.administers or caller.may(Scope.READ, facts.name)
            ],
            resident_bytes=self._process.memory_info().rss,
            addresses=[address for address in self._addresses if not address.startswith("unix:")],
            warnings=_stalled(queue),
            streams=self._streams(),
            governor=governor_message(self._state()),
            caller=permissions.name_of(caller),
            scopes=_scopes(caller),  # type: ignore[arg-type]  # the enums share their numbers
            language=self._language,
        )
        if caller.administers:
            status.read_only = self._spaces.read_only
            status.data_directory = str(self._data)
            status.addresses[:] = self._addresses
            status.warnings[:] = [*self._spaces.warnings(), *status.warnings]
        return status


def _scopes(caller: Caller) -> list[int]:
    """What it may do in at least one space; not in which, as a right to write tells of no space."""
    return sorted({int(scope) for grant in caller.grants for scope in grant.scopes})


def _stalled(queue: QueueStatus) -> list[str]:
    if not queue.stalled:
        return []
    return [f"the model has not answered for {queue.stalled:.0f} s; recalls go by words; restart the box if it stays"]
