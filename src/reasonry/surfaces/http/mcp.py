"""MCP over streamable HTTP, under `/mcp`: the tools of `reasonry mcp`, for each principal over their own app.

No call knows of another: a thought without `sessionId` begins a session, a run is named by its id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI, Request
from starlette.routing import Route

from ...core.registry import strategy_names
from ..mcp.driven import run_tools
from ..mcp.guided import guided_tools
from ..mcp.mcp_server import McpServer
from ..mcp.page_tool import page_tool
from ..mcp.resources import Resources
from ..mcp.tools import CallContext, Document
from .context import PRINCIPAL, REQUEST_ID, RequestContext, Wiring
from .health import Health
from .mcp_runs import SupervisedWork

ToolCall: TypeAlias = Callable[[Document, CallContext], Awaitable[Document]]


def _server(context: RequestContext) -> McpServer:
    app, access, sessions = context.app, context.access, context.sessions
    work = SupervisedWork(access, context.supervisor, context.wiring.draining)
    tools = [
        *guided_tools(sessions, strategy_names(app.strategies)),
        *run_tools(access, work),
        page_tool(app),
    ]
    watched = [replace(tool, call=_unless_down(context.wiring.health, tool.call)) for tool in tools]
    return McpServer(watched, Resources(sessions, app.strategies))


def _unless_down(health: Health, call: ToolCall) -> ToolCall:
    async def answer(arguments: Document, call_context: CallContext) -> Document:
        # The response may have begun long before: the gate waits for its head alone.
        return await health.unless_down(call(arguments, call_context))

    return answer


class McpEndpoint:
    """The ASGI application under `/mcp`."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of the protocol."""
        # Space around a header's value is no part of it (RFC 9110, 5.5); not every HTTP parser takes it off.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await scope["app"].state.mcp.handle_request({**scope, "headers": headers}, receive, send)


@asynccontextmanager
async def _lifespan(server: FastAPI) -> AsyncGenerator[None]:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..mcp.http_server import sdk_server

    wiring: Wiring = server.state.wiring
    servers = dict[str, McpServer]()

    def server_for(request: Request) -> McpServer:
        context = wiring.context(request.scope[PRINCIPAL], request.scope[REQUEST_ID])
        if context.principal not in servers:
            servers[context.principal] = _server(context)
        return servers[context.principal]

    bridge = sdk_server(server_for, _page_url)
    manager = StreamableHTTPSessionManager(
        bridge, stateless=True, max_request_body_size=wiring.settings.max_body_bytes
    )
    async with manager.run():
        server.state.mcp = manager
        yield


def _page_url(request: Request) -> str:
    # Only an address to show to whoever sent the header.
    is_tls = request.headers.get("x-forwarded-proto") == "https"
    return str(request.base_url.replace(scheme="https") if is_tls else request.base_url)


router = APIRouter(lifespan=_lifespan)
router.routes.append(Route("/mcp", endpoint=McpEndpoint(), methods=["POST"]))
