"""The two tools of guided thinking, over the sessions, for the connection that calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ...errors import UsageError
from ...guided.arguments import name_arguments, read_action, unknown_arguments
from ...guided.known_sessions import KnownSessions
from ...guided.session_actions import ACTIONS
from ...guided.thinking_tool import ThinkingCall, tool_schema
from .. import thinking
from .tools import CallContext, CurrentSession, Document, McpTool

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
_MANAGE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
_OF_THE_CURRENT = frozenset({"get", "export", "pin"})
"""Actions on one session that mean the connection's own where none is named."""
_MAIN_LINE_ONLY = "An empty branchId means the main line; leave it out for the thoughts of the branches too."
_CHANGING = frozenset({"delete", "pin"})
"""Actions that change something: an argument that would do nothing is refused, where others only say so."""


class GuidedSessions(Protocol):
    """The guided sessions, as far as the server uses them."""

    async def think(self, arguments: Document, *, known: KnownSessions | None = None) -> Document:
        """Take in a thought."""
        ...

    async def manage(self, arguments: Document) -> Document:
        """Perform one of the actions on sessions."""
        ...

    async def list(self, arguments: Document) -> Document:
        """Return sessions, last used first."""
        ...

    async def export(self, arguments: Document) -> Document:
        """Return a session whole."""
        ...


def guided_tools(sessions: GuidedSessions, strategies: Iterable[str]) -> list[McpTool]:
    """Return `sequentialthinking` and `sessions`.

    Args:
        sessions: Where thoughts are kept.
        strategies: The names a thinker may choose from.
    """
    managing = thinking.sessions_input()
    return [
        McpTool(
            name=thinking.THINKING,
            title=thinking.THINKING_TITLE,
            description=thinking.THINKING_DESCRIPTION,
            input_schema=thinking.thinking_input(strategies),
            output_schema=thinking.thinking_output(),
            annotations=_THINK,
            call=lambda arguments, context: _think(sessions, arguments, context),
        ),
        McpTool(
            name=thinking.SESSIONS,
            title=thinking.SESSIONS_TITLE,
            description=thinking.SESSIONS_DESCRIPTION,
            input_schema=managing,
            output_schema=thinking.sessions_output(),
            annotations=_MANAGE,
            call=lambda arguments, context: _manage(sessions, managing, arguments, context),
        ),
    ]


async def _think(sessions: GuidedSessions, arguments: Document, context: CallContext) -> Document:
    current, arguments = context.session, name_arguments(tool_schema(ThinkingCall), arguments)
    if current is None:
        return await sessions.think(arguments)
    return await current.think(arguments, lambda call, known: sessions.think(call, known=known))


async def _manage(
    sessions: GuidedSessions, schema: Document, arguments: Document, context: CallContext
) -> Document:
    action = read_action(ACTIONS, arguments)
    arguments = {**name_arguments(schema, arguments, keep_empty=("branchId",)), "action": action}
    unknown = unknown_arguments(thinking.SESSIONS, arguments, schema["properties"])
    if unknown and action in _CHANGING:
        raise UsageError(" ".join(unknown), choices=list(schema["properties"]))
    document = await _perform(sessions, action, arguments, context.session)
    notices = [{"reason": "unknown_argument", "message": sentence} for sentence in unknown]
    if action == "get" and arguments.get("branchId") == "" and document.get("branches"):
        notices.append({"reason": "main_line_only", "message": _MAIN_LINE_ONLY})
    if notices:
        document["notices"] = [*document.get("notices", []), *notices]
    return document


async def _perform(
    sessions: GuidedSessions, action: str, arguments: Document, current: CurrentSession | None
) -> Document:
    if current is None:
        return await sessions.manage(arguments)

    if action == "resume":
        return await current.resume(lambda: sessions.manage(arguments))
    if action in _OF_THE_CURRENT and not arguments.get("sessionId") and current.session_id is not None:
        arguments = {**arguments, "sessionId": current.session_id}
    document = await sessions.manage(arguments)
    if action == "delete":
        current.forget(document["sessionId"])
    return document
