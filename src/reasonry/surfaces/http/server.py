"""The server: the table of all that it answers, of which its routes and its schema are made, and the gate before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ...app.wiring import App
from ...errors import NotFoundError
from ..web.html_page import live_page
from . import catalog, comparisons, mcp, runs, sessions
from .admission import OPEN_FOLDER
from .context import RequestContext, Wiring
from .documents import reply
from .gate import RequestGate
from .openai import routes as openai
from .openapi import describe_api, reference_page
from .operations import Endpoint, Operation
from .settings import ServerSettings

TABLE: Mapping[str, Sequence[Operation]] = {
    "sessions": sessions.OPERATIONS,
    "runs": runs.OPERATIONS,
    "comparisons": comparisons.OPERATIONS,
    "catalog": catalog.OPERATIONS,
    "operation": catalog.HEALTH,
    "openai": (*catalog.MODELS, *openai.OPERATIONS),
}
"""What the schema describes, under its tags."""

_CHANGING = {"Cache-Control": "no-cache"}
_FIXED = {"Cache-Control": "public, max-age=31536000, immutable"}


async def read_api(context: RequestContext) -> Response:
    """Return what `/api` and `/v1` take and answer."""
    return reply(_schema())


async def read_reference(context: RequestContext) -> Response:
    """Return the same as a page to read, which loads nothing."""
    return Response(reference_page(_schema()), headers=_CHANGING, media_type="text/html")


@cache
def _schema() -> dict[str, Any]:
    return describe_api(TABLE)


async def read_page(context: RequestContext) -> Response:
    """Return the page."""
    page = await asyncio.to_thread(live_page)
    return Response(page.document, headers=_CHANGING, media_type="text/html")


async def read_asset(context: RequestContext, version: str, name: str) -> Response:
    """Return what the page loads."""
    page = await asyncio.to_thread(live_page)
    if version != page.version or name not in page.files:
        raise NotFoundError("there is no such file of the page; reload it")
    # The type is not guessed from the system's tables: those of some name scripts text/plain, which no browser runs.
    media_type = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(page.files[name], headers=_FIXED, media_type=media_type)


BESIDES = (
    Operation("GET", "/api/openapi.json", read_api),
    Operation("GET", "/docs", read_reference),
    *mcp.OPERATIONS,
    Operation("GET", "/", read_page, checks_query=False),
    Operation("GET", "/assets/{version}/{name:path}", read_asset),
)
"""What the schema does not describe."""


def routes(wiring: Wiring) -> list[Route]:
    """Return the routes of a server."""
    addresses: dict[str, list[Operation]] = {}
    for operation in (*(each for operations in TABLE.values() for each in operations), *BESIDES):
        addresses.setdefault(operation.path, []).append(operation)
    packed = [Middleware(GZipMiddleware)]
    return [
        Route(path, Endpoint(operations, wiring), middleware=packed if path.startswith(OPEN_FOLDER) else [])
        for path, operations in addresses.items()
    ]


async def answer_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what is at no address."""
    raise NotFoundError("there is nothing at this address; /api/openapi.json lists what there is")


def create_server(app: App, settings: ServerSettings | None = None) -> RequestGate:
    """Return the server over an app, which stays the caller's to close."""
    settings = settings or ServerSettings()
    settings.check()
    wiring = Wiring(app, settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        try:
            async with wiring.working(), mcp.serving_mcp(wiring):
                yield
        except Exception as error:
            # uvicorn only logs it, and its log is off.
            wiring.failure = error
            raise

    router = Router(routes(wiring), redirect_slashes=False, default=answer_nothing, lifespan=lifespan)
    return RequestGate(router, wiring)
