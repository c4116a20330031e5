"""The MCP server: tools, resources and a prompt, for whichever identity a request comes with."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from edge.errors import EdgeError
from edge.gateway.arguments import WHOLE
from edge.gateway.calls import Result, place
from edge.gateway.identity import Identity
from edge.gateway.quoted import block
from edge.gateway.tools import INSTRUCTIONS

_logger = logging.getLogger(__name__)

# MCP's code for a resource that is not there (2025-06-18, server/resources).
_NO_RESOURCE = -32002
_PROMPT = "session_start"
_TOPIC = "topic"
_LINES = 8
# Of streamable HTTP (2025-06-18, basic/transports).
_SESSION = "mcp-session-id"

Context = ServerRequestContext[Any, Any]
Whose = Callable[[Context], Identity]


def build(whose: Whose, version: str, lifespan: Callable[[], AbstractAsyncContextManager[None]]) -> Server[Any]:
    """`whose` says for whom a request is answered; `lifespan` is entered while the server runs."""

    @asynccontextmanager
    async def living(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with lifespan():
            yield {}

    async def list_tools(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = await whose(ctx).calls.tools(_session(ctx))
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.about,
                    input_schema=tool.schema(),
                    annotations=types.ToolAnnotations.model_validate(tool.hints()),
                )
                for tool in tools
            ]
        )

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        calls = whose(ctx).calls
        result = await calls.call(params.name, params.arguments, _client(ctx))
        if result.answered and await calls.tools_changed(_session(ctx)):
            # The SDK drops it where the protocol has a subscription for it instead (2026-07-28), which is not served.
            await ctx.session.send_tool_list_changed()
        return _told(result)

    async def list_resources(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        try:
            spaces = await whose(ctx).box.spaces()
        except EdgeError as error:
            # A client that lists at its start is not to be stopped by a box that is away.
            _logger.warning("spaces are not known yet: %s", error.message)
            spaces = []
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"edge://{space}", name=space, mime_type="text/plain", description=f"The newest of {space}."
                )
                for space in spaces
            ]
        )

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template="edge://{+space}/{kind}/{id}",
                    name="memory",
                    mime_type="text/plain",
                    description="One memory in full.",
                )
            ]
        )

    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await _resource(whose(ctx), uri)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
        )

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        topic = types.PromptArgument(name=_TOPIC, description="What the session will be about.", required=False)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name=_PROMPT, description="Begin with what is remembered of a topic.", arguments=[topic])
            ]
        )

    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != _PROMPT:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no such prompt; there is {_PROMPT}")
        topic = (params.arguments or {}).get(_TOPIC, "").strip()
        text = INSTRUCTIONS
        if topic:
            found = await whose(ctx).calls.call("memory_search", {"query": topic, "top_k": _LINES}, _client(ctx))
            away = "The memory does not answer just now; go on without it."
            text += f"\n\n{away if found.failed else found.text}"
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description="What is remembered, and how to use it.", messages=[message])

    server = _Server(
        "edge-memory",
        version=version,
        title="Edge Memory",
        instructions=INSTRUCTIONS,
        lifespan=living,
        # No argument of ours is a header too (2026-07-28); else the SDK lists the tools, of the box, before each call.
        get_tool_input_schema=lambda _: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.middleware.append(_answerable)
    return server


class _Server(Server[Any]):
    """Its list of tools changes with what the token may do, and its clients are told."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, *rest, **more)


async def _answerable(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The SDK answers a call of another form with a protocol error, which a model never sees: it goes on in a form that
    the tool itself can refuse in words.
    """
    if ctx.method == "tools/call":
        ctx = replace(ctx, params=_in_form(ctx.params or {}))
    return await call_next(ctx)


def _in_form(params: Mapping[str, Any]) -> dict[str, Any]:
    name, given = params.get("name"), params.get("arguments")
    return {
        **params,
        "name": name if isinstance(name, str) else "",
        "arguments": given if given is None or isinstance(given, dict) else {WHOLE: given},
    }


def _told(result: Result) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=result.structured,
        is_error=result.failed,
    )


async def _resource(identity: Identity, uri: str) -> str:
    """A memory, or the newest of a space or kind. Raises MCPError: a resource has no other way to fail."""
    try:
        try:
            space, kind = place(uri, "uri")
        except EdgeError:
            # It goes on to an id.
            return block([await identity.box.read(uri, "detail")], identity.calls.language)
        items = await identity.box.newest([space] if space else [], [kind] if kind else [], [])
        return block(items, identity.calls.language) or "There is nothing there yet."
    except EdgeError as error:
        code = _NO_RESOURCE if error.code in ("NOT_FOUND", "INVALID_ARGUMENT") else types.INTERNAL_ERROR
        raise MCPError(code=code, message=error.message, data={"uri": uri, "reason": error.reason}) from None


def _client(ctx: Context) -> str:
    """What the assistant calls itself, in whichever of MCP's ages it speaks."""
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""


def _session(ctx: Context) -> str:
    """Which of those that one identity has over HTTP; empty over stdio, where there is one."""
    request: Any = ctx.request
    return "" if request is None else str(request.headers.get(_SESSION, ""))
