"""HTTP operations on sessions of thoughts, and on the table of a comparison.

A request must give the complete id of a session. A principal gets `not_found` for the sessions of other principals.
"""

from typing import Annotated, Any, NotRequired, Required, TypedDict

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from ...compare.trial_table import read_comparison
from ...core.budget import MAX_INT
from ...guided.export import Format
from ...guided.session_calls import (
    MAX_QUERY_CHARS,
    ExportSession,
    GetSession,
    ListSessions,
    OneSession,
    PinSession,
    SearchThoughts,
)
from ...guided.thinking_tool import NewThought, Notice, ThinkingReply
from ...records import may_be_short
from ..web.find_page import find_page
from ..web.page import PageDocument
from .context import RequestContext
from .documents import Document, page_headers, reply
from .operations import Operation

Instant = Annotated[int, Meta(ge=0, le=MAX_INT)]


class SessionsQuery(ListSessions, frozen=True, kw_only=True):
    """The query parameters that filter a list of sessions."""

    strategy: str | None = None
    guided: bool | None = None
    query: str | None = None
    since_ms: Instant | None = None
    until_ms: Instant | None = None


class SearchQuery(SearchThoughts, frozen=True, kw_only=True):
    """The query parameters of a search for a text in thoughts."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS)]


class KeepSession(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change the settings of a session."""

    pinned: bool
    """Whether the session is pinned. A pinned session never expires."""


# -- the documents of replies


class SessionHeadDocument(TypedDict):
    """A session without its thoughts, as in a list of sessions."""

    session_id: str
    status: str
    pinned: bool
    thought_history_length: int
    purpose: str
    created_at: str
    used_at: str
    strategy: NotRequired[str]
    run_id: NotRequired[str]
    ended: NotRequired[bool]
    notices: NotRequired[list[Notice]]


class _ThoughtMembers(TypedDict, total=False):
    seq: Required[int]
    thought_number: Required[int]
    total_thoughts: int
    next_thought_needed: bool
    stage: str
    stages: list[str]
    from_stage: str
    branch_id: str
    branch_from_thought: int
    branch_from_seq: int
    is_revision: bool
    revises_thought: int
    revises_seq: int
    needs_more_thoughts: bool
    merge_branch: str
    data: Document
    score: float
    at: str


class ThoughtDocument(_ThoughtMembers):
    """A thought. Members without a value are omitted."""

    thought: str


class FoundThoughtDocument(_ThoughtMembers):
    """A thought that contains the searched text, with an excerpt around that text."""

    session_id: str
    excerpt: str


class SessionDocument(SessionHeadDocument):
    """A session with its latest thought, its branches, and one page of its thoughts."""

    stage: NotRequired[str]
    latest_thought: NotRequired[Document]
    branches: NotRequired[list[Document]]
    thoughts: list[ThoughtDocument]
    next_cursor: str | None


class SessionListDocument(TypedDict):
    """A page of sessions."""

    sessions: list[SessionHeadDocument]
    next_cursor: str | None


class FoundThoughtsDocument(TypedDict):
    """One page of the thoughts that contain the searched text."""

    matches: list[FoundThoughtDocument]
    next_cursor: str | None


class SessionExportDocument(TypedDict):
    """A whole session, either as data that `import` accepts or as Markdown in `text`."""

    session_id: str
    format: Format
    text: NotRequired[str]
    kind: NotRequired[str]
    version: NotRequired[int]
    thoughts: NotRequired[list[ThoughtDocument]]


class DeletedSessionDocument(TypedDict):
    """Confirms that a session was deleted, or that a run and its session were deleted."""

    session_id: str
    run_id: NotRequired[str]
    deleted: bool


# -- thinking


async def begin_session(context: RequestContext, body: NewThought) -> Response:
    """Start a session with its first thought."""
    return _begun(await context.sessions.think(msgspec.to_builtins(body)))


async def add_thought(context: RequestContext, session_id: str, body: NewThought) -> Response:
    """Add a thought to a session. The reply is sent after the thought has been stored."""
    call = {**msgspec.to_builtins(body), "session_id": session_id}
    return reply(await context.sessions.think(call, begins=False), 201)


# -- looking


async def list_sessions(context: RequestContext, query: SessionsQuery) -> Response:
    """List sessions, the most recently used first. `guided` selects the sessions of agents (true) or of runs (false).

    `query` is a text to find in purposes and thoughts. `since_ms` and `until_ms` (Unix time in ms) bound the last use.
    """
    filters = {name: getattr(query, name) for name in SessionsQuery.__annotations__}
    return reply(await context.sessions.list(query, **filters))


async def search_thoughts(context: RequestContext, query: SearchQuery) -> Response:
    """Search the thoughts of all sessions, or of one session, for a text. The search ignores case."""
    return await _show(context, "search", query)


async def read_session(context: RequestContext, query: GetSession) -> Response:
    """Read a session with all thoughts, the thoughts numbered `from` to `to`, or one branch (`main`: the main line)."""
    return await _show(context, "get", query)


async def read_session_page(context: RequestContext, session_id: str) -> Response:
    """Return the document from which the web page draws a session."""
    row = await context.app.store.session(session_id)
    headers = page_headers(session_id, row.used_at_ms, row.thoughts, row.status, row.pinned)
    known = context.request.headers.get("if-none-match", "")
    if row.run_id is None and headers["ETag"] in known:
        return Response(status_code=304, headers=headers)
    return reply(await find_page(context.app, session_id), headers=headers)


# -- export and import


async def export_session(context: RequestContext, query: ExportSession) -> Response:
    """Export a whole session, either as JSON data for `import` or as Markdown text."""
    return await _show(context, "export", query)


async def import_session(context: RequestContext, body: Document) -> Response:
    """Import a session that `export` returned. The imported session gets a new id."""
    return _begun(await context.sessions.import_(body))


# -- pinning and deleting


async def keep_session(context: RequestContext, session_id: str, body: KeepSession) -> Response:
    """Pin a session so that it never expires, or unpin it."""
    return await _show(context, "pin", PinSession(session_id=session_id, pinned=body.pinned))


async def delete_session(context: RequestContext, query: OneSession) -> Response:
    """Delete a session and its thoughts permanently. If a run wrote the session, delete that run, too."""
    return await _show(context, "delete", query)


class ComparisonDocument(TypedDict):
    """The current state of a comparison: the output of `reasonry compare --json`, plus the active runs."""

    id: str
    dataset: str
    complete: bool
    items: list[dict[str, Any]]
    strategies: list[dict[str, Any]]
    findings: list[str]
    trials: list[dict[str, Any]]
    running: list[dict[str, Any]]


async def show_comparison(context: RequestContext, comparison_id: str) -> Response:
    """Return the current table of a comparison."""
    return reply(await read_comparison(context.app, comparison_id))


def _begun(document: Document) -> Response:
    return reply(document, 201, {"Location": f"/api/sessions/{document['session_id']}"})


async def _show(context: RequestContext, action: str, call: Any) -> Response:
    """Call the `Sessions` method named by `action`, and reply with its result.

    Raises:
        NotFoundError: The session id is incomplete. Only other surfaces accept the beginning of an id.
    """
    session_id = call.session_id
    if session_id is not None and (not session_id or may_be_short(session_id)):
        await context.app.store.session(session_id)
    return reply(await getattr(context.sessions, action)(call))


IF_CHANGED = 200, {304: "The session still has this ETag."}, {"If-None-Match": {"type": "string"}}
_SESSION = "/api/sessions/{session_id}"

OPERATIONS = (
    Operation("POST", "/api/sessions", begin_session, ThinkingReply, 201),
    Operation("GET", "/api/sessions", list_sessions, SessionListDocument),
    Operation("POST", "/api/sessions/import", import_session, SessionHeadDocument, 201),
    Operation("GET", "/api/search", search_thoughts, FoundThoughtsDocument),
    Operation("GET", _SESSION, read_session, SessionDocument),
    Operation("PATCH", _SESSION, keep_session, SessionHeadDocument),
    Operation("DELETE", _SESSION, delete_session, DeletedSessionDocument),
    Operation("POST", f"{_SESSION}/thoughts", add_thought, ThinkingReply, 201),
    Operation("GET", f"{_SESSION}/page", read_session_page, PageDocument, *IF_CHANGED),
    Operation("GET", f"{_SESSION}/export", export_session, SessionExportDocument),
    Operation("GET", "/api/comparisons/{comparison_id}", show_comparison, ComparisonDocument),
)
