"""The part of MemoryService that decides on candidates, archives, and takes back what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from edge.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from edge.service import convert, permissions
from edge.service.forgets import Forgets, summed
from edge.service.reach import address
from edge.space import Space
from edge.spaces import Unfinished
from edge.types import Caller, Level, Memory, MemoryState, Micros, Scope
from edge.v1 import memory_pb2, types_pb2

_DEFAULT_DEEDS, _MOST_DEEDS = 20, 200
_IDS = 100
# Handing in a turn, and forgetting: to take these back is to forget, or to show again what was forgotten.
_SAID, _FORGOTTEN = "said", "forgotten"
# Of two memories: the first gave way to the second.
_MERGED, _REPLACED = "merged", "replaced"
_WORDS = {
    _SAID: "handed in a turn",
    "confirmed": "confirmed {}",
    "rejected": "rejected {}",
    "promoted": "promoted {} from candidates",
    _MERGED: "merged what says the same",
    _REPLACED: "put in its place what contradicts it",
    "archived": "archived {}",
    "restored": "brought {} back",
    "weighted": "gave {} another weight",
    "undone": "took something back ({} changed)",
    _FORGOTTEN: "forgot {}",
    "cooled": "moved {} to the cold file",
}
_VERDICTS = {
    memory_pb2.VERDICT_CONFIRM: (MemoryState.CONFIRMED, "confirmed"),
    memory_pb2.VERDICT_REJECT: (MemoryState.REJECTED, "rejected"),
}


class Reviews(Forgets):
    async def ReviewCandidate(
        self, request: memory_pb2.ReviewCandidateRequest, context: Any
    ) -> memory_pb2.ReviewCandidateResponse:
        if request.verdict not in _VERDICTS:
            raise InvalidArgument("verdict: confirm or reject", field="verdict")
        if bool(request.id) == bool(request.ids):
            raise InvalidArgument("id: give either id or ids", field="id")
        convert.at_most(self._limits.filter_values, request.ids, "ids")
        state, why = _VERDICTS[request.verdict]
        addresses = [address(request.id, "id")] if request.id else []
        addresses += [address(id_, f"ids[{index}]") for index, id_ in enumerate(request.ids)]
        response = memory_pb2.ReviewCandidateResponse()
        caller = permissions.current.get()
        decided: set[str] = set()
        for space, ids in await self._addressed(addresses, Scope.WRITE, "id" if request.id else "ids"):
            decide = partial(_decide, space, ids, state, why, permissions.author(), strict=bool(request.id))
            event, memories = await self._run(decide)
            if event:
                response.event_ids.append(event)
            for memory in memories:
                decided.add(memory.id)
                response.memories.append(self._told(memory, caller))
        if request.id:
            if not decided:
                raise NotFound("id: there is no such memory; `edge candidates` lists them", field="id")
            response.memory.CopyFrom(response.memories.pop())
        response.passed_over.extend(text for text in request.ids if address(text, "ids")[1] not in decided)
        return response

    async def Archive(self, request: memory_pb2.ArchiveRequest, context: Any) -> memory_pb2.ArchiveResponse:
        if not request.ids:
            raise InvalidArgument("ids: name one memory at least; `edge ls` or a recall gives ids", field="ids")
        convert.at_most(self._limits.filter_values, request.ids, "ids")
        addresses = [address(id_, f"ids[{index}]") for index, id_ in enumerate(request.ids)]
        caller = permissions.current.get()
        response = memory_pb2.ArchiveResponse()
        found = False
        cold = ""
        for space, ids in await self._addressed(addresses, Scope.WRITE, "ids"):
            moved = await self._run(partial(_move, space, ids, permissions.author(), restore=request.restore))
            response.event_ids.extend(moved.events)
            response.memories.extend(self._told(memory, caller) for memory in moved.memories)
            found, cold = found or moved.found, cold or moved.cold
        if not found:
            if cold:
                raise in_cold_file(cold, "ids")
            raise NotFound(
                "ids: none of these is here, or you may not write there; `edge ls` or a recall gives ids", field="ids"
            )
        done = {memory.id for memory in response.memories}
        response.passed_over.extend(
            text for text, (_, id_) in zip(request.ids, addresses, strict=True) if id_ not in done
        )
        return response

    async def Undo(self, request: memory_pb2.UndoRequest, context: Any) -> memory_pb2.UndoResponse:
        space, deed = await self._deed(request.event_id)
        caller, by = permissions.current.get(), permissions.author()
        # Whoever may write may decide, and take decisions back; what makes others' words come or go takes more.
        if deed.why in (_SAID, _FORGOTTEN) and deed.by != by and not caller.may(Scope.DELETE, space.name):
            raise PermissionDenied(
                f"event_id: another handed this in or forgot it, and this token has no delete scope in {space.name}; "
                "the owner may undo it",
                field="event_id",
            )
        if obstacle := await self._run(space.revisions.obstacle, deed):
            raise FailedPrecondition(f"event_id: {obstacle}", field="event_id", reason="NOT_UNDOABLE")
        told = await self._run(self._deed_message, space, deed, "", caller)
        response = memory_pb2.UndoResponse(undone=told, description=told.description)
        if request.dry_run:
            return response
        if deed.why == _SAID:
            left: list[Unfinished] = []
            forget = partial(space.forget, [deed.id], None, False, by=by, grace=self._grace, history=False)
            receipts = await self._forgotten(left, forget)
            if not receipts:
                raise left[0]
            (receipt,) = receipts
            response.receipt.CopyFrom(summed(receipts, False, left))
            # What is only hidden can be brought back.
            response.event_id = receipt.id if receipt.erased_at is not None else ""
        else:
            response.event_id = (await self._run(space.revisions.undo, deed.id, by)).id
        return response

    async def ListDeeds(self, request: memory_pb2.ListDeedsRequest, context: Any) -> memory_pb2.ListDeedsResponse:
        limit = request.limit if request.HasField("limit") else _DEFAULT_DEEDS
        if not 1 <= limit <= _MOST_DEEDS:
            raise InvalidArgument(f"limit: must be 1 to {_MOST_DEEDS}", field="limit")
        by = permissions.author() if request.mine else None
        found: list[tuple[Micros, memory_pb2.Deed]] = []
        for space in await self._named(request.spaces, Scope.READ):
            found += await self._run(self._latest, space, limit, by, permissions.current.get())
        found.sort(key=lambda one: -one[0])
        return memory_pb2.ListDeedsResponse(deeds=[message for _, message in found[:limit]])

    async def _deed(self, event_id: str) -> tuple[Space, Any]:
        """What is meant, and where. Raises NotFound, or FailedPrecondition when the caller did nothing yet."""
        name, id_ = address(event_id, "event_id") if event_id else ("", "")
        by = permissions.author()
        newest: tuple[Space, Any] | None = None
        for space in await self._named([name] if name else [], Scope.WRITE, "event_id"):
            look: Callable[[str], Any] = space.revisions.find if event_id else space.revisions.last_of
            deed = await self._run(look, id_ or by)
            if deed is not None and (newest is None or deed.at > newest[1].at):
                newest = space, deed
        if newest is not None:
            return newest
        if event_id:
            raise NotFound(
                "event_id: there is no such event that you may undo; `edge undo --list` shows them", field="event_id"
            )
        raise FailedPrecondition(
            "event_id: you did nothing yet that can be undone; `edge undo --list` shows what others did",
            field="event_id",
            reason="NOT_UNDOABLE",
        )

    def _latest(self, space: Space, limit: int, by: str | None, caller: Caller) -> list[tuple[Micros, memory_pb2.Deed]]:
        return [
            (deed.at, self._deed_message(space, deed, space.revisions.obstacle(deed), caller))
            for deed in space.revisions.latest(limit, by)
        ]

    def _deed_message(self, space: Space, deed: Any, obstacle: str, caller: Caller) -> memory_pb2.Deed:
        shown = _shown(space, deed)
        told = [self._told(memory, caller, Level.ABSTRACT).text for memory in shown]
        count = len(deed.memory_ids)
        memories = "1 memory" if count == 1 else f"{count} memories"
        description = _WORDS.get(deed.why, "changed {}").format(memories)
        if deed.why == _SAID and shown and caller.may(Scope.READ, space.name):
            # Who is at the box's socket is its owner, whichever assistant it was.
            description += f" from {shown[0].source}"
        return memory_pb2.Deed(
            id=deed.id,
            space=space.name,
            at=convert.timestamp(deed.at),
            by=deed.by,
            why=deed.why,
            description=description,
            memory_ids=deed.memory_ids[:_IDS],
            memories=count,
            abstract=" → ".join(filter(None, told)),
            undoes=deed.undoes,
            undone_by=deed.undone_by,
            obstacle=obstacle,
        )

    def _told(self, memory: Memory, caller: Caller, level: Level = Level.DETAIL) -> types_pb2.Memory:
        """What the memory says is for those who may read."""
        if not caller.may(Scope.READ, memory.space):
            memory = replace(memory, text="", tags=(), attributes=b"")
        return convert.memory_message(memory, self._clock.now(), level, self._fading)


def in_cold_file(moved: str, field: str) -> NotFound:
    """What to say of a memory that this event moved to the cold file."""
    return NotFound(
        f"{field}: nobody used this for long, and it went to the cold file; "
        f"edge undo {moved} brings back what went there together",
        field=field,
        reason="COLD",
    )


@dataclass(frozen=True, slots=True)
class _Moved:
    events: list[str]
    # As they are then.
    memories: list[Memory]
    # Whether any of the ids names a memory here; and if none does, what moved one to the cold file, if anything did.
    found: bool
    cold: str


def _move(space: Space, ids: Sequence[str], by: str, *, restore: bool) -> _Moved:
    """Those of these memories that can be: into the archive, or back."""
    done = (space.revisions.restore if restore else space.revisions.archive)(ids, by)
    moved = [one.id for revision in done for one in revision.changes]
    found = bool(moved or space.by_ids(ids))
    cold = "" if found else next(filter(None, map(space.cold.moved_by, ids)), "")
    return _Moved([revision.id for revision in done], space.by_ids(moved), found, cold)


def _shown(space: Space, deed: Any) -> list[Memory]:
    """The memories that say what a deed was about: the first of them; of two of which one gave way, both."""
    first = space.by_ids(deed.memory_ids[:1])
    if not first or deed.why not in (_MERGED, _REPLACED):
        return first
    other = deed.memory_ids[1:2] or filter(None, [first[0].replaced_by])
    return first + space.by_ids(list(other))


def _decide(
    space: Space, ids: Sequence[str], state: MemoryState, why: str, by: str, *, strict: bool
) -> tuple[str, list[Memory]]:
    """Decides on the candidates among these: the event's id, and the memories as they are then.

    With `strict` raises FailedPrecondition for one that is here and no candidate.
    """
    chosen: list[str] = []

    def plan(queries: Any) -> list[Any]:
        memories = queries.by_ids(list(dict.fromkeys(ids))).values()
        shown = [memory for memory in memories if memory.state not in (MemoryState.FORGOTTEN, MemoryState.COLD)]
        for memory in shown:
            if strict and memory.state is not MemoryState.CANDIDATE:
                raise FailedPrecondition(
                    f"id: this is no candidate, it is {memory.state.name.lower()}; "
                    f"`edge undo --list` shows who decided on it",
                    field="id",
                    reason="NOT_A_CANDIDATE",
                )
        candidates = [memory for memory in shown if memory.state is MemoryState.CANDIDATE]
        chosen.extend(memory.id for memory in candidates)
        return [space.revisions.change(memory, state=state) for memory in candidates]

    done = space.revisions.revise(plan, why, by)
    return (done.id if done is not None else ""), space.by_ids(chosen)
