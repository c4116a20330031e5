"""The part of MemoryService that forgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from uuid6 import uuid7

from edge.config import Config
from edge.errors import InvalidArgument, NotFound
from edge.ports import Clock
from edge.service import convert, permissions
from edge.service.reach import Reach, address, within
from edge.space import Space
from edge.spaces import Spaces, Unfinished
from edge.types import Micros, Receipt, Scope
from edge.upkeep.decay import Rules
from edge.v1 import memory_pb2

# Keyed marks that a receipt lists; the log's own event has all.
_MARKS = 10_000
_SUMS = (
    "turns", "memories", "vectors", "segments_rewritten", "snapshots_dropped", "words", "candidates", "revisions",
)  # fmt: skip


class Forgets(Reach):
    def __init__(self, spaces: Spaces, works: ThreadPoolExecutor, config: Config, clock: Clock) -> None:
        super().__init__(spaces, works)
        self._config = config
        self._limits = config.limits
        self._clock = clock
        # How what is shown fades.
        self._fading = Rules.of(config.decay)
        # For how long a forget may be undone.
        self._grace: Micros = round(config.forgetting.grace_seconds * 1e6)

    async def Forget(self, request: memory_pb2.ForgetRequest, context: Any) -> memory_pb2.ForgetResponse:
        wanted = convert.filter_of(request.filter, self._limits)
        if request.now and not request.ids and not wanted.selective:
            return memory_pb2.ForgetResponse(receipt=await self._erase_hidden(request))
        if bool(request.ids) == wanted.selective:
            raise InvalidArgument(
                "ids: give either ids or a filter that narrows; to erase a whole box, delete its data directory",
                field="ids",
            )
        addresses = [address(id_, f"ids[{index}]") for index, id_ in enumerate(request.ids)]
        for index, (name, _) in enumerate(addresses):
            if name:
                permissions.check_space_right(permissions.current.get(), Scope.DELETE, name, f"ids[{index}]")
        receipts: list[Receipt] = []
        # One receipt, whatever number of spaces it is about.
        forget = partial(
            _forget,
            dry_run=request.dry_run,
            by=permissions.author(),
            grace=0 if request.now else self._grace,
            id="" if request.dry_run else str(uuid7()),
        )
        left: list[Unfinished] = []
        for space in await self._named(request.spaces, Scope.DELETE):
            ids = within(space, addresses)
            if ids or not addresses:
                receipts += await self._forgotten(left, partial(forget, space, ids, None if ids else wanted))
        if left and not any(receipt.turns for receipt in receipts):
            # Nothing more to forget, and what was forgotten before is not gone yet.
            raise left[0]
        if addresses and not any(receipt.turns for receipt in receipts):
            raise NotFound(
                "ids: none of these is here, or you may not delete it (a paired client may in its own space, the owner "
                "on the box in all); nothing was changed",
                field="ids",
            )
        return memory_pb2.ForgetResponse(receipt=summed(receipts, request.dry_run, left))

    async def _erase_hidden(self, request: memory_pb2.ForgetRequest) -> memory_pb2.ForgetReceipt:
        """What may still be undone, in all these spaces, may be so no more."""
        if request.dry_run:
            raise InvalidArgument(
                "dry_run: cannot tell beforehand what is hidden; `edge undo --list` shows the forgets", field="dry_run"
            )
        until = self._clock.now()
        receipts: list[Receipt] = []
        left: list[Unfinished] = []
        for space in await self._named(request.spaces, Scope.DELETE):
            receipts += await self._forgotten(left, partial(space.finish_forgets, until))
        if left and not receipts:
            raise left[0]
        return summed(receipts, False, left)

    async def _forgotten(
        self, left: list[Unfinished], forget: Callable[[], Receipt | list[Receipt]]
    ) -> Sequence[Receipt]:
        """The receipts; a damaged cold file in one space keeps no other from forgetting, and is put to what is left."""
        try:
            done = await self._run(forget)
        except Unfinished as error:
            left.append(error)
            return error.receipts
        return [done] if isinstance(done, Receipt) else done


def _forget(space: Space, ids: list[str], wanted: Any, *, dry_run: bool, **more: Any) -> Receipt:
    return space.forget(ids, wanted, dry_run, **more)


def summed(receipts: Iterable[Receipt], dry_run: bool, left: Iterable[Unfinished] = ()) -> memory_pb2.ForgetReceipt:
    """All of them as one, and what of them is left to do."""
    message = memory_pb2.ForgetReceipt(dry_run=dry_run, unfinished="; ".join(one.message for one in left))
    for receipt in receipts:
        part = convert.receipt_message(receipt)
        message.id = message.id or part.id
        for name in _SUMS:
            setattr(message, name, getattr(message, name) + getattr(part, name))
        message.memory_ids.extend(part.memory_ids)
        message.marks.extend(part.marks[: _MARKS - len(message.marks)])
        if part.HasField("erased_at"):
            message.erased_at.CopyFrom(part.erased_at)
    return message
