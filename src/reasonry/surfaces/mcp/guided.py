"""The two tools of guided thinking, over the sessions, for the connection that calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from .. import thinking
from .tools import CallContext, Document, McpTool

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
_MANAGE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
_OF_THE_BOUND = frozenset({"get", "export", "pin"})
"""Actions on one session that mean the connection's own where none is named."""


class GuidedSessions(Protocol):
    """The guided sessions, as far as the server uses them."""

    async def think(self, arguments: Document, *, bound: str | None = None) -> Document:
        """Take in a thought."""
        ...

    async def manage(self, arguments: Document) -> Document:
        """Perform one of the actions on sessions."""
        ...

    async def list(self, arguments: Document) -> Document:
        """Return active sessions, last used first."""
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
            input_schema=thinking.sessions_input(),
            output_schema=thinking.sessions_output(),
            annotations=_MANAGE,
            call=lambda arguments, context: _manage(sessions, arguments, context),
        ),
    ]


async def _think(sessions: GuidedSessions, arguments: Document, context: CallContext) -> Document:
    current = context.session
    if current is None or arguments.get("sessionId") is not None:
        return await sessions.think(arguments)

    async def go_on(bound: str | None) -> Document:
        return await sessions.think(arguments, bound=bound)

    return await current.call(go_on, rebinds=bool(arguments.get("clearSession")))


async def _manage(sessions: GuidedSessions, arguments: Document, context: CallContext) -> Document:
    current, action = context.session, arguments.get("action")
    if current is None:
        return await sessions.manage(arguments)

    async def resume(_: Any) -> Document:
        return await sessions.manage(arguments)

    if action == "resume":
        return await current.call(resume, rebinds=True)
    if action in _OF_THE_BOUND and "sessionId" not in arguments and current.session_id is not None:
        arguments = {**arguments, "sessionId": current.session_id}
    document = await sessions.manage(arguments)
    if action == "delete" and document.get("sessionId") == current.session_id:
        current.bind(None)
    return document
