"""Defines an MCP tool and the context of a tool call. Builds the results of tool calls.

A tool takes the raw arguments of a call. It returns a document or raises an error, and does not know the protocol.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import ReasonryError, UsageError
from ...guided.session_choice import Thinker
from .. import present

Document = dict[str, Any]
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports the progress of a long call. The arguments are the progress, the total and a message."""

MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a tool call, which describes the connection and the abilities of the client.

    Args:
        thinker: The sessions of the connection. None if the calls of the connection share no sessions.
        runs: The ids of the runs that the connection has started, resumed or answered. The latest run comes last.
        page_url: The address of the server's web page, if there is a page. The address plus `#/runs/ID` shows a run.
        ends_when_left: Whether an abandoned call ends the run that it started.
        patience_s: Seconds that a call without progress reports may wait for its run. None means until the run ends.
        takes_tasks: Whether the client accepts a task in place of a result.
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
        """Make a run the latest run of the connection. Beyond `MAX_RUNS` runs, forget the oldest run."""
        self.runs[:] = [*(known for known in self.runs if known != run_id), run_id][-MAX_RUNS:]


class TaskDocument(Document):
    """A document that describes a task of the protocol. A tool call returns a task if its result is not ready yet."""


@dataclass(frozen=True)
class McpTool:
    """A tool of the MCP server: a description for clients, and the function that does the work.

    Args:
        call: The function that does the work and returns a JSON document. An exception becomes an error result.
        annotations: Maps the name of each hint in the protocol to its value for this tool.
        page_uri: The address of the page that shows the tool's results, in clients that support pages.
        shorten: The function that returns a shorter document for the text part of a result.
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
        """Return the entry in `tools/list`. The address of the tool's page is under two keys, one for older clients."""
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
    """Copy an output schema so that the copy also allows an error document.

    Clients also validate error results against the output schema.
    """
    members = {"code": {"type": "string"}, "message": {"type": "string"}, "retryable": {"type": "boolean"}}
    error = {"type": "object", "properties": members, "required": [*members]}
    return {"type": "object", "properties": {**schema["properties"], "error": error}}


def tool_result(document: Document, *, is_error: bool = False, shown: Document | None = None) -> Document:
    """Build the result of a tool call. The result has the document both as text and as structured content.

    Args:
        shown: The document for the text. By default, the text is the same document.
    """
    text = msgspec.json.encode(document if shown is None else shown).decode()
    content = [{"type": "text", "text": text}]
    return {"content": content, "structuredContent": document, "isError": is_error}


def error_document(error: Exception) -> Document:
    """Return the document of an error. The details of an unexpected error go to the log, not to the client."""
    if isinstance(error, RecursionError):
        error = UsageError("the arguments are nested too deeply")
    if not isinstance(error, ReasonryError):
        logging.getLogger("reasonry.mcp").error("a tool failed unexpectedly", exc_info=error)
        error = ReasonryError("Something went wrong inside the server; its standard error says what.")
    return present.error_document(error)
