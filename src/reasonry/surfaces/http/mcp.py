"""MCP over streamable HTTP, under `/mcp`: the tools of `reasonry mcp`, for each principal over their own app.

The supervisor brings the runs that calls begin to their end, whatever becomes of the call. No call knows of another: a
thought without `sessionId` begins a session, a run is named by its id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.types import ASGIApp

from ...app.agent_app import AgentApp
from ..mcp.driven import RunWork
from ..mcp.mcp_catalog import app_server
from ..mcp.mcp_server import McpServer
from .context import RequestContext, Wiring, page_url
from .operations import Operation


async def answer_mcp(context: RequestContext) -> ASGIApp:
    """Answer a request of the protocol."""
    return context.wiring.mcp.handle_request


@asynccontextmanager
async def serving_mcp(wiring: Wiring) -> AsyncGenerator[None]:
    """Have requests of MCP answered meanwhile."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..mcp.http_server import sdk_server

    servers = dict[str, McpServer]()

    def server_for(request: Request) -> McpServer:
        context = wiring.context(request)
        if context.principal not in servers:
            server = app_server(RunWork(context.app, wiring.supervisor), context.sessions)
            # A response may have begun long before the store goes down: the gate waits for its head alone.
            server.guard = wiring.health.waiting
            servers[context.principal] = server
        return servers[context.principal]

    bridge = sdk_server(server_for, page_url, has_tasks=AgentApp(wiring.app).has_model)
    wiring.mcp = StreamableHTTPSessionManager(
        bridge, stateless=True, max_request_body_size=wiring.settings.max_body_bytes
    )
    async with wiring.mcp.run():
        yield


OPERATIONS = (Operation("POST", "/mcp", answer_mcp, checks_query=False),)
