"""What operators and their machines ask of the server: its health and its metrics."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from .context import Context
from .documents import describe_reply, object_schema, reply

router = APIRouter(tags=["operation"])

_HEALTHY = describe_reply(object_schema({"status": {"const": "ok"}}), "The server and its store answer.")
_COUNT = {"type": "integer", "minimum": 0}
_QUEUE = object_schema({"depth": _COUNT, "oldest_s": {"type": "number", "minimum": 0}, "workers": _COUNT})


@router.get("/healthz", responses={200: _HEALTHY})
async def check_health(request: Request) -> Response:
    """Say whether the server and its store answer."""
    request.app.state.wiring.health.check()
    return reply({"status": "ok"})


@router.get(
    "/api/queue",
    responses={
        200: describe_reply(
            object_schema({"queue": _QUEUE}),
            "Jobs that wait, how many seconds the first of them has, and the processes that drive jobs, of all owners "
            "together.",
        )
    },
)
async def read_queue(context: Context) -> Response:
    """Say how the jobs of the store stand, as of a moment ago."""
    return reply({"queue": msgspec.to_builtins(context.wiring.jobs)})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "In Prometheus' text format.", "content": {"text/plain": {}}}},
)
async def read_metrics(context: Context) -> Response:
    """Return what the server counts."""
    text, media_type = context.wiring.metrics.text()
    return Response(text, media_type=media_type)
