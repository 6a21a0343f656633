"""The two tools of guided thinking, over the sessions."""

from __future__ import annotations

from typing import Any

from .tools import Caller, Document, Tool

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
_MANAGE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
_OF_THE_BOUND = frozenset({"get", "export", "pin"})
"""Actions on one session that mean the connection's own where none is named."""


def guided_tools(sessions: Any) -> list[Tool]:
    """Return `sequentialthinking` and `sessions`."""
    return [_thinking(sessions), _managing(sessions)]


def _thinking(sessions: Any) -> Tool:
    async def think(arguments: Document, caller: Caller) -> Document:
        binding = caller.binding
        if binding is None or arguments.get("sessionId") is not None:
            return await sessions.think(arguments)

        async def go_on(bound: str | None) -> Document:
            return await sessions.think(arguments, bound=bound)

        return await binding.call(go_on, rebinds=bool(arguments.get("clearSession")))

    return Tool(
        name="sequentialthinking",
        title="Sequential Thinking",
        description="Record one step of thinking.",
        input_schema={
            "type": "object",
            "properties": {
                "thought": {"type": "string"},
                "nextThoughtNeeded": {"type": "boolean"},
                "thoughtNumber": {"type": "integer"},
                "totalThoughts": {"type": "integer"},
            },
            "required": ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"],
        },
        output_schema={"type": "object", "properties": {}, "required": ["sessionId"]},
        annotations=_THINK,
        call=think,
    )


def _managing(sessions: Any) -> Tool:
    async def manage(arguments: Document, caller: Caller) -> Document:
        binding, action = caller.binding, arguments.get("action")
        if binding is None:
            return await sessions.manage(arguments)
        if action == "resume":
            return await binding.call(lambda _: sessions.manage(arguments), rebinds=True)
        if action in _OF_THE_BOUND and arguments.get("sessionId") is None and binding.session_id is not None:
            arguments = {**arguments, "sessionId": binding.session_id}
        document = await sessions.manage(arguments)
        if action == "delete" and arguments.get("sessionId") == binding.session_id:
            binding.bind(None)
        return document

    return Tool(
        name="sessions",
        title="Thinking Sessions",
        description="Look at thinking sessions.",
        input_schema={"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]},
        output_schema={"type": "object", "properties": {}},
        annotations=_MANAGE,
        call=manage,
    )
