"""The server: its routes, and what stands before and behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from ...app import App
from . import catalog, mcp, page, runs, sessions
from .access import AccessControl
from .context import Wiring
from .error_replies import add_error_handlers
from .openai import routes as openai
from .settings import ServerSettings


def create_server(app: App, settings: ServerSettings | None = None) -> FastAPI:
    """Return the server over an app, which stays the caller's to close."""
    settings = settings or ServerSettings()

    @asynccontextmanager
    async def lifespan(server: FastAPI) -> AsyncGenerator[None]:
        server.state.wiring = Wiring(app, settings)
        yield

    server = FastAPI(
        title="Reasonry", openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, lifespan=lifespan
    )
    add_error_handlers(server)
    for part in (runs, sessions, catalog, openai, mcp, page):
        server.include_router(part.router)
    server.add_middleware(AccessControl, settings=settings)
    return server
