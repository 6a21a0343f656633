"""MCP over streamable HTTP, under `/mcp`: the tools of `reasonry mcp`, for each principal over their own app.

No call knows of another: a thought without `sessionId` begins a session, a run is named by its id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ..mcp.mcp_catalog import app_server
from ..mcp.mcp_server import McpServer
from .context import RequestContext, Wiring
from .mcp_runs import SupervisedWork
from .operations import Operation


def _server(context: RequestContext) -> McpServer:
    access, wiring = context.access, context.wiring
    work = SupervisedWork(access, context.supervisor, wiring.draining)
    # A response may have begun long before the store goes down: the gate waits for its head alone.
    return app_server(access, context.sessions, work=work, guard=wiring.health.unless_down)


async def answer_mcp(context: RequestContext) -> ASGIApp:
    """Answer a request of the protocol."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        # Space around a header's value is no part of it (RFC 9110, 5.5); not every HTTP parser takes it off.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await context.wiring.mcp.handle_request({**scope, "headers": headers}, receive, send)

    return answer


@asynccontextmanager
async def serving_mcp(wiring: Wiring) -> AsyncGenerator[None]:
    """Have requests of MCP answered meanwhile."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..mcp.http_server import sdk_server

    servers = dict[str, McpServer]()

    def server_for(request: Request) -> McpServer:
        context = wiring.context(request)
        if context.principal not in servers:
            servers[context.principal] = _server(context)
        return servers[context.principal]

    bridge = sdk_server(server_for, _page_url)
    wiring.mcp = StreamableHTTPSessionManager(
        bridge, stateless=True, max_request_body_size=wiring.settings.max_body_bytes
    )
    async with wiring.mcp.run():
        yield


def _page_url(request: Request) -> str:
    # Only an address to show to whoever sent the header.
    is_tls = request.headers.get("x-forwarded-proto") == "https"
    return str(request.base_url.replace(scheme="https") if is_tls else request.base_url)


OPERATIONS = (Operation("POST", "/mcp", answer_mcp, checks_query=False),)
