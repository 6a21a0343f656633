"""The two tools of guided thinking, over the sessions, bound to the connection that calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from .. import thinking
from .tools import Caller, Document, Tool

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
_MANAGE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
_OF_THE_BOUND = frozenset({"get", "export", "pin"})
"""Actions on one session that mean the connection's own where none is named."""


class Sessions(Protocol):
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


def guided_tools(sessions: Sessions, strategies: Iterable[str]) -> list[Tool]:
    """Return `sequentialthinking` and `sessions`.

    Args:
        sessions: Where thoughts are kept.
        strategies: The names a thinker may choose from.
    """
    return [
        Tool(
            name=thinking.THINKING,
            title=thinking.THINKING_TITLE,
            description=thinking.THINKING_DESCRIPTION,
            input_schema=thinking.thinking_input(strategies),
            output_schema=thinking.thinking_output(),
            annotations=_THINK,
            call=lambda arguments, caller: _think(sessions, arguments, caller),
        ),
        Tool(
            name=thinking.SESSIONS,
            title=thinking.SESSIONS_TITLE,
            description=thinking.SESSIONS_DESCRIPTION,
            input_schema=thinking.sessions_input(),
            output_schema=thinking.sessions_output(),
            annotations=_MANAGE,
            call=lambda arguments, caller: _manage(sessions, arguments, caller),
        ),
    ]


async def _think(sessions: Sessions, arguments: Document, caller: Caller) -> Document:
    binding = caller.binding
    if binding is None or arguments.get("sessionId") is not None:
        return await sessions.think(arguments)

    async def go_on(bound: str | None) -> Document:
        return await sessions.think(arguments, bound=bound)

    return await binding.call(go_on, rebinds=bool(arguments.get("clearSession")))


async def _manage(sessions: Sessions, arguments: Document, caller: Caller) -> Document:
    binding, action = caller.binding, arguments.get("action")
    if binding is None:
        return await sessions.manage(arguments)

    async def resume(_: Any) -> Document:
        return await sessions.manage(arguments)

    if action == "resume":
        return await binding.call(resume, rebinds=True)
    if action in _OF_THE_BOUND and "sessionId" not in arguments and binding.session_id is not None:
        arguments = {**arguments, "sessionId": binding.session_id}
    document = await sessions.manage(arguments)
    if action == "delete" and document.get("sessionId") == binding.session_id:
        binding.bind(None)
    return document
