"""How the server itself stands: its health, its jobs and its metrics."""

from __future__ import annotations

from typing import Literal, TypedDict

from starlette.responses import Response

from ...records import JobStanding
from .context import RequestContext
from .documents import reply
from .operations import Operation


class Healthy(TypedDict):
    """The server and its store answer."""

    status: Literal["ok"]


class QueueDocument(TypedDict):
    """Jobs that wait, how many seconds the first has, and the processes that drive jobs, of all owners together."""

    queue: JobStanding


async def check_health(context: RequestContext) -> Response:
    """Say whether the server and its store answer."""
    context.wiring.health.check()
    return reply({"status": "ok"})


async def read_queue(context: RequestContext) -> Response:
    """Say how the jobs of the store stand, as of a moment ago."""
    return reply({"queue": context.wiring.jobs})


async def read_metrics(context: RequestContext) -> Response:
    """Return what the server counts, in Prometheus' text format."""
    text, media_type = context.wiring.metrics.text()
    return Response(text, media_type=media_type)


OPERATIONS = (
    Operation("GET", "/healthz", check_health, Healthy),
    Operation("GET", "/api/queue", read_queue, QueueDocument),
    Operation("GET", "/metrics", read_metrics, media_type="text/plain"),
)
