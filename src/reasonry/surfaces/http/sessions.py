"""Guided sessions: an agent's thoughts taken, read, searched, taken out and in.

A session is named by its whole id; who may not see it is told that there is none.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields
from starlette.responses import Response

from ...errors import NotFoundError, UsageError
from ...guided.export import Format
from ...guided.read_calls import MAX_PAGE, MAX_QUERY_CHARS, PAGE
from ...guided.thinking_tool import ThinkingCall, ThinkingReply
from ...ids import may_be_short
from ...reading.arguments import MAX_INT, MAX_NAME_CHARS
from ..web.find_page import find_page
from .context import RequestContext
from .documents import reply, snake_name
from .operations import Operation

Document = dict[str, Any]

_CAMEL_NAMES = re.compile(
    rf"\b(?:{'|'.join(each.encode_name for each in fields(ThinkingCall) if each.encode_name != each.name)})\b"
)
Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, Meta(max_length=MAX_NAME_CHARS)]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS)]
Instant = Annotated[int, Meta(ge=0, le=MAX_INT)]
Number = Annotated[int, Meta(ge=1, le=MAX_INT)]


NewThought: type[Struct] = msgspec.defstruct(
    "NewThought",
    [
        (each.name, each.type) if each.required else (each.name, each.type, each.default)
        for each in fields(ThinkingCall)
        if each.name not in ("session_id", "clear_session")
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""A thought as its thinker hands it in; the address names the session."""


class SessionsQuery(Struct, frozen=True):
    """Which sessions are listed."""

    status: Literal["active", "archived", "unfinished", "all"] = "all"
    strategy: Name | None = None
    guided: bool | None = None
    query: Text | None = None
    since_ms: Instant | None = None
    until_ms: Instant | None = None
    limit: Limit = PAGE
    cursor: Name | None = None


class SearchQuery(Struct, frozen=True):
    """What is searched for, and where."""

    query: Text
    session_id: Name | None = None
    limit: Limit = PAGE
    cursor: Name | None = None


class SessionQuery(Struct, frozen=True):
    """Which thoughts of a session are read."""

    first: Number | None = msgspec.field(name="from", default=None)
    last: Number | None = msgspec.field(name="to", default=None)
    branch_id: Name | None = None
    limit: Limit = PAGE
    cursor: Name | None = None


class ExportQuery(Struct, frozen=True):
    """How a session is exported."""

    format: Format = "json"


class KeepSession(Struct, frozen=True, forbid_unknown_fields=True):
    """What of a session can be set."""

    pinned: bool
    """A session that is pinned never expires."""


class SessionHead(TypedDict):
    """A session, and what is to be said about it."""

    session_id: str
    status: str
    purpose: NotRequired[str]
    strategy: NotRequired[str]


class SessionDocument(SessionHead):
    """A session, where its lines stand, and a page of its thoughts."""

    thoughts: list[Document]
    next_cursor: str | None


class SessionList(TypedDict):
    """A page of sessions."""

    sessions: list[Document]
    next_cursor: str | None


class FoundThoughts(TypedDict):
    """Thoughts that contain a text, with what stands around it."""

    matches: list[Document]
    notices: list[Document]
    next_cursor: str | None


class DeletedSession(TypedDict):
    """A session that is gone."""

    session_id: str
    deleted: Literal[True]


# -- thinking


async def begin_session(
    context: RequestContext,
    body: NewThought,  # pyright: ignore
) -> Response:
    """Begin a session with its first thought."""
    return _begun(await _think(context, body))


async def add_thought(
    context: RequestContext,
    session_id: str,
    body: NewThought,  # pyright: ignore
) -> Response:
    """Add a thought to a session. It is kept, on disk, when this is answered."""
    return reply(await _think(context, body, session_id), 201)


async def _think(context: RequestContext, body: Struct, session_id: str | None = None) -> Document:
    """Take a thought; what is said about it has the names that members have here, not those of the thinking tool."""
    arguments = {**_given_in(body), **({"session_id": session_id} if session_id else {})}
    try:
        return _in_snake(await context.sessions.think(arguments, begins=session_id is None))
    except UsageError as error:
        error.message = _CAMEL_NAMES.sub(lambda name: snake_name(name[0]), error.message)
        if "field" in error.details:
            error.details["field"] = snake_name(error.details["field"])
        raise


def _given_in(form: Struct) -> Document:
    """Return the members that a form names."""
    members = fields(type(form))
    return {
        each.encode_name: value for each in members if (value := getattr(form, each.name)) != each.default
    }


def _in_snake(document: Any) -> Any:
    """Return a reply with its members in snake case; those of `requires` are fields of a stage."""
    match document:
        case dict():
            return {
                snake_name(name): value if name == "requires" else _in_snake(value)
                for name, value in document.items()
            }
        case list():
            return [*map(_in_snake, document)]
        case _:
            return document


# -- looking


async def list_sessions(context: RequestContext, query: SessionsQuery) -> Response:
    """List sessions, last used first: those of agents (`guided`), and those that runs write.

    `query` finds those whose purpose or thoughts contain a text; `since_ms` and `until_ms` bound the last use.
    """
    filters = msgspec.structs.asdict(query)
    arguments = {name: filters.pop(name) for name in ("status", "limit", "cursor")}
    return reply(await context.sessions.list(arguments, **filters))


async def search_thoughts(context: RequestContext, query: SearchQuery) -> Response:
    """Search the thoughts of all sessions, or of one, for a text, whatever its case."""
    if query.session_id is not None:
        await _check_whole(context, query.session_id)
    return reply(await context.sessions.search(_given_in(query)))


async def read_session(context: RequestContext, session_id: str, query: SessionQuery) -> Response:
    """Read a session: its thoughts from one number to another, of one branch (empty: the main line) or all."""
    await _check_whole(context, session_id)
    arguments = {"session_id": session_id, **_given_in(query)}
    return reply(await context.sessions.get(arguments))


async def read_session_page(context: RequestContext, session_id: str) -> Response:
    """Read the session as the page draws it."""
    row = await context.app.store.session(session_id)
    mark = [row.used_at_ms, row.thoughts, row.status, row.pinned]
    if row.run_id is not None:
        run = await context.app.store.run(row.run_id)
        mark += [run.updated_at_ms, run.status]
    etag = f'"{hashlib.sha256(msgspec.json.encode([session_id, mark])).hexdigest()[:24]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if context.request.headers.get("if-none-match") == etag and row.run_id is None:
        return Response(status_code=304, headers=headers)
    return reply(await find_page(context.app, session_id), headers=headers)


# -- taking out and in


async def export_session(context: RequestContext, session_id: str, query: ExportQuery) -> Response:
    """Export a session whole: as data that `import` takes, or as text in Markdown or Mermaid."""
    await _check_whole(context, session_id)
    document = await context.sessions.export({"session_id": session_id, "format": query.format})
    return reply(document)


async def import_session(context: RequestContext, body: Document) -> Response:
    """Take in a session as `export` gives it; it gets a new id."""
    return _begun(await context.sessions.import_(body))


# -- keeping and forgetting


async def keep_session(context: RequestContext, session_id: str, body: KeepSession) -> Response:
    """Pin a session, so that it never expires, or unpin it."""
    await _check_whole(context, session_id)
    return reply(await context.sessions.pin({"session_id": session_id, "pinned": body.pinned}))


async def delete_session(context: RequestContext, session_id: str) -> Response:
    """Forget a session and its thoughts for good, with the run that wrote it, if any."""
    await _check_whole(context, session_id)
    return reply(await context.sessions.delete({"session_id": session_id}))


def _begun(document: Document) -> Response:
    return reply(document, 201, {"Location": f"/api/sessions/{document['session_id']}"})


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


_CHANGED = {409: "The session is the record of a run, or was changed at the same time."}
_AT_WORK = {409: "A run that is at work writes it; cancel the run first."}
_SAME = {304: "It is as it was; If-None-Match has its ETag."}

OPERATIONS = (
    Operation("POST", "/api/sessions", begin_session, ThinkingReply, 201),
    Operation("GET", "/api/sessions", list_sessions, SessionList),
    Operation("POST", "/api/sessions/import", import_session, SessionHead, 201),
    Operation("GET", "/api/search", search_thoughts, FoundThoughts),
    Operation("GET", "/api/sessions/{session_id}", read_session, SessionDocument),
    Operation("PATCH", "/api/sessions/{session_id}", keep_session, SessionHead),
    Operation("DELETE", "/api/sessions/{session_id}", delete_session, DeletedSession, others=_AT_WORK),
    Operation("POST", "/api/sessions/{session_id}/thoughts", add_thought, ThinkingReply, 201, _CHANGED),
    Operation(
        "GET",
        "/api/sessions/{session_id}/page",
        read_session_page,
        Document,
        others=_SAME,
        headers=["If-None-Match"],
    ),
    Operation("GET", "/api/sessions/{session_id}/export", export_session, Document),
)
