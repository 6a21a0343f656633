"""The server: its routes, and what stands before and behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import Depends, FastAPI

from ...app import App
from . import catalog, mcp, operation, page, runs, sessions
from .context import Wiring
from .error_replies import add_error_handlers
from .gate import RequestGate
from .openai import routes as openai
from .plain_route import PlainRoutes
from .schema import add_schema, check_query
from .settings import ServerSettings

_ABOUT = (
    "Reasoning strategies as durable, inspectable runs; sessions of thoughts. All times are UTC. "
    "Where tokens are set, each request needs one, and sees only what is its principal's."
)
_NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own would send where requests go wherever the environment says."""


def create_server(app: App, settings: ServerSettings | None = None) -> FastAPI:
    """Return the server over an app, which stays the caller's to close."""
    settings = settings or ServerSettings()
    settings.check()
    wiring = Wiring(app, settings)

    @asynccontextmanager
    async def lifespan(server: FastAPI) -> AsyncGenerator[None]:
        try:
            async with wiring.working():
                yield
        except Exception as error:
            # uvicorn only logs it, and its log is off.
            wiring.failure = error
            raise

    server = FastAPI(
        title="Reasonry",
        version=version("reasonry"),
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,  # pyright: ignore[reportArgumentType]
    )
    server.state.wiring = wiring
    add_error_handlers(server)
    plain = sessions.thinking, openai.completing
    for router in (*plain, openai.router):
        server.include_router(router)
    for part in (sessions, runs, catalog, operation):
        server.include_router(part.router, dependencies=[Depends(check_query)])
    for part in (mcp, page):
        server.include_router(part.router)
    add_schema(server)
    # The gate answers whatever fails, so it stands before all that Starlette and FastAPI put around the routes.
    gate = RequestGate(PlainRoutes(server.build_middleware_stack(), plain), wiring)
    server.state.gate = server.middleware_stack = gate
    return server
