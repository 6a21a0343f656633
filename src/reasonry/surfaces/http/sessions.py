"""Guided sessions: an agent's thoughts taken, read, searched, taken out and in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...guided.thinking_tool import ThinkingCall
from .context import Context
from .documents import describe_body, read_body, reply
from .plain_route import PlainRoute
from .spelling import camel_arguments, snake_form, to_snake

router = APIRouter(prefix="/api", tags=["sessions"])
fast = APIRouter(route_class=PlainRoute)

NewThought = snake_form("NewThought", ThinkingCall, without=("session_id", "clear_session"))


@fast.post("/sessions", status_code=201, openapi_extra=describe_body(NewThought))
async def begin_session(context: Context, request: Request) -> Response:
    """Begin a session with its first thought."""
    call = await read_body(request, NewThought)
    document = await context.sessions.think(camel_arguments(call))
    location = {"Location": f"/api/sessions/{document['sessionId']}"}
    return reply(to_snake(document), 201, location)


@fast.post("/sessions/{session_id}/thoughts", status_code=201, openapi_extra=describe_body(NewThought))
async def add_thought(context: Context, request: Request, session_id: str) -> Response:
    """Add a thought to a session."""
    call = await read_body(request, NewThought)
    document = await context.sessions.think({**camel_arguments(call), "sessionId": session_id})
    return reply(to_snake(document), 201)


router.include_router(fast)
