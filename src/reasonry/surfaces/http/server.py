"""The server: its routes, and the gate before them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Router

from ...app.wiring import App
from .context import Wiring
from .gate import RequestGate
from .mcp import serving_mcp
from .routes import answer_nothing, routes
from .settings import ServerSettings


def create_server(app: App, settings: ServerSettings | None = None) -> RequestGate:
    """Return the server over an app, which stays the caller's to close."""
    settings = settings or ServerSettings()
    settings.check()
    wiring = Wiring(app, settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        try:
            async with wiring.working(), serving_mcp(wiring):
                yield
        except Exception as error:
            # uvicorn only logs it, and its log is off.
            wiring.failure = error
            raise

    router = Router(routes(wiring), redirect_slashes=False, default=answer_nothing, lifespan=lifespan)
    return RequestGate(router, wiring)
