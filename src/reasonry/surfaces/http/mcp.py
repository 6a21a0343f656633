"""Serves the tools of `reasonry mcp` under `/mcp`, as MCP over streamable HTTP. Each principal has its own app.

The server's supervisor drives the runs that calls start. A client with a handshake version of the protocol gets an
`Mcp-Session-Id`. All calls with this id share one connection, as over stdio. The calls of other clients share nothing:
a thought without `sessionId` starts a session, and a call must give the id of its run.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ...guided.session_choice import Thinker
from ..mcp.connection import STATELESS_VERSION
from ..mcp.mcp_catalog import app_server
from ..mcp.mcp_server import McpServer
from ..mcp.run_tasks import RunTasks
from ..mcp.tools import CallContext
from .context import RequestContext, Wiring, page_url
from .operations import Operation

CONNECTION = "mcp-session-id"
MAX_CONNECTIONS = 10_000
"""How many connections the server remembers. Beyond this limit, it forgets the least recently used connection."""
_NAME_CHARS = 64


async def answer_mcp(context: RequestContext) -> ASGIApp:
    """Return the ASGI app that answers an MCP request."""
    headers, answer = context.request.headers, context.wiring.mcp.handle_request
    if CONNECTION in headers or headers.get("mcp-protocol-version") == STATELESS_VERSION:
        return answer

    async def open_connection(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (CONNECTION.encode(), uuid4().hex.encode())]
            await send(message)

        await answer(scope, receive, send_named)

    return open_connection


@asynccontextmanager
async def serving_mcp(wiring: Wiring) -> AsyncGenerator[None]:
    """Set `wiring.mcp` to the handler of MCP requests, and run this handler while the context is open."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..mcp.http_server import sdk_server

    servers, connections = dict[str, McpServer](), dict[tuple[str, str], CallContext]()

    def server_for(request: Request) -> McpServer:
        context = wiring.context(request)
        if context.principal not in servers:
            server = app_server(RunTasks(context.app, wiring.supervisor), context.sessions)
            # The gate guards a request only until the response begins, but a streamed call depends on the store longer.
            server.guard = wiring.health.writes.waiting
            servers[context.principal] = server
        return servers[context.principal]

    def context_for(request: Request) -> CallContext:
        name, calls = request.headers.get(CONNECTION, ""), CallContext()
        if 0 < len(name) <= _NAME_CHARS:
            # The server may have issued an unknown name before a restart, so the name is accepted.
            key = wiring.context(request).principal, name
            calls = connections.pop(key, None) or CallContext(Thinker(gate=asyncio.Lock()))
            connections[key] = calls
            if len(connections) > MAX_CONNECTIONS:
                del connections[next(iter(connections))]
        return replace(calls, page_url=page_url(request))

    bridge = sdk_server(server_for, context_for, has_tasks=wiring.app.for_agents().rights.has_model)
    wiring.mcp = StreamableHTTPSessionManager(
        bridge, stateless=True, max_request_body_size=wiring.settings.max_body_bytes
    )
    async with wiring.mcp.run():
        yield


OPERATIONS = (Operation("POST", "/mcp", answer_mcp, checks_query=False),)
