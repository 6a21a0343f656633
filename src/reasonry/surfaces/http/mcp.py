"""MCP over streamable HTTP, under `/mcp`: the tools of `reasonry mcp`, for each principal over their own app.

No call knows of another: a thought without `sessionId` begins a session, a run is named by its id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.routing import Route

from ..mcp.mcp_catalog import app_server
from ..mcp.mcp_server import McpServer
from .context import PRINCIPAL, REQUEST_ID, RequestContext, Wiring
from .mcp_runs import SupervisedWork


def _server(context: RequestContext) -> McpServer:
    access, wiring = context.access, context.wiring
    work = SupervisedWork(access, context.supervisor, wiring.draining)
    # A response may have begun long before the store goes down: the gate waits for its head alone.
    return app_server(access, context.sessions, work=work, guard=wiring.health.unless_down)


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
