"""A tool of the server, and the facts it gets about the connection that calls.

A tool takes the arguments as they came and returns a document or raises; it knows nothing of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import ReasonryError, UsageError
from ...guided.which_session import Thinker
from ...masking import SECRETS

Document = dict[str, Any]
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the caller how far a long call has got: progress, total, message."""


MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls.

    Args:
        thinker: The sessions of the connection; None: calls share none.
        report: Takes word of progress.
        runs: The runs that the connection has begun, taken up or answered, the latest last.
        shows_pages: Whether the client shows the pages of tools.
        page_url: Where the page of the server stands, to which `#/runs/ID` is added; None: nowhere.
        ends_when_left: Whether a call that the client gives up ends the run that it began.
        patience_s: How long a call may take whose client takes no progress; None: as long as its run.
        takes_tasks: Whether the client takes a task in place of a result.
        can_ask: Whether the client puts questions to its user.
    """

    thinker: Thinker | None = None
    report: Report | None = None
    runs: list[str] = field(default_factory=list[str])
    shows_pages: bool = False
    page_url: str | None = None
    ends_when_left: bool = True
    patience_s: float | None = None
    takes_tasks: bool = False
    can_ask: bool = False

    def add_run(self, run_id: str) -> None:
        """Take a run as the latest of the connection; the oldest are forgotten beyond `MAX_RUNS`."""
        self.runs[:] = [*(known for known in self.runs if known != run_id), run_id][-MAX_RUNS:]


class TaskDocument(Document):
    """A task of the protocol, which stands for the document that a call will come to."""


def declared_extension(capabilities: Mapping[str, Any], name: str) -> Document | None:
    """Return what a client declares of an extension; None: it does not know it."""
    extensions = capabilities.get("extensions")
    declared = extensions.get(name) if isinstance(extensions, dict) else None
    return declared if isinstance(declared, dict) else None


@dataclass(frozen=True)
class McpTool:
    """A tool as the server offers it.

    Args:
        call: Does the work and returns a JSON document; what it raises becomes a result marked as an error.
        annotations: The protocol's hints, by their wire names.
        page_uri: The page that shows the tool's results, in clients that show pages.
        shorten: Returns what the text of a result says of the document.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    call: Callable[[Document, CallContext], Awaitable[Document]]
    annotations: Mapping[str, bool] = field(default_factory=dict[str, bool])
    page_uri: str = ""
    shorten: Callable[[Document], Document] = lambda document: document

    def listing(self, *, shows_pages: bool = False) -> Document:
        """Return the tool's entry in `tools/list`; the page's address stands in it twice, as older clients look."""
        page = {"ui": {"resourceUri": self.page_uri}, "ui/resourceUri": self.page_uri}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "outputSchema": or_error(self.output_schema),
            "annotations": {"title": self.title, **self.annotations},
            **({"_meta": page} if self.page_uri and shows_pages else {}),
        }


def or_error(schema: Mapping[str, Any]) -> Document:
    """Return the output schema with the error document as the other possibility.

    Clients hold error results, too, against the schema.
    """
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


def tool_result(document: Document, *, is_error: bool = False, shown: Document | None = None) -> Document:
    """Return the result of a call: a tool's document as text and as structure.

    Args:
        is_error: Whether the document describes an error.
        shown: What the text says in its place; None: the document.
    """
    text = msgspec.json.encode(document if shown is None else shown).decode()
    content = [{"type": "text", "text": text}]
    return {"content": content, "structuredContent": document, "isError": is_error}


def brief_error(document: Document) -> Document:
    """Return what the text of an error says: choices that its message has already are not said again."""
    error: Document = document["error"]
    message, choices = error["message"], error.get("choices", ())
    is_listed = all(str(choice) in message for choice in choices)
    shown = {name: value for name, value in error.items() if name != "choices" or not is_listed}
    return {**document, "error": shown}


def error_document(error: Exception) -> Document:
    """Return the document of an error result; an unexpected error goes to the log, not to the client."""
    if isinstance(error, RecursionError):
        error = UsageError("the arguments are nested too deeply")
    if isinstance(error, ReasonryError):
        return {"error": SECRETS.mask_data(error.document()), **error.beside()}
    logging.getLogger("reasonry.mcp").error("a tool failed unexpectedly", exc_info=error)
    unforeseen = ReasonryError("Something went wrong inside the server; its standard error says what.")
    return {"error": unforeseen.document()}
