"""Guided sessions: an agent's thoughts taken, read, searched, taken out and in.

A session is named by its whole id; who may not see it is told that there is none.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct

from ...errors import NotFoundError
from ...guided.arguments import MAX_INT, MAX_NAME_CHARS
from ...guided.export import Format
from ...guided.session_actions import MAX_PAGE, MAX_QUERY_CHARS, PAGE
from ...guided.thinking_tool import ThinkingCall, ThinkingReply, tool_schema
from ...ids import may_be_short
from ...records import SessionFilters
from ..web.find_page import find_page
from .context import Context, RequestContext
from .documents import describe_body, describe_reply, object_schema, read_body, read_json, reply
from .plain_route import PlainRoute
from .schema import error_responses
from .spelling import camel_arguments, snake_form, snake_schema, speak_snake, to_snake

router = APIRouter(prefix="/api", tags=["sessions"])
thinking = APIRouter(prefix="/api", tags=["sessions"], route_class=PlainRoute)

NewThought: Any = snake_form("NewThought", ThinkingCall, without=("session_id", "clear_session"))
Status = Literal["active", "archived", "unfinished", "all"]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Cursor = Annotated[str | None, Query(max_length=MAX_NAME_CHARS)]
Name = Annotated[str | None, Query(max_length=MAX_NAME_CHARS)]
Instant = Annotated[int | None, Query(ge=0, le=MAX_INT)]
Number = Annotated[int | None, Query(ge=1, le=MAX_INT)]

_STRING, _OBJECT = {"type": "string"}, {"type": "object"}
_OBJECTS = {"type": "array", "items": _OBJECT}
_NEXT_CURSOR = {"type": ["string", "null"]}
_SESSION = object_schema(
    {"session_id": _STRING, "status": _STRING}, {"purpose": _STRING, "strategy": _STRING}
)
_THOUGHT_TAKEN: dict[int | str, Any] = {
    201: describe_reply(
        snake_schema(tool_schema(ThinkingReply)), "Where the session stands after the thought."
    )
}
_NO_MOVE = error_responses({409: "The session is the record of a run, or was changed at the same time."})


class KeepSession(Struct, frozen=True, forbid_unknown_fields=True):
    """What of a session can be set."""

    pinned: bool
    """A session that is pinned never expires."""


# -- thinking


@thinking.post(
    "/sessions", status_code=201, openapi_extra=describe_body(NewThought), responses=_THOUGHT_TAKEN
)
async def begin_session(context: Context, request: Request) -> Response:
    """Begin a session with its first thought."""
    call = await read_body(request, NewThought)
    with speak_snake():
        document = await context.sessions.think(camel_arguments(call))
    location = {"Location": f"/api/sessions/{document['sessionId']}"}
    return reply(to_snake(document), 201, location)


@thinking.post(
    "/sessions/{session_id}/thoughts",
    status_code=201,
    openapi_extra=describe_body(NewThought),
    responses={**_THOUGHT_TAKEN, **_NO_MOVE},
)
async def add_thought(context: Context, request: Request, session_id: str) -> Response:
    """Add a thought to a session. It is kept, on disk, when this is answered."""
    call = await read_body(request, NewThought)
    arguments = {**camel_arguments(call), "sessionId": session_id}
    with speak_snake():
        document = await context.sessions.think(arguments, begins=False)
    return reply(to_snake(document), 201)


# -- looking


@router.get(
    "/sessions",
    responses={
        200: describe_reply(object_schema({"sessions": _OBJECTS, "next_cursor": _NEXT_CURSOR}), "A page.")
    },
)
async def list_sessions(
    context: Context,
    status: Status = "all",
    strategy: Name = None,
    guided: bool | None = None,
    query: Annotated[str | None, Query(min_length=1, max_length=MAX_QUERY_CHARS)] = None,
    since_ms: Instant = None,
    until_ms: Instant = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """List sessions, last used first: those of agents (`guided`), and those that runs write.

    `query` finds those whose purpose or thoughts contain a text; `since_ms` and `until_ms` bound the last use.
    """
    which = SessionFilters(
        strategy=strategy, guided=guided, query=query, since_ms=since_ms, until_ms=until_ms
    )
    arguments = {"status": status, "limit": limit, "cursor": cursor}
    with speak_snake():
        return reply(to_snake(await context.sessions.list(arguments, **which)))


@router.get(
    "/search",
    responses={
        200: describe_reply(
            object_schema({"matches": _OBJECTS, "next_cursor": _NEXT_CURSOR, "notices": _OBJECTS}),
            "Thoughts that contain the text, with what stands around it.",
        )
    },
)
async def search_thoughts(
    context: Context,
    query: Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARS)],
    session_id: Name = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """Search the thoughts of all sessions, or of one, for a text, whatever its case."""
    if session_id is not None:
        await _check_whole(context, session_id)
    arguments = {"query": query, "sessionId": session_id, "limit": limit, "cursor": cursor}
    with speak_snake():
        return reply(to_snake(await context.sessions.search(arguments)))


@router.get(
    "/sessions/{session_id}",
    responses={
        200: describe_reply(
            {
                **_SESSION,
                "properties": {**_SESSION["properties"], "thoughts": _OBJECTS, "next_cursor": _NEXT_CURSOR},
            },
            "The session, where its lines stand, and a page of its thoughts.",
        )
    },
)
async def read_session(
    context: Context,
    session_id: str,
    first: Annotated[Number, Query(alias="from")] = None,
    last: Annotated[Number, Query(alias="to")] = None,
    branch_id: Name = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """Read a session: its thoughts from one number to another, of one branch (empty: the main line) or all."""
    await _check_whole(context, session_id)
    arguments = {"sessionId": session_id, "from": first, "to": last, "branchId": branch_id}
    with speak_snake():
        return reply(to_snake(await context.sessions.get({**arguments, "limit": limit, "cursor": cursor})))


@router.get(
    "/sessions/{session_id}/page",
    responses={
        200: describe_reply(_OBJECT, "The session as the page draws it."),
        304: {"description": "It is as it was; If-None-Match has its ETag."},
    },
)
async def read_session_page(context: Context, request: Request, session_id: str) -> Response:
    """Read what the page draws of a session."""
    row = await context.app.store.session(session_id)
    mark = [row.used_at_ms, row.thoughts, row.status, row.pinned]
    if row.run_id is not None:
        run = await context.app.store.run(row.run_id)
        mark += [run.updated_at_ms, run.status]
    etag = f'"{hashlib.sha256(msgspec.json.encode([session_id, mark])).hexdigest()[:24]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == etag and row.run_id is None:
        return Response(status_code=304, headers=headers)
    return reply(await find_page(context.app, session_id), headers=headers)


# -- taking out and in


@router.get(
    "/sessions/{session_id}/export",
    responses={200: describe_reply(_OBJECT, "The session whole, as `import` takes it, or in `text`.")},
)
async def export_session(context: Context, session_id: str, format: Format = "json") -> Response:
    """Export a session whole: as data, or as text in Markdown or Mermaid."""
    await _check_whole(context, session_id)
    document = await context.sessions.export({"sessionId": session_id, "format": format})
    return reply(document if format == "json" else to_snake(document))


@router.post(
    "/sessions/import",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _OBJECT}}}},
    responses={201: describe_reply(_SESSION, "The session, and what is to be said about it.")},
)
async def import_session(context: Context, request: Request) -> Response:
    """Take in a session as `export` gives it; it gets a new id."""
    with speak_snake():
        document = await context.sessions.import_(await read_json(request))
    location = {"Location": f"/api/sessions/{document['sessionId']}"}
    return reply(to_snake(document), 201, location)


# -- keeping and forgetting


@router.patch(
    "/sessions/{session_id}",
    openapi_extra=describe_body(KeepSession),
    responses={200: describe_reply(_SESSION, "The session.")},
)
async def keep_session(context: Context, request: Request, session_id: str) -> Response:
    """Pin a session, so that it never expires, or unpin it."""
    call = await read_body(request, KeepSession)
    await _check_whole(context, session_id)
    return reply(to_snake(await context.sessions.pin({"sessionId": session_id, "pinned": call.pinned})))


@router.delete(
    "/sessions/{session_id}",
    responses={
        200: describe_reply(
            object_schema({"session_id": _STRING, "deleted": {"const": True}}), "It is gone."
        ),
        **error_responses({409: "A run that is at work writes it; cancel the run first."}),
    },
)
async def delete_session(context: Context, session_id: str) -> Response:
    """Forget a session and its thoughts for good, with the run that wrote it, if any."""
    await _check_whole(context, session_id)
    return reply(to_snake(await context.sessions.delete({"sessionId": session_id})))


async def _check_whole(context: RequestContext, session_id: str) -> None:
    """Make sure that an id is not the beginning of one, which elsewhere stands for it.

    Raises:
        NotFoundError: There is no session of just this id.
    """
    if not session_id or may_be_short(session_id):
        try:
            await context.app.store.session(session_id)
        except NotFoundError:
            raise NotFoundError(f"there is no session {session_id[:MAX_NAME_CHARS]!r}") from None
