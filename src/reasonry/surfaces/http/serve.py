"""Runs the server until a signal comes."""

from __future__ import annotations

import uvicorn

from ...app import App
from .server import create_server
from .settings import ServerSettings


async def serve(app: App, settings: ServerSettings) -> None:
    """Serve until a signal comes."""
    config = uvicorn.Config(
        create_server(app, settings),
        host=settings.host,
        port=settings.port,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=4,
    )
    await uvicorn.Server(config).serve()
