"""Defines `RequestContext`, the context of a single request, and `Wiring`, the parts that all requests share."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ...app.app import App
from ...errors import OverloadedError
from ...guided.sessions import Sessions
from ...supervisor import Jobs, Supervisor
from .health import Health
from .metrics import Metrics
from .server_settings import ServerSettings

if TYPE_CHECKING:
    from ...queues import Worker

PRINCIPAL = "reasonry.principal"
"""The key in an ASGI scope for the principal of the request."""

PING_S: Final = 15
"""Seconds between the comments that the server adds to an event stream, so that proxies keep the stream open."""


class RequestContext(NamedTuple):
    """The principal of a request, and the parts of the server that answer the request.

    Attributes:
        principal: The owner of the request's token. If the request needs no token, this is `OPERATOR`.
        app: The app, limited to the principal's runs and sessions and to the names that a request may use.
        sessions: The sessions of the principal.
    """

    principal: str
    app: App
    supervisor: Supervisor
    sessions: Sessions
    wiring: Wiring
    request: Request


def page_url(request: Request) -> str:
    """Return the address at which the sender of `request` can reach the web page."""
    is_tls = request.headers.get("x-forwarded-proto") == "https"
    return str(request.base_url.replace(scheme="https") if is_tls else request.base_url)


class Wiring:
    """The parts of the server that all requests share. The method `context` builds the context of a single request.

    Attributes:
        in_flight: How many requests are in progress, by principal.
    """

    def __init__(self, app: App, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings
        self.health = Health(app.store, settings.store_timeout_s)
        self.supervisor = Supervisor(
            app,
            max_runs=settings.max_runs,
            max_queued=settings.max_queued,
            queued=lambda: self.health.jobs.depth,
            usd_a_day=settings.usd_a_day_of,
        )
        self.metrics = Metrics()
        self.in_flight = Counter[str]()
        self.mcp: Any = None
        """The handler of MCP requests while the server runs."""
        self._worker: Worker | None = None
        self._streams = Counter[str]()
        watch = self.metrics.watch
        watch("reasonry_requests_in_flight", "Requests in work.", self.in_flight.total)
        watch("reasonry_store_up", "1 while the store answers.", lambda: self.health.writes.is_up)
        watch("reasonry_streams_open", "Event streams.", self._streams.total)
        self.metrics.follow(app.engine.policy, self.supervisor, self.health)
        self._parts: dict[str, tuple[App, Sessions]] = {}

    def context(self, request: Request) -> RequestContext:
        """Build the context of an accepted request."""
        principal = request.scope[PRINCIPAL]
        parts = self._parts.get(principal)
        if parts is None:
            app = self.app.for_owner(principal)
            parts = self._parts[principal] = app.for_agents(), app.sessions()
        return RequestContext(principal, parts[0], self.supervisor, parts[1], self, request)

    @contextlib.contextmanager
    def stream(self, principal: str) -> Generator[None]:
        """Count an event stream of a principal while the stream is open.

        Raises:
            OverloadedError: The principal has reached the limit of open streams.
        """
        if (limit := self.settings.max_streams) <= self._streams[principal]:
            message = f"{limit} event streams are open, which is the limit; close one of them"
            raise OverloadedError(message, code="rate_limited", retry_after_s=5)
        self._streams[principal] += 1
        try:
            yield
        finally:
            self._streams[principal] -= 1

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Run the background work of the server while the context is open, then drain the server."""
        driving = asyncio.ensure_future(self._drive_jobs())
        watching = [*map(asyncio.ensure_future, (self.health.watch(), self.metrics.watch_loop()))]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await self.drain()
            await driving

    async def _drive_jobs(self) -> None:
        """Drive the store's jobs until the server drains. If the settings allow no jobs, return at once."""
        places = min(self.settings.concurrency, self.settings.max_runs)
        if not places:
            return
        if not self.app.store.has_workers:
            await Jobs(self.app, self.supervisor, places).take()
            return
        from ...queues import DEFAULT_QUEUE, Worker, postgres_store

        self._worker = Worker(postgres_store(self.app.store), self.supervisor, [DEFAULT_QUEUE], places)
        await self._worker.work()

    async def drain(self) -> None:
        """End all event streams, and release all runs for another server. Later calls do nothing."""
        if self.supervisor.draining:
            return
        if self._worker is not None:
            self._worker.end()
        await self.supervisor.drain(self.settings.drain_s)


def stream_events(
    context: RequestContext, events: AsyncIterable[Any], headers: Mapping[str, str] | None = None
) -> ASGIApp:
    """Return an ASGI app that streams `events`. The app raises `OverloadedError` if too many streams are open."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with context.wiring.stream(context.principal):
            await EventSourceResponse(events, headers=headers, ping=PING_S, sep="\n")(scope, receive, send)

    return answer
