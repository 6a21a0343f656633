"""What a route is answered with: who asks, and the parts of the app that are theirs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from ...app import App
from ...errors import ReasonryError, StoreError, WorldError
from ...guided.sessions import Sessions
from ...queues import Queue, QueueStanding, Waiting, Worker, full_error, place_of
from ...supervisor.supervisor import Supervisor
from ..agents import AgentAccess
from .health import Health
from .metrics import Metrics
from .settings import ServerSettings

_LOG = logging.getLogger("reasonry.http")

LOOK_EVERY_S = 1.0
"""How often the server looks at the queue."""

PRINCIPAL = "reasonry.principal"
REQUEST_ID = "reasonry.request_id"
"""Keys of an ASGI scope; the gate sets them."""


class RequestContext(NamedTuple):
    """Who asks, and with what it is answered.

    Attributes:
        principal: `OPERATOR`, or a name that has a token.
        app: In its store only what is the principal's exists.
        access: The same app as requests may use it: they name what the operator listed, and nothing else.
        sessions: Those of the same store.
    """

    principal: str
    app: App
    supervisor: Supervisor
    access: AgentAccess
    sessions: Sessions
    wiring: Wiring
    request_id: str


class Wiring:
    """The parts that requests share, made once; each principal has an app of its own over them.

    Attributes:
        in_flight: Requests that are worked on.
        draining: Set when the server is about to end; streams end then.
        queue: What stands in the queue, as of a moment ago; None: there is none.
    """

    def __init__(self, app: App, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings
        self.supervisor = Supervisor(
            app,
            max_runs=settings.max_runs,
            usd_a_day=settings.usd_a_day_of,
            reopen=AgentAccess(app).recorded_participants,
        )
        self.health = Health(app.store, settings.store_timeout_s)
        self.metrics = Metrics()
        self.in_flight = 0
        self.failure: Exception | None = None
        """Why the server could not start, or did not end well."""
        self.metrics.watch("reasonry_requests_in_flight", "Requests in work.", lambda: self.in_flight)
        self.metrics.watch(
            "reasonry_runs_driven", "Runs that are driven here.", lambda: self.supervisor.running
        )
        self.metrics.watch("reasonry_store_up", "1 while the store answers.", lambda: self.health.is_up)
        self.metrics.watch("reasonry_streams_open", "Event streams.", lambda: sum(self._streams.values()))
        self.queue: QueueStanding | None = None
        self._put = 0
        """Runs that were put into the queue since it was looked at."""
        self._queue: Queue | None = None
        self._worker: Worker | None = None
        self.draining = asyncio.Event()
        self._drain: asyncio.Future[None] | None = None
        self._streams = Counter[str]()
        self._parts: dict[str, tuple[App, AgentAccess, Sessions]] = {}

    def context(self, principal: str, request_id: str) -> RequestContext:
        """Return what a request of a principal is answered with."""
        parts = self._parts.get(principal)
        if parts is None:
            app = self.app.for_owner(principal)
            parts = self._parts[principal] = app, AgentAccess(app), app.sessions()
        app, access, sessions = parts
        return RequestContext(principal, app, self.supervisor, access, sessions, self, request_id)

    @contextlib.contextmanager
    def stream(self, principal: str) -> Generator[None]:
        """Count an event stream while it is open.

        Raises:
            WorldError: The principal has as many open as may be.
        """
        if self._streams[principal] >= self.settings.max_streams:
            raise WorldError(
                f"{self.settings.max_streams} event streams are open, and no more may be; close one",
                code="rate_limited",
                retryable=True,
                retry_after_s=5,
            )
        self._streams[principal] += 1
        try:
            yield
        finally:
            self._streams[principal] -= 1

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Do what goes on beside the requests, while the server runs."""
        if self.settings.queued:
            self._open_queue()
        go_on = self._work_off() if self._queue else self._take_up()
        beside = [asyncio.ensure_future(work) for work in (self.health.watch(), go_on)]
        try:
            yield
        finally:
            for task in beside:
                task.cancel()
            await self.drain()
            if self._queue is not None:
                await self._queue.close()

    def _open_queue(self) -> None:
        """Have runs wait in the queue of the store, if it has one."""
        place = place_of(self.app.store)
        if place is None:
            return
        self._queue = queue = Queue(place)

        def check_room() -> None:
            waiting = 0 if self.queue is None else self.queue.depth
            if waiting + self._put >= self.settings.max_queued:
                raise full_error(self.settings.max_queued)

        async def hand_over(run_id: str, owner: str) -> None:
            try:
                await queue.put([Waiting(run_id, owner)])
                self._put += 1
                if self._worker is not None:
                    self._worker.look()
            except StoreError as error:
                # It is accepted; a worker finds it in the store.
                _LOG.error("a run is not in the queue yet: %s", error.code)

        self.supervisor.hand_over, self.supervisor.check_queue = hand_over, check_room
        self._watch_queue()

    def _watch_queue(self) -> None:
        def show(name: str, about: str, field: str) -> None:
            self.metrics.watch(name, about, lambda: getattr(self.queue, field, 0))

        show("reasonry_queue_depth", "Runs that wait to be driven.", "depth")
        show("reasonry_queue_oldest_seconds", "How long the first of them has waited.", "oldest_s")
        show("reasonry_workers", "Workers of this store that are alive.", "workers")
        show("reasonry_runs_adopted_total", "Runs taken from workers that had died.", "adopted")

    async def _work_off(self) -> None:
        """Drive runs of the queue, where this server does, and look at it now and then."""
        queue = self._queue
        while queue is not None:
            try:
                if self.settings.worker and self._worker is None:
                    worker = Worker(
                        self.app,
                        queue,
                        self.supervisor,
                        concurrency=self.settings.worker,
                        max_running=self.settings.max_running,
                    )
                    await worker.start()
                    self._worker = worker
                    await worker.take_up_unfinished()
                put = self._put
                self.queue = await queue.standing()
                self._put -= put
            except ReasonryError as error:
                _LOG.error("the queue cannot be used at present: %s", error.code)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _take_up(self) -> None:
        """Go on with the runs that an earlier server accepted."""
        try:
            await self.supervisor.take_up_unfinished()
        except ReasonryError as error:
            _LOG.error("runs of an earlier server could not be taken up: %s", error.code)

    async def drain(self) -> None:
        """End streams, and let runs go, so that the next server takes them up; in time, and once."""
        self.draining.set()
        if self._drain is None:
            self._drain = asyncio.ensure_future(self._let_go())
        await self._drain

    async def _let_go(self) -> None:
        worker = [self._worker.drain()] if self._worker is not None else []
        await asyncio.gather(self.supervisor.drain(self.settings.drain_s), *worker)


async def get_context(request: Request) -> RequestContext:
    """Return the context of a request that has been let in."""
    scope = request.scope
    return request.app.state.wiring.context(scope[PRINCIPAL], scope[REQUEST_ID])


Context = Annotated[RequestContext, Depends(get_context)]
"""The type of a route's parameter that is the request's context."""
