"""From a tool's call to its result: whatever fails is a result with the next step, never a protocol error."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edge.errors import EdgeError, InvalidArgument, NotFound, PermissionDenied
from edge.gateway.arguments import checked
from edge.gateway.box import Box, Item, Question, Rights
from edge.gateway.quoted import block, framed, inert, plain, quoted
from edge.gateway.times import moment
from edge.gateway.tools import TOOLS, Tool, usable
from edge.gateway.writing import Writer

_logger = logging.getLogger(__name__)

_LINE = re.compile(r"- ([0-9a-f-]{36}) (.+)")
_SOURCE_BYTES = 64
# Of what was written, the URIs that are told.
_PIECES = 5
# Sessions of one identity, over HTTP, that are told when its tools change.
_SESSIONS = 256
# Characters by which a note is known again.
_BEGINNING = 40
# What the box advises its owner to run, and the tool that does the same for a model.
_TOOL_FOR = {
    "`edge candidates`": "memory_candidates",
    "`edge ls` or a recall": "memory_list or memory_search",
    "`edge state ls`": "task_state_get without a key",
}
# A field of the box's requests, and the arguments that it may have come from.
_CAME_FROM = {
    "text": ("content",),
    "id": ("memory_id", "uri"),
    "ids": ("memory_id",),
    "ids[0]": ("memory_id",),
    "spaces": ("space", "uri"),
    "filter.since": ("since",),
    "filter.until": ("until",),
}


@dataclass(frozen=True, slots=True)
class Result:
    """`answered`: whether the box had a word in it, or is away."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)
    failed: bool = False
    answered: bool = True


class Calls:
    """The tools of one identity: whoever the box takes us for."""

    def __init__(self, box: Box, writer: Writer) -> None:
        self._box = box
        self._writer = writer
        self._rights: Rights | None = None
        # What each session was last told of, the newest last; and whether something spoke against it since.
        self._offered: OrderedDict[str, list[Tool]] = OrderedDict()
        self._doubted = False
        self._does: Mapping[str, Callable[[dict[str, Any], str], Awaitable[Result]]] = {
            "memory_search": self._search,
            "memory_write": self._write,
            "memory_forget": self._forget,
            "memory_read": self._read,
            "memory_list": self._list,
            "memory_candidates": self._candidates,
            "memory_confirm": self._confirm,
            "task_state_get": self._state_get,
            "task_state_put": self._state_put,
        }

    @property
    def language(self) -> str:
        """The box's, once it told."""
        return "zh" if self._rights is None else self._rights.language

    async def tools(self, session: str = "") -> list[Tool]:
        """Those that the token can use; all that there are while the box is away, which says no by itself later."""
        await self._learn()
        return self._offer(session)

    async def tools_changed(self, session: str = "") -> bool:
        """Whether they are others than this session was last told of, once for each change. The box is only asked when
        it was away meanwhile, or said no.
        """
        if session not in self._offered:
            return False
        if self._doubted:
            await self._learn()
        before = self._offered.get(session)
        return before != self._offer(session)

    def _offer(self, session: str) -> list[Tool]:
        self._offered[session] = self._usable()
        self._offered.move_to_end(session)
        while len(self._offered) > _SESSIONS:
            self._offered.popitem(last=False)
        return self._offered[session]

    async def _learn(self) -> None:
        try:
            self._rights = await self._box.rights()
        except EdgeError as error:
            _logger.warning("which tools may be used is not known yet: %s", error.message)
            self._doubted = True
        else:
            self._doubted = False

    def _usable(self) -> list[Tool]:
        return usable(None if self._rights is None else self._rights.scopes)

    async def call(self, name: str, given: Mapping[str, Any] | None, client: str = "") -> Result:
        """`client` is what the assistant calls itself: the source of what it writes."""
        # Whose arguments fields of the box's come from, once the arguments themselves are right.
        asked: Tool | None = None
        try:
            tool = await self._permitted(name)
            arguments = checked(tool, given)
            asked = tool
            result = await self._does[name](arguments, _source(client))
        except EdgeError as error:
            told = refusal(error, asked)
            self._doubted |= not told.answered or error.code in ("PERMISSION_DENIED", "UNAUTHENTICATED")
            return told
        except Exception as error:
            _logger.exception("%s failed", name)
            return refusal(
                EdgeError(
                    f"{type(error).__name__} in the gateway; try again, or start it with EDGE_DEBUG=1 to see where"
                )
            )
        if result.answered:
            self._writer.box_answered()
        else:
            self._doubted = True
        return result

    async def _permitted(self, name: str) -> Tool:
        if not name:
            raise InvalidArgument(f"name: give the name of a tool; there are {', '.join(TOOLS)}", field="name")
        if name not in TOOLS:
            raise NotFound(f"there is no tool {plain(name[:60])}; there are {', '.join(TOOLS)}", field="name")
        tool = TOOLS[name]
        if tool not in self._usable():
            # Perhaps it has the scope by now.
            self._rights = await self._box.rights()
            if tool not in self._usable():
                raise PermissionDenied(
                    f"{name}: this token has no {tool.scope} scope; the box's owner gives one with `edge token create`"
                )
        return tool

    async def _search(self, given: dict[str, Any], _: str) -> Result:
        question = Question(
            given["query"],
            given["top_k"],
            given["deep"],
            moment(given["since"], "since"),
            moment(given["until"], "until"),
            given["space"].removeprefix("edge://"),
            given["level"],
        )
        found = await self._box.search(question)
        if await self._writer.catch_up():
            # What was written while the box was away may be what is asked for.
            found = await self._box.search(question)
        if not found.items:
            return Result("Nothing in the memory bears on this.", {"memories": []})
        if question.level != "abstract":
            return Result(block(found.items, self.language), {"memories": [_full(item) for item in found.items]})
        # The block is the box's: one line a memory, defused and within the budget.
        lines = map(_LINE.fullmatch, found.block.splitlines())
        shown = {match[1]: match[2] for match in lines if match is not None}
        memories = [{"uri": item.uri, "text": shown[item.id]} for item in found.items if item.id in shown]
        structured: dict[str, Any] = {"memories": memories}
        if more := [item.uri for item in found.items if item.id not in shown]:
            structured["more"] = more
        return Result(found.block, structured)

    async def _write(self, given: dict[str, Any], client: str) -> Result:
        kept = await self._writer.keep(given["content"], given["tags"], given["weight"], client)
        told = self._refusals()
        if kept is None:
            return Result(
                "Kept here, on this machine: the box does not answer. It will be delivered when the box is back; do "
                f"not write it again.{told}",
                {"delivered": False},
                answered=False,
            )
        # A long text has hundreds of pieces; any of them leads to the whole.
        uris = [item.uri for item in kept.items[:_PIECES]]
        more = f" and {len(kept.items) - _PIECES} more pieces of it" if len(kept.items) > _PIECES else ""
        hidden = f" Hidden in it: {', '.join(f'{n} {name}' for name, n in kept.hidden.items())}." if kept.hidden else ""
        structured: dict[str, Any] = {"delivered": True, "uris": uris, "pieces": len(kept.items)}
        if kept.hidden:
            structured["hidden"] = kept.hidden
        shown = " ".join(uris) or "as it was already"
        return Result(f"Remembered: {shown}{more}.{hidden}{told}", structured)

    def _refusals(self) -> str:
        """What it could not keep of what waited, so that a model may put it in another way."""
        count, last = self._writer.refusals()
        if not count:
            return ""
        named = "; ".join(f"“{_beginning(one.content)}”: {plain(one.why)} (it is in {one.path})" for one in last)
        of = f", the last {len(last)} of them" if count > len(last) else ""
        return f" The box refused {_counted(count, 'earlier note', 'earlier notes')} for good{of}: {named}."

    async def _forget(self, given: dict[str, Any], _: str) -> Result:
        gone = await self._box.forget(given["memory_id"], given["dry_run"])
        count = f"{_counted(gone.memories, 'memory', 'memories')} of {_counted(gone.turns, 'turn', 'turns')}"
        structured = {"dry_run": given["dry_run"], "memories": gone.memories, "turns": gone.turns, "ids": [*gone.uris]}
        if given["dry_run"]:
            return Result(f"Would erase {count}; nothing is changed. Call it without dry_run to erase.", structured)
        structured["receipt"] = gone.id
        if gone.until:
            told = f"Hidden {count}; erased for good at {gone.until}. `edge undo {gone.id}` undoes it."
            return Result(told, structured)
        return Result(f"Erased {count} for good.", structured)

    async def _read(self, given: dict[str, Any], _: str) -> Result:
        item = await self._box.read(given["uri"], given["level"])
        return Result(block([item], self.language), _full(item))

    async def _list(self, given: dict[str, Any], _: str) -> Result:
        space, kind = place(given["uri"], "uri")
        items = await self._box.newest([space] if space else [], [kind] if kind else [], [])
        return self._listed(items, "There is nothing there yet.")

    async def _candidates(self, _: dict[str, Any], __: str) -> Result:
        return self._listed(await self._box.newest([], [], ["candidate"]), "Nothing waits to be confirmed.")

    def _listed(self, items: Sequence[Item], nothing: str) -> Result:
        return Result(block(items, self.language) or nothing, {"memories": [_full(item) for item in items]})

    async def _confirm(self, given: dict[str, Any], _: str) -> Result:
        done = await self._box.confirm(given["memory_id"])
        structured = {"uri": done.item.uri, "state": done.item.state, "event": done.event}
        return Result(f"Confirmed: {done.item.uri}. `edge undo {done.event}` takes it back.", structured)

    async def _state_get(self, given: dict[str, Any], _: str) -> Result:
        if not given["key"]:
            states = await self._box.states()
            told = framed((f"- {plain(state.key)} (revision {state.revision})" for state in states), self.language)
            keys = [{"key": inert(state.key), "revision": state.revision} for state in states]
            return Result(told or "No task has a state yet.", {"states": keys})
        state = await self._box.state(given["key"])
        # With its brackets, unlike a memory: a state is often JSON.
        value = inert(state.value)
        told = framed([f"- {plain(state.key)} (revision {state.revision})", quoted(value)], self.language)
        return Result(told, {"key": inert(state.key), "value": value, "revision": state.revision})

    async def _state_put(self, given: dict[str, Any], _: str) -> Result:
        state = await self._box.put_state(given["key"], given["value"])
        hidden = "" if state.value == given["value"] else " What looked like a secret in it was hidden."
        told = f"Saved {plain(state.key)}, revision {state.revision}.{hidden}"
        return Result(told, {"key": inert(state.key), "revision": state.revision})


def refusal(error: EdgeError, tool: Tool | None = None) -> Result:
    """What went wrong, where, and what to do next; by the name that the tool's argument has."""
    message, field = error.message, error.field
    for argument in _CAME_FROM.get(field, ()):
        if tool is not None and argument in tool.arguments:
            message = argument + message.removeprefix(field) if message.startswith(f"{field}:") else message
            field = argument
    for command, does_it in _TOOL_FOR.items():
        message = message.replace(command, does_it)
    if "`edge " in message:
        # A model may take it for something to run.
        message += " (Commands are for the user, on their machine: tell them.)"
    structured: dict[str, Any] = {"error": error.code, "reason": error.reason}
    if field:
        structured["field"] = field
    if error.retry_after is not None:
        structured["retry_after_seconds"] = error.retry_after
    return Result(message, structured, failed=True, answered=error.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"))


def place(uri: str, field: str) -> tuple[str, str]:
    """(space, kind) of edge://SPACE/KIND or a beginning of it; empty for what it does not name.

    Raises InvalidArgument that names the field.
    """
    parts = [part for part in uri.removeprefix("edge://").split("/") if part]
    width = 2 if parts[:1] == ["private"] else 1
    if parts and not width <= len(parts) <= width + 1:
        raise InvalidArgument(
            f"{field}: use edge://public, edge://work or edge://private/NAME, then perhaps /KIND; memory_read takes a "
            "memory's own URI",
            field=field,
        )
    return "/".join(parts[:width]), "".join(parts[width:])


def _full(item: Item) -> dict[str, Any]:
    source, text = plain(item.source), inert(item.text)
    found = {"uri": item.uri, "date": item.day, "source": source, "state": item.state, "text": text}
    # Where it is not the whole of what was said: to read on.
    return {**found, **{name: uri for name, uri in (("previous", item.previous), ("next", item.next)) if uri}}


def _beginning(text: str) -> str:
    short = plain(text[:_BEGINNING])
    return short if len(text) <= _BEGINNING else short + "…"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _source(client: str) -> str:
    """As it can be a source's name."""
    return plain(client).encode()[:_SOURCE_BYTES].decode("utf-8", "ignore").strip() or "mcp"
