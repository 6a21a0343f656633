"""What a tool of the server is, and the session that a connection's calls go on with.

A tool takes the arguments as they came and returns a document or raises; it knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ReasonryError
from .current_runs import CurrentRuns

Document = dict[str, Any]
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the caller how far a long call has got: progress, total, message."""

_SETTLED_S = 1.0
"""After a pause this long the next call goes alone: its session may have expired; then it begins another."""


class CurrentSession:
    """The session that a connection's calls go on with when they name none.

    Calls run side by side and reach the store in the order they came; a call that may change it
    (the first, a clearing one, a resuming one, the first after a pause) goes alone.
    """

    def __init__(self) -> None:
        self.session_id: str | None = None
        self._gate = asyncio.Lock()
        self._used_at = float("-inf")

    async def call(
        self, act: Callable[[str | None], Awaitable[Document]], *, rebinds: bool = False
    ) -> Document:
        """Perform `act` with the bound id; the connection is bound to the `sessionId` of its document."""
        async with self._gate:
            if rebinds or self.session_id is None or time.monotonic() - self._used_at > _SETTLED_S:
                document = await act(self.session_id)
                self.bind(document["sessionId"])
                return document
        asked = self.session_id
        document = await act(asked)
        if self.session_id == asked:
            self.bind(document["sessionId"])
        return document

    def bind(self, session_id: str | None) -> None:
        """Let later calls go on with this session; None: the next call begins one."""
        self.session_id = session_id
        self._used_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls.

    Args:
        session: The current session of the connection; None: calls share none.
        report: Takes word of progress.
        runs: The runs of the connection; None: calls share none.
    """

    session: CurrentSession | None = None
    report: Report | None = None
    runs: CurrentRuns | None = None


@dataclass(frozen=True)
class McpTool:
    """A tool as the server offers it.

    Args:
        call: Does the work and returns a JSON document; what it raises becomes a result marked as an error.
        annotations: The protocol's hints, by their wire names.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    call: Callable[[Document, CallContext], Awaitable[Document]]
    annotations: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def listing(self) -> Document:
        """Return the tool's entry in `tools/list`."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "outputSchema": or_error(self.output_schema),
            "annotations": {"title": self.title, **self.annotations},
        }


def or_error(schema: Mapping[str, Any]) -> Document:
    """Return the output schema with the error document as the other possibility.

    Clients hold error results, too, against the schema.
    """
    if "error" in schema.get("properties", {}):
        return dict(schema)
    error = {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "retryable": {"type": "boolean"},
        },
        "required": ["code", "message", "retryable"],
    }
    widened = {key: value for key, value in schema.items() if key != "required"}
    widened["properties"] = {**schema.get("properties", {}), "error": error}
    widened["anyOf"] = [{"required": list(schema.get("required", ()))}, {"required": ["error"]}]
    return widened


def error_document(error: Exception) -> Document:
    """Return the document of an error result; an unexpected error goes to the log, not to the client."""
    if isinstance(error, ReasonryError):
        return {"error": error.document(), **error.beside()}
    logging.getLogger("reasonry.mcp").error("a tool failed unexpectedly", exc_info=error)
    unforeseen = ReasonryError("Something went wrong inside the server; its standard error says what.")
    return {"error": unforeseen.document()}
