"""The server: the table of all that it answers, of which its routes and schema are made; run until a signal comes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from functools import cache
from typing import Any

import uvicorn
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ...app.app import App
from ...errors import NotFoundError, UsageError
from ..signals import on_ending
from ..web.html_page import live_page
from . import comparisons, inventory, mcp, runs, sessions
from .admission import OPEN_FOLDER
from .context import RequestContext, Wiring
from .documents import reply
from .gate import RequestGate
from .openai import routes as openai
from .openapi import describe_api, reference_page
from .operations import Endpoint, Operation
from .protocol import make_protocol
from .server_settings import ServerSettings

TABLE: Mapping[str, Sequence[Operation]] = {
    "sessions": sessions.OPERATIONS,
    "runs": runs.OPERATIONS,
    "comparisons": comparisons.OPERATIONS,
    "catalog": inventory.OPERATIONS,
    "operation": inventory.HEALTH,
    "openai": (*inventory.MODELS, *openai.OPERATIONS),
}
"""What the schema describes, under its tags."""

_BACKLOG = 2_048

_FILES_A_CONNECTION = 4
"""Its own, and its share of those of runs: connections to models, tool servers, the store."""
_COLLECT_AFTER = 50_000
"""New objects before garbage is looked for among them. A run leaves none behind that only the collector would find."""

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
    raise NotFoundError("there is nothing at this address; /api/openapi.json lists the addresses")


def create_server(app: App, settings: ServerSettings | None = None) -> RequestGate:
    """Return the server over an app, which stays the caller's to close."""
    settings = settings or ServerSettings()
    settings.check()
    wiring = Wiring(app, settings)

    @contextlib.asynccontextmanager
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


# -- run


async def serve(app: App, settings: ServerSettings, on_start: Callable[[str], object]) -> None:
    """Serve until a signal comes; then end what is under way, in time.

    Args:
        on_start: Told the address, once requests are taken.

    Raises:
        UsageError: The settings are not safe, or the address cannot be listened at.
        StoreError: The store cannot be used.
    """
    gate = create_server(app, settings)
    _allow_files(_FILES_A_CONNECTION * settings.max_connections)
    # A store that cannot be used is said so now, not to the first who asks.
    await app.store.runs(limit=1)
    listener = _listen(settings)
    server = DrainingServer(gate, settings, on_start=lambda: on_start(address_of(listener)))
    try:
        with listener:
            await server.serve(sockets=[listener])
    except SystemExit:
        if gate.wiring.failure is None:
            raise
        raise gate.wiring.failure from None


class DrainingServer(uvicorn.Server):
    """uvicorn's server, whose signals end streams and hand runs back before connections are waited for."""

    def __init__(
        self, gate: RequestGate, settings: ServerSettings, on_start: Callable[[], object] = lambda: None
    ) -> None:
        # What uvicorn logs quotes errors, and what requests ask for; the gate logs what may be.
        for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
            logging.getLogger(name).disabled = True
        super().__init__(
            uvicorn.Config(
                gate,
                http=make_protocol(settings),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=int(settings.idle_timeout_s),
                timeout_graceful_shutdown=max(1, int(settings.drain_s)),
            )
        )
        self._wiring = gate.wiring
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests."""
        await super().startup(sockets)
        # What is loaded stays; looking through it again and again took a tenth of the processor's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, and end what is under way."""
        drain = asyncio.ensure_future(self._wiring.drain())
        await super().shutdown(sockets)
        await drain

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Have signals end the server, which then returns as if it had come to its end by itself."""
        if threading.current_thread() is threading.main_thread():
            on_ending(self._end)
        yield

    def _end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _allow_files(count: int) -> None:
    """Have this process open so many files at once, as far as the system lets it: a shell's default is often 1,024."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(count, hard)), hard))


def _listen(settings: ServerSettings) -> socket.socket:
    host, port = settings.host.strip("[]"), settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        why = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise UsageError(
            f"the server cannot listen at {host[:100]} port {port}: {why}; "
            "--port takes another port; 0 takes any free port",
            option="port",
        ) from None


def address_of(listener: socket.socket) -> str:
    """Return the address at which a browser of this machine finds the server."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
