"""MCP over streamable HTTP, under `/mcp`: the tools of `reasonry mcp`, for each principal over their own app.

The supervisor brings the runs that calls begin to their end, whatever becomes of the call. No call knows of another: a
thought without `sessionId` begins a session, a run is named by its id.

Rule 1: a call that waits says how far its run has got at least every `BEAT_S`; one whose client takes no progress is
        answered after `PATIENCE_S`, with the run's id.
Rule 2: a run ends with its call only where the protocol says that who closes the response stream cancels the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp

from ...app.agent_app import AgentApp
from ...app.participants import Participants
from ...core.budget import Budget
from ...engine.journal import Begun
from ...engine.policy import Performers
from ...engine.result import Result
from ..mcp.driven import RunWork
from ..mcp.mcp_catalog import app_server
from ..mcp.mcp_server import McpServer
from ..mcp.run_tasks import RunTasks
from ..mcp.tools import CallContext, Document, Report
from .context import RequestContext, Wiring, page_url
from .operations import Operation

BEAT_S: Final = 5.0
PATIENCE_S: Final = 45.0
"""Many clients give a call up after a minute."""
_MESSAGE_CHARS = 200

STILL_AT_WORK: Final = (
    "The run continues here. `coach` with action `status` and this run's id waits for its end."
)


class SupervisedWork(RunWork):
    """Works on runs by way of the server's supervisor."""

    def __init__(self, app: AgentApp, wiring: Wiring) -> None:
        super().__init__(app, RunTasks(app, wiring.supervisor))
        self._supervisor, self._wiring = wiring.supervisor, wiring

    async def solve(self, order: Begun, performers: Performers, context: CallContext) -> Document:
        """See `RunWork`."""
        run_id, _ = await self._supervisor.start(self.app, order, performers)
        return await self._see_through(run_id, context)

    async def resume(
        self, run_id: str, participants: Participants, budget: Budget | None, context: CallContext
    ) -> Document:
        """See `RunWork`."""
        await self._supervisor.resume(self.app, run_id, participants, budget)
        return await self._see_through(run_id, context)

    async def _see_through(self, run_id: str, context: CallContext) -> Document:
        with self._wiring.attending(self.app, run_id, leaves=not context.ends_when_left):
            result = await self._wait(run_id, context)
        if result is not None:
            return result.document(nodes=False)
        so_far = (await self.app.engine.result(run_id)).document(nodes=False)
        return {**so_far, "note": STILL_AT_WORK}

    async def cancel(self, run_id: str) -> Document:
        """See `RunWork`."""
        await self._supervisor.cancel(self.app, run_id)
        return await self.app.coach(brief=True).status(run_id)

    async def status(self, run_id: str, context: CallContext) -> Document:
        """See `RunWork`; of a run that is driven here, wait for its end."""
        await self.app.store.run(run_id)
        if self._supervisor.is_driven(run_id):
            await self._wait(run_id, context)
        return await self.app.coach(brief=True).status(run_id)

    async def _wait(self, run_id: str, context: CallContext) -> Result | None:
        """Return where the run ended; None: the caller has waited long enough, or the server is about to end."""
        ended = asyncio.ensure_future(self._supervisor.wait(self.app, run_id))
        draining = asyncio.ensure_future(self._wiring.draining.wait())
        try:
            if context.report is None:
                await asyncio.wait({ended, draining}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            else:
                await self._report(run_id, {ended, draining}, context.report)
            return ended.result() if ended.done() and not ended.cancelled() else None
        finally:
            ended.cancel()
            draining.cancel()

    async def _report(self, run_id: str, over: set[asyncio.Future[Any]], report: Report) -> None:
        """Tell the caller the run's id, then its latest thought, or that the run continues, until it is over."""
        message, number = f"run {run_id}", 0
        while True:
            number += 1
            await report(float(number), None, message)
            if (await asyncio.wait(over, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED))[0]:
                return
            thoughts = (await self.app.engine.read(run_id, whole=False)).run.thoughts
            message = thoughts[-1].text[:_MESSAGE_CHARS] if thoughts else "at work"


async def answer_mcp(context: RequestContext) -> ASGIApp:
    """Answer a request of the protocol."""
    return context.wiring.mcp.handle_request


@asynccontextmanager
async def serving_mcp(wiring: Wiring) -> AsyncGenerator[None]:
    """Have requests of MCP answered meanwhile."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..mcp.http_server import sdk_server

    servers = dict[str, McpServer]()

    def server_for(request: Request) -> McpServer:
        context = wiring.context(request)
        if context.principal not in servers:
            server = app_server(SupervisedWork(context.app, wiring), context.sessions)
            # A response may have begun long before the store goes down: the gate waits for its head alone.
            server.guard = wiring.health.waiting
            servers[context.principal] = server
        return servers[context.principal]

    bridge = sdk_server(server_for, page_url, has_tasks=AgentApp(wiring.app).has_model)
    wiring.mcp = StreamableHTTPSessionManager(
        bridge, stateless=True, max_request_body_size=wiring.settings.max_body_bytes
    )
    async with wiring.mcp.run():
        yield


OPERATIONS = (Operation("POST", "/mcp", answer_mcp, checks_query=False),)
