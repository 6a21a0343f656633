"""Everything the server offers, as plain protocol documents, whichever transport carries them.

The connection over standard input and output and the SDK's server for HTTP both answer from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...errors import NotFoundError
from .frames import INVALID_PARAMS, RefusedError
from .page_tool import PAGE_LISTING, PAGE_URI, read_page_resource
from .resources import Resources
from .tools import CallContext, Document, Guard, McpTool, error_document

T = TypeVar("T")

NAME = "reasonry"
INSTRUCTIONS = (
    "Think in steps with `sequentialthinking`: history is kept durably under the `sessionId` of the reply. "
    "Name a `strategy` to be guided through its stages. Look back with `sessions`."
)
CAPABILITIES: Document = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
CACHE_HINTS = {
    "server/discover": 3_600_000,
    "tools/list": 3_600_000,
    "prompts/list": 3_600_000,
    "resources/templates/list": 3_600_000,
    "resources/list": 0,
    "resources/read": 0,
}
"""How long, in milliseconds, a client may take an answer for fresh (protocol 2026-07-28)."""


class ListParams(Struct, frozen=True):
    """Of a listing, which has one page."""

    cursor: str | None = None


class ToolCallParams(Struct, frozen=True):
    """Of `tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None


class ResourceParams(Struct, frozen=True):
    """Of `resources/read`."""

    uri: str


class PromptParams(Struct, frozen=True):
    """Of `prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


def read_params(form: type[T], params: Document) -> T:
    """Return the parameters of a request, read; members that are not known are passed over.

    Raises:
        RefusedError: They are not of the form.
    """
    try:
        return msgspec.convert(params, form)
    except msgspec.ValidationError as error:
        raise RefusedError(INVALID_PARAMS, f"Invalid params: {error}") from None


def server_info() -> Document:
    """Return who the server is."""
    from importlib.metadata import version

    return {"name": NAME, "title": "Reasonry", "version": version("reasonry")}


class McpServer:
    """The tools, resources and prompts of one server.

    Args:
        guard: Awaits the work of each tool call.

    Attributes:
        watch: Told of every successful tool call: tool, arguments, document.
        methods: What `answer` answers.
    """

    def __init__(self, tools: Sequence[McpTool], resources: Resources, guard: Guard | None = None) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.resources = resources
        self.watch: Callable[[str, Document, Document], None] | None = None
        self._guard = guard
        self.methods: dict[str, tuple[type[Struct], Callable[[Any], Any]]] = {
            "tools/list": (ListParams, self._list_tools),
            "resources/list": (ListParams, self._list_resources),
            "resources/templates/list": (ListParams, self._list_templates),
            "resources/read": (ResourceParams, self._read_resource),
            "prompts/list": (ListParams, self._list_prompts),
            "prompts/get": (PromptParams, self._get_prompt),
        }

    async def answer(self, method: str, params: Document, *, shows_pages: bool = False) -> Document:
        """Return the result of one of `methods`.

        Args:
            shows_pages: Whether the client shows pages; only then it is told of them.

        Raises:
            RefusedError: The parameters are not of the method's form.
            NotFoundError: They name something that there is not.
        """
        form, handler = self.methods[method]
        result = await handler(read_params(form, params))
        if not shows_pages:
            return result
        if method == "tools/list":
            return {"tools": [tool.listing(shows_pages=True) for tool in self.tools.values()]}
        return {"resources": [PAGE_LISTING, *result["resources"]]} if method == "resources/list" else result

    def members_for_page(self, params: Document) -> tuple[str, ...]:
        """Return the members that the text of a result of this call leaves out."""
        tool = self.tools.get(str(params.get("name")))
        return () if tool is None else tool.hidden

    async def call(self, params: Document, context: CallContext) -> tuple[Document, bool]:
        """Call a tool; return its document and whether that describes an error.

        Raises:
            RefusedError: The parameters are not of the form.
            NotFoundError: There is no such tool; `choices` has the names.
        """
        wanted = read_params(ToolCallParams, params)
        tool = self.tools.get(wanted.name)
        if tool is None:
            raise NotFoundError(
                f"Unknown tool {wanted.name[:200]!r}; there are: {', '.join(self.tools)}",
                choices=list(self.tools),
            )
        arguments = wanted.arguments or {}
        try:
            work = tool.call(arguments, context)
            document = await (work if self._guard is None else self._guard(work))
        except Exception as error:
            return error_document(error), True
        if self.watch is not None:
            # Only after the reply has gone out: nobody waits for what is drawn.
            asyncio.get_running_loop().call_soon(self.watch, tool.name, arguments, document)
        return document, False

    async def _list_tools(self, _: ListParams) -> Document:
        return {"tools": [tool.listing() for tool in self.tools.values()]}

    async def _list_resources(self, _: ListParams) -> Document:
        return {"resources": await self.resources.listing()}

    async def _list_templates(self, _: ListParams) -> Document:
        return {"resourceTemplates": self.resources.templates()}

    async def _read_resource(self, params: ResourceParams) -> Document:
        if params.uri == PAGE_URI:
            return {"contents": [read_page_resource()]}
        document = await self.resources.read(params.uri)
        text = msgspec.json.format(msgspec.json.encode(document)).decode()
        return {"contents": [{"uri": params.uri, "mimeType": "application/json", "text": text}]}

    async def _list_prompts(self, _: ListParams) -> Document:
        return {"prompts": self.resources.prompts()}

    async def _get_prompt(self, params: PromptParams) -> Document:
        return self.resources.prompt(params.name, params.arguments or {})
