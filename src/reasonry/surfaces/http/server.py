"""The HTTP server. The table of operations determines its routes and its OpenAPI schema. `serve` runs the server."""

import asyncio
import contextlib
import errno
import gc
import itertools
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
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
from . import listings, mcp, runs, sessions
from .admission import OPEN_FOLDER
from .context import RequestContext, Wiring
from .documents import reply
from .gate import RequestGate
from .openai import routes as openai
from .openapi import describe_api, reference_page
from .operations import Endpoint, Operation
from .protocol import make_protocol
from .server_settings import ServerSettings

TABLE: dict[str, Sequence[Operation]] = {
    "sessions": sessions.OPERATIONS,
    "runs": runs.OPERATIONS,
    "catalog": listings.OPERATIONS,
    "operation": listings.HEALTH,
    "openai": (*listings.MODELS, *openai.OPERATIONS),
}
"""Maps each tag of the OpenAPI schema to the operations that have this tag."""

_BACKLOG = 2_048

_FILES_A_CONNECTION = 4
"""How many file descriptors to allow for each connection. Models, tool servers and the store need some of them."""
_COLLECT_AFTER = 50_000
"""How many new objects start a garbage collection. The count is high because runs leave no reference cycles."""

_CHANGING = {"Cache-Control": "no-cache"}
_FIXED = {"Cache-Control": "public, max-age=31536000, immutable"}


async def read_api(context: RequestContext) -> Response:
    """Return the OpenAPI schema of `/api` and `/v1`."""
    return reply(_schema())


async def read_reference(context: RequestContext) -> Response:
    """Return the OpenAPI schema as a self-contained HTML page."""
    return Response(reference_page(_schema()), headers=_CHANGING, media_type="text/html")


@cache
def _schema() -> dict[str, Any]:
    return describe_api(TABLE)


async def read_page(context: RequestContext) -> Response:
    """Return the web page of the server."""
    page = await asyncio.to_thread(live_page)
    return Response(page.document, headers=_CHANGING, media_type="text/html")


async def read_asset(context: RequestContext, version: str, name: str) -> Response:
    """Return a file of the web page."""
    page = await asyncio.to_thread(live_page)
    if version != page.version or name not in page.files:
        raise NotFoundError("there is no such file of the page; reload it")
    # The system's table of types is not used: some systems call scripts text/plain, and browsers do not run text/plain.
    media_type = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(page.files[name], headers=_FIXED, media_type=media_type)


BESIDES = (
    Operation("GET", "/api/openapi.json", read_api),
    Operation("GET", "/docs", read_reference),
    *mcp.OPERATIONS,
    Operation("GET", "/", read_page, checks_query=False),
    Operation("GET", "/assets/{version}/{name:path}", read_asset),
)
"""The operations that the OpenAPI schema omits."""


async def answer_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request to an unknown address."""
    raise NotFoundError("there is nothing at this address; /api/openapi.json lists the addresses")


def create_server(app: App, settings: ServerSettings) -> RequestGate:
    """Create the server for an app. The caller must close the app."""
    settings.check()
    wiring, packed = Wiring(app, settings), [Middleware(GZipMiddleware)]
    addresses: dict[str, list[Operation]] = {}
    # The router tries the addresses one after another, so the addresses of completions come first.
    for operation in (*itertools.chain(*reversed(TABLE.values())), *BESIDES):
        addresses.setdefault(operation.path, []).append(operation)
    routes = [
        Route(path, Endpoint(operations, wiring), middleware=packed if path.startswith(OPEN_FOLDER) else [])
        for path, operations in addresses.items()
    ]
    router = Router(routes, redirect_slashes=False, default=answer_nothing)
    return RequestGate(router, wiring)


# -- run


async def serve(app: App, settings: ServerSettings, on_start: Callable[[str], Awaitable[object]]) -> None:
    """Serve requests until a signal arrives, then finish pending work within the time limit.

    Args:
        on_start: Called with the address of the server when the server accepts requests.

    Raises:
        UsageError: The settings are unsafe, or the address is unavailable.
        StoreError: The store cannot be used.
    """
    gate = create_server(app, settings)
    _allow_files(_FILES_A_CONNECTION * settings.max_connections)
    # An unusable store must fail here, not at the first request.
    await app.store.runs(limit=1)
    listener = _listen(settings)
    server = DrainingServer(gate, settings, on_start=lambda: on_start(address_of(listener)))
    with listener:
        await server.serve(sockets=[listener])


class DrainingServer(uvicorn.Server):
    """A uvicorn server. On a signal, it ends event streams and releases runs, so that connections can close soon."""

    def __init__(
        self, gate: RequestGate, settings: ServerSettings, on_start: Callable[[], Awaitable[object]]
    ) -> None:
        # uvicorn's log quotes errors and requests; the gate logs only texts that are safe to show.
        for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
            logging.getLogger(name).disabled = True
        super().__init__(
            uvicorn.Config(
                gate,
                http=make_protocol(settings),
                ws="none",
                lifespan="off",
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

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve requests until a signal arrives, while the server's background work runs."""
        async with self._wiring.working(), mcp.serving_mcp(self._wiring):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting requests."""
        await super().startup(sockets)
        # Loaded modules are never freed. Checking them in each garbage collection took a tenth of the CPU time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
        await self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests, and finish pending work within the time limit."""
        drain = asyncio.ensure_future(self._wiring.drain())
        await super().shutdown(sockets)
        await drain

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Make signals end the server without an exception."""
        if threading.current_thread() is threading.main_thread():
            on_ending(self._end)
        yield

    def _end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _allow_files(count: int) -> None:
    """Raise the limit on open files to `count`, if the system permits. The default in a shell is often 1,024."""
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
        why = f"cannot listen at {host[:100]} port {port}: {why}"
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            why = f"port {port} is in use"
        raise UsageError(f"{why}; choose another with --port (0 = any free port)", option="port") from None


def address_of(listener: socket.socket) -> str:
    """Return the server's address for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
