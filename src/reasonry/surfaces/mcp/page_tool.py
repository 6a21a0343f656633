"""The tool `show`, which shows a run or a session as a page. A client that cannot show pages gets an address or a file.

A client declares in its capabilities that it supports pages (the extension MCP Apps). The client reads the page once,
as a resource without data, and passes each result of the tool to the page. The model gets only a summary of the result.
"""

from collections import Counter
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...app.app import App
from ...guided.session_calls import read_call
from ...guided.thinking_tool import tool_schema
from ..web.find_page import find_page
from ..web.html_page import html_page, page_folder, write_page
from ..web.page import DEFAULT_BOUNDS, PageBounds
from .tools import CallContext, Document, McpTool

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
PAGE_URI = "ui://reasonry/page.html"
PAGE_LISTING: Document = {
    "uri": PAGE_URI,
    "name": "page",
    "title": "Reasonry",
    "description": "Draws a run or a session.",
    "mimeType": MIME_TYPE,
}
DESCRIPTION = (
    "Show the user a run or session as a page: tree, scores, why thoughts were dropped, time, spend."
)

_EMBEDDED = PageBounds(text_chars=4_000, all_chars=1_500_000, nodes=1_000, entries=1_500)
_ANSWER_CHARS = 2_000


class ShowPage(Struct, frozen=True, kw_only=True):
    """Arguments of the tool `show`."""

    id: Annotated[str, Meta(description="run_id or session_id; default: the last")] = ""


def read_page_resource() -> Document:
    """Return the page as a resource of the protocol. The page contains no run or session yet."""
    return {"uri": PAGE_URI, "mimeType": MIME_TYPE, "text": html_page(None)}


def page_tool(app: App) -> McpTool:
    """Return the tool `show`."""
    properties = {
        **{name: {"type": "string"} for name in ("kind", "id", "title", "status", "path", "url", "note")},
        "answer": {"type": ["string", "null"]},
        "nodes": {"type": "object"},
        "page": {"type": "object"},
    }
    return McpTool(
        name="show",
        title="Show as Page",
        description=DESCRIPTION,
        input_schema=tool_schema(ShowPage),
        output_schema={"type": "object", "properties": properties},
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        call=lambda arguments, context: _show(app, arguments, context),
        page_uri=PAGE_URI,
        shorten=lambda document: {name: value for name, value in document.items() if name != "page"},
    )


async def _show(app: App, arguments: Document, context: CallContext) -> Document:
    # If the call has no id, show the connection's latest run, or its session, or the latest entry of the store.
    runs, own = context.runs, context.thinker and context.thinker.current
    wanted = read_call(ShowPage, arguments).id or (runs[-1] if runs else own or "last")
    page = await find_page(app, wanted, _EMBEDDED if context.shows_pages else DEFAULT_BOUNDS)
    dropped = Counter(node.why.code for node in page.nodes if node.why is not None)
    document = {
        **{name: getattr(page, name) for name in ("kind", "id", "title", "status")},
        "answer": page.answer and page.answer[:_ANSWER_CHARS],
        "nodes": {"total": len(page.nodes) + page.cuts.nodes, "dropped": dict(dropped)},
    }
    if context.shows_pages:
        return {**document, "note": "The page is shown to the user.", "page": msgspec.to_builtins(page)}
    if context.page_url is not None:
        url = f"{context.page_url}#/{page.kind}s/{page.id}"
        return {**document, "url": url, "note": "Give the user this address; it shows the page."}
    if context.thinker is None:
        return {**document, "note": f"`reasonry open {page.id}` shows the page."}
    path = write_page(page, page_folder(app.environ))
    return {**document, "path": str(path), "note": "Give the user this path; a browser opens the file."}
